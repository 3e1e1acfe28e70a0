package backup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

var at = time.Date(2026, 11, 27, 2, 0, 0, 0, time.UTC)

func archived(t *testing.T, seal backup.Seal, parts map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, seal, backup.Head{Paictl: "v1", Cluster: "pai", UID: "5b1e", Time: at})
	require.NoError(t, err)
	for _, name := range []string{"a", "b/c"} {
		if text, ok := parts[name]; ok {
			require.NoError(t, w.Add(name, int64(len(text)), strings.NewReader(text)))
		}
	}
	w.Describe("v1.36.3", []backup.Machine{{Name: "m1", IP: "10.0.0.1", Roles: []string{"master"}}})
	w.Lacks("the history of jobs", errors.New("it is unavailable"))
	_, err = w.Close()
	require.NoError(t, err)
	return out.Bytes()
}

func phrase(p string) backup.Keys {
	return backup.Keys{Passphrase: func() (secret.String, error) { return secret.String(p), nil }}
}

func readAll(archive []byte, keys backup.Keys) (map[string]string, *backup.Manifest, error) {
	got := map[string]string{}
	m, err := backup.Read(bytes.NewReader(archive), keys, func(name string, size int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		if int64(len(text)) != size && err == nil {
			return fmt.Errorf("%s has %d bytes instead of %d", name, len(text), size)
		}
		got[name] = string(text)
		return err
	})
	return got, m, err
}

func TestAnArchiveIsReadAsItWasWritten(t *testing.T) {
	pair, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	parts := map[string]string{"a": "", "b/c": strings.Repeat("a key of the cluster\n", 10000)}
	for name, c := range map[string]struct {
		seal backup.Seal
		keys backup.Keys
	}{
		"to a recipient":    {backup.Seal{Recipients: []age.Recipient{pair.Recipient()}}, backup.Keys{Identities: []age.Identity{pair}}},
		"with a passphrase": {backup.Seal{Passphrase: "p"}, phrase("p")},
		"plain":             {backup.Seal{Plain: true}, backup.Keys{Plain: true}},
	} {
		t.Run(name, func(t *testing.T) {
			archive := archived(t, c.seal, parts)
			if !c.seal.Plain {
				assert.NotContains(t, string(archive), "a key of the cluster")
			}
			got, m, err := readAll(archive, c.keys)
			require.NoError(t, err)
			assert.Equal(t, parts, got)
			assert.Equal(t, "pai", m.Cluster)
			assert.Equal(t, "v1.36.3", m.Kubernetes)
			assert.True(t, at.Equal(m.Time))
			assert.Equal(t, []backup.Missing{{What: "the history of jobs", Why: "it is unavailable"}}, m.Missing)
			assert.Equal(t, "10.0.0.1", m.Machines[0].IP)
			if c.seal.Passphrase.IsSet() {
				return // each look takes a second of scrypt
			}
			_, err = backup.Read(bytes.NewReader(archive), c.keys, nil)
			require.NoError(t, err, "to look is to read as well")
		})
	}
}

func TestAnArchiveThatIsNotWholeIsRefused(t *testing.T) {
	parts := map[string]string{"a": strings.Repeat("x", 1000), "b/c": strings.Repeat("yz", 100000)}
	pair, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	keys := backup.Keys{Identities: []age.Identity{pair}, Plain: true}
	for name, seal := range map[string]backup.Seal{"encrypted": {Recipients: []age.Recipient{pair.Recipient()}}, "plain": {Plain: true}} {
		t.Run(name, func(t *testing.T) {
			archive := archived(t, seal, parts)
			_, _, err := readAll(archive, keys)
			require.NoError(t, err)
			for i := 0; i < len(archive); i++ {
				broken := bytes.Clone(archive)
				broken[i] ^= 0x10
				got, _, err := readAll(broken, keys)
				if err == nil {
					// Some bits in a zstd stream have no meaning.
					assert.Equal(t, parts, got, "byte %d", i)
					continue
				}
				assert.True(t, errors.Is(err, backup.ErrDamaged) || errors.Is(err, backup.ErrNone) || errors.Is(err, backup.ErrKey) || errors.Is(err, backup.ErrNewer), "byte %d: %v", i, err)
			}
			for i := 0; i < len(archive); i++ {
				_, _, err := readAll(archive[:i], keys)
				require.Error(t, err, "cut off after %d bytes", i)
			}
			_, _, err = readAll(append(bytes.Clone(archive), "more"...), keys)
			require.ErrorIs(t, err, backup.ErrDamaged)
		})
	}
}

func TestWrongKeysAreTold(t *testing.T) {
	pair, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	other, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	sealed := archived(t, backup.Seal{Recipients: []age.Recipient{pair.Recipient()}}, nil)
	locked := archived(t, backup.Seal{Passphrase: "p"}, nil)
	for name, c := range map[string]struct {
		archive []byte
		keys    backup.Keys
		says    string
	}{
		"another private key":  {sealed, backup.Keys{Identities: []age.Identity{other}}, "they belong to other recipients"},
		"no private key":       {sealed, phrase("p"), "it is encrypted to recipients"},
		"another passphrase":   {locked, phrase("q"), "the passphrase is wrong"},
		"no passphrase":        {locked, backup.Keys{Identities: []age.Identity{pair}}, "it has a passphrase"},
		"an empty passphrase":  {locked, phrase(""), "none of the keys"},
		"a private key, where": {locked, backup.Keys{}, "it has a passphrase"},
		"it is plain":          {archived(t, backup.Seal{Plain: true}, nil), backup.Keys{Identities: []age.Identity{pair}}, "it isn't encrypted, so anyone may have written it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readAll(c.archive, c.keys)
			require.ErrorIs(t, err, backup.ErrKey)
			require.ErrorContains(t, err, c.says)
			assert.NotEmpty(t, hint.Of(err))
		})
	}
}

func TestWhatIsNoBackupIsTold(t *testing.T) {
	for _, text := range []string{"", "x", "apiVersion: v1", strings.Repeat("\x00", 100)} {
		_, _, err := readAll([]byte(text), backup.Keys{})
		require.ErrorIs(t, err, backup.ErrNone, text)
	}
}

func TestAnArchiveOfALaterFormatIsRefusedBeforeItsPartsAreRead(t *testing.T) {
	archive := archived(t, backup.Seal{Plain: true}, map[string]string{"a": "x"})
	newer := retag(t, archive, func(name, text string) string {
		return strings.Replace(text, `"format":1`, `"format":2`, 1)
	})
	got, _, err := readAll(newer, backup.Keys{Plain: true})
	require.ErrorIs(t, err, backup.ErrNewer)
	require.ErrorContains(t, err, "v1, format 2; this one reads 1")
	assert.Empty(t, got)
}

func TestPartsAreThoseOfTheManifest(t *testing.T) {
	archive := archived(t, backup.Seal{Plain: true}, map[string]string{"a": "x", "b/c": "y"})
	for name, edit := range map[string]func(name, text string) string{
		"another content": func(name, text string) string {
			if name == "a" {
				return "z"
			}
			return text
		},
		"a part less": func(name, text string) string {
			if name == "a" {
				return dropped
			}
			return text
		},
		"a manifest of another backup": func(name, text string) string {
			if name == "manifest.json" {
				return strings.Replace(text, `"pai"`, `"other"`, 1)
			}
			return text
		},
		"a manifest of a cluster of that name": func(name, text string) string {
			if name == "manifest.json" {
				return strings.Replace(text, `"5b1e"`, `"77aa"`, 1)
			}
			return text
		},
		"a manifest that says less": func(name, text string) string {
			if name == "manifest.json" {
				var m map[string]any
				require.NoError(t, json.Unmarshal([]byte(text), &m))
				m["parts"] = m["parts"].([]any)[:1]
				out, err := json.Marshal(m)
				require.NoError(t, err)
				return string(out)
			}
			return text
		},
		"no manifest": func(name, text string) string {
			if name == "manifest.json" {
				return dropped
			}
			return text
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readAll(retag(t, archive, edit), backup.Keys{Plain: true})
			require.ErrorIs(t, err, backup.ErrDamaged)
		})
	}
}

func TestAPartHasTheSizeThatWasSaid(t *testing.T) {
	for _, size := range []int64{2, 4} {
		w, err := backup.NewWriter(io.Discard, backup.Seal{Plain: true}, backup.Head{})
		require.NoError(t, err)
		require.Error(t, w.Add("a", size, strings.NewReader("abc")))
		_, err = w.Close()
		require.Error(t, err, "an archive that lacks what was added isn't ended")
	}
}

func TestNothingIsWrittenPlainUnlessItIsAskedFor(t *testing.T) {
	_, err := backup.NewWriter(io.Discard, backup.Seal{}, backup.Head{})
	require.ErrorContains(t, err, "needs recipients or a passphrase")
}

func TestKeysAreReadFromFiles(t *testing.T) {
	pair, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	dir := t.TempDir()
	public, private := filepath.Join(dir, "public"), filepath.Join(dir, "private")
	require.NoError(t, os.WriteFile(public, []byte("# ann\n"+pair.Recipient().String()+"\n"), 0o600))
	require.NoError(t, os.WriteFile(private, []byte("# created by age-keygen\n"+pair.String()+"\n"), 0o600))
	recipients, err := backup.Recipients([]string{pair.Recipient().String()}, []string{public})
	require.NoError(t, err)
	assert.Len(t, recipients, 2)
	identities, err := backup.Identities([]string{private})
	require.NoError(t, err)
	assert.Len(t, identities, 1)

	_, err = backup.Recipients([]string{"age1x"}, nil)
	require.ErrorContains(t, err, "age1x")
	_, err = backup.Recipients(nil, []string{filepath.Join(dir, "none")})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(private, []byte(pair.String()+"X\n"), 0o600))
	_, err = backup.Identities([]string{private})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "AGE-SECRET", "a private key isn't shown, not even a wrong one")
}

// stream returns a response of etcd's API: the database in pieces, and its checksum.
func stream(db []byte, piece int, sum []byte) string {
	var out strings.Builder
	for sent := 0; sent < len(db); {
		n := min(piece, len(db)-sent)
		sent += n
		left := ""
		if len(db) > sent {
			left = fmt.Sprintf(`"remaining_bytes":"%d",`, len(db)-sent)
		}
		fmt.Fprintf(&out, `{"result":{%s"blob":%q,"version":"3.6.0"}}`+"\n", left, base64.StdEncoding.EncodeToString(db[sent-n:sent]))
	}
	fmt.Fprintf(&out, `{"result":{"blob":%q,"version":"3.6.0"}}`+"\n", base64.StdEncoding.EncodeToString(sum))
	return out.String()
}

func TestASnapshotIsReadAsEtcdStreamsIt(t *testing.T) {
	db := bytes.Repeat([]byte("0123456789abcdef"), 10000)
	sum := sha256.Sum256(db)
	for _, piece := range []int{32 << 10, 40000, len(db)} {
		s, err := backup.NewSnapshot(strings.NewReader(stream(db, piece, sum[:])))
		require.NoError(t, err)
		assert.EqualValues(t, len(db)+len(sum), s.Size())
		got, err := io.ReadAll(s)
		require.NoError(t, err)
		assert.Equal(t, append(bytes.Clone(db), sum[:]...), got)
	}
}

func TestASnapshotThatIsNotWholeIsAnError(t *testing.T) {
	db := bytes.Repeat([]byte("0123456789abcdef"), 10000)
	sum := sha256.Sum256(db)
	whole := stream(db, 32<<10, sum[:])
	lines := strings.SplitAfter(strings.TrimSpace(whole), "\n")
	for name, text := range map[string]string{
		"nothing":             "",
		"an error at once":    `{"error":{"grpc_code":14,"message":"etcdserver: no leader"}}`,
		"an error later":      lines[0] + `{"error":{"grpc_code":14,"message":"etcdserver: no leader"}}`,
		"without its end":     strings.Join(lines[:len(lines)-1], ""),
		"without a piece":     strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), ""),
		"cut in a line":       whole[:len(whole)/2],
		"another checksum":    stream(db, 32<<10, make([]byte, 32)),
		"no JSON":             "<html>",
		"a size below zero":   `{"result":{"remaining_bytes":"-5","blob":""}}`,
		"a size of no number": `{"result":{"remaining_bytes":"many","blob":""}}`,
		"more than was said":  strings.Join(append(append([]string{}, lines[:len(lines)-1]...), lines[0]), ""),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := backup.NewSnapshot(strings.NewReader(text))
			if err == nil {
				_, err = io.ReadAll(s)
			}
			require.ErrorContains(t, err, "etcd's snapshot: ")
		})
	}
}

func TestNamesOfArchives(t *testing.T) {
	for of, want := range map[string]backup.File{
		"pai-2":              {Cluster: "pai-2", Time: at},
		"pai-2.0123456789ab": {Cluster: "pai-2", ID: "0123456789ab", Time: at},
	} {
		got, ok := backup.Named(backup.Name(of, at.In(time.FixedZone("", 3600))))
		require.True(t, ok)
		assert.Equal(t, want, got)
		assert.Equal(t, of, backup.Of(got.Cluster, got.ID))
		for _, asked := range []string{"", "pai-2", of} {
			assert.True(t, got.IsOf(asked))
		}
		for _, asked := range []string{"pai", "pai-2.ffffffffffff"} {
			assert.False(t, got.IsOf(asked))
		}
	}
	for _, other := range []string{"", "pai-20261127.paictl-backup", "notes.txt", ".pai-20261127T020000Z.paictl-backup123", "pai-20269927T020000Z.paictl-backup", "-20261127T020000Z.paictl-backup"} {
		_, ok := backup.Named(other)
		assert.False(t, ok, other)
	}
}

func TestClustersOfOneNameAreToldApart(t *testing.T) {
	first, twin := backup.ID("u", ""), backup.ID("u", "20261127T020000Z-m2")
	assert.NotEqual(t, first, twin, "one that was restored has the UID of the one that was saved")
	assert.NotEqual(t, first, backup.ID("v", ""))
	assert.Empty(t, backup.ID("", "20261127T020000Z-m2"))
	var all []backup.File
	for n, id := range []string{first, twin, ""} {
		for day := range 2 {
			f, ok := backup.Named(backup.Name(backup.Of("pai", id), at.AddDate(0, 0, -10*n-day)))
			require.True(t, ok)
			f.Path = backup.Name(backup.Of("pai", id), f.Time)
			all = append(all, f)
		}
	}
	backup.Sort(all)
	var gone []string
	for _, f := range (backup.Keep{}).ExpiredOfAll(all) {
		gone = append(gone, f.ID)
	}
	assert.ElementsMatch(t, []string{first, twin, ""}, gone, "of each the latest stays")
}

// TestABackupWithTheHistoryOfJobsIsNotPushedOut simulates a job controller that doesn't respond for longer than backups are kept.
func TestABackupWithTheHistoryOfJobsIsNotPushedOut(t *testing.T) {
	var all []backup.File
	for day := range 40 {
		name := backup.Name("pai", at.AddDate(0, 0, -day))
		if day < 30 {
			name = backup.NameWithoutHistory("pai", at.AddDate(0, 0, -day))
		}
		f, ok := backup.Named(name)
		require.True(t, ok, name)
		assert.Equal(t, day < 30, f.WithoutHistory)
		f.Path = name
		all = append(all, f)
	}
	for _, k := range []backup.Keep{{}, {Last: 3, Daily: 2, Weekly: 2}} {
		gone := k.Expired(all)
		assert.NotContains(t, gone, all[30], "the latest with a history")
		assert.Contains(t, gone, all[31])
		assert.Contains(t, gone, all[29])
		assert.NotContains(t, k.Expired(all[30:]), all[30])
		assert.Contains(t, k.Expired(append([]backup.File{{Path: "newer", Time: at.AddDate(0, 0, 1)}}, all...)), all[30], "there is a newer one")
	}
}

func TestAClusterIsToldWhichBackupHadTheHistoryOfJobs(t *testing.T) {
	away := errors.New("connection refused")
	for name, c := range map[string]struct {
		before  map[string]string
		without error
		want    string
	}{
		"it is there":             {nil, nil, `{"data":{"backup":"2026-11-27T02:00:00Z","backup-history":"2026-11-27T02:00:00Z"}}`},
		"no backup ever had it":   {nil, away, `{"data":{"backup":"2026-11-27T02:00:00Z","backup-history":"never"}}`},
		"an earlier paictl's may": {map[string]string{backup.Note: "then"}, away, `{"data":{"backup":"2026-11-27T02:00:00Z","backup-history":"then"}}`},
		"an earlier one has it":   {map[string]string{backup.Note: "then", backup.NoteHistory: "before"}, away, `{"data":{"backup":"2026-11-27T02:00:00Z"}}`},
		"there is no controller":  {nil, fmt.Errorf("%w: no such host", backup.ErrNoController), `{"data":{"backup":"2026-11-27T02:00:00Z","backup-history":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := backup.Notes(c.before, at, c.without)
			require.NoError(t, err)
			assert.JSONEq(t, c.want, string(got))
		})
	}
}

func TestWhichBackupsStay(t *testing.T) {
	var all []backup.File
	add := func(cluster string, at time.Time) {
		all = append(all, backup.File{Path: "/mnt/" + backup.Name(cluster, at), Cluster: cluster, Time: at})
	}
	add("pai-2", at.AddDate(-1, 0, 0))
	for day := range 40 {
		for _, hour := range []int{2, 14} {
			add("pai", at.AddDate(0, 0, -day).Add(time.Duration(hour-2)*time.Hour))
		}
	}
	backup.Sort(all)
	assert.Equal(t, at.Add(12*time.Hour), all[0].Time)

	left := func(k backup.Keep) []string {
		gone := map[string]bool{}
		for _, f := range k.ExpiredOfAll(all) {
			gone[f.Path] = true
		}
		var out []string
		for _, f := range all {
			if !gone[f.Path] {
				out = append(out, strings.TrimSuffix(filepath.Base(f.Path), backup.Ending))
			}
		}
		return out
	}
	assert.Equal(t, []string{"pai-20261127T140000Z", "pai-2-20251127T020000Z"}, left(backup.Keep{}), "the latest of each cluster stays")
	assert.Equal(t, []string{"pai-20261127T140000Z", "pai-20261127T020000Z", "pai-20261126T140000Z", "pai-2-20251127T020000Z"}, left(backup.Keep{Last: 3}))
	assert.Equal(t, []string{
		"pai-20261127T140000Z", "pai-20261126T140000Z", "pai-20261125T140000Z", // days; the first is also the last one of its week
		"pai-20261122T140000Z", "pai-20261115T140000Z", // Sundays
		"pai-2-20251127T020000Z",
	}, left(backup.Keep{Daily: 3, Weekly: 3}))
}
