package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/pki"
	"github.com/openpai/paictl/pkg/ssh"
)

func restoreFile(content []byte) engine.RestoreFile {
	sum := sha256.Sum256(content)
	return engine.RestoreFile{Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

// saved returns a backup of a cluster with the machines old-1 and w1.
func saved(t *testing.T) *engine.RestoreParts {
	t.Helper()
	return savedAs(t, map[string]string{
		"etc/kubernetes/pki/sa.key": "the old key of service accounts", "etc/kubernetes/pki/etcd/ca.key": "the old key of etcd's authority",
		"etc/kubernetes/pki/ca.key": "the old key of the authority", "etc/paictl/encryption.yaml": "the old key of secrets at rest",
	})
}

func savedAs(t *testing.T, keys map[string]string) *engine.RestoreParts {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, text := range keys {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}))
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return &engine.RestoreParts{Keys: restoreFile(out.Bytes()), Etcd: restoreFile([]byte("node old-1\nnode w1\n"))}
}

func TestARestorePutsTheHistoryOfJobsWhereTheControllerLooks(t *testing.T) {
	const was = "the jobs that were"
	for name, c := range map[string]struct{ node, there, free, want, left string }{
		"a new machine":                       {"m1", "", "", was, ""},
		"an earlier attempt has put it there": {"m1", was, "", was, ""},
		"a machine with a history":            {"m1", "what it has had", "", "what it has had", "m1 has another one already, which stays"},
		"one of the same size":                {"m1", "the jobs that are!", "", "the jobs that are!", "m1 has another one already, which stays"},
		"an empty one":                        {"m1", "-", "", "", "m1 has another one already, which stays"},
		"there is no room":                    {"m1", "", "1048576", "", "m1 has no room for it"},
		"there is just room":                  {"m1", "", "1048577", was, ""},
		"the volume is another machine's":     {"m2", "", "", "", "the job controller's volume will be on m2, and m1 founds the cluster"},
		"the history is elsewhere":            {"", "", "", "", "it is elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			l, from := newLab(t, 2, 1), saved(t)
			const folder, file = "/data/job-controller/job-controller-data", "/data/job-controller/job-controller-data/archive.db"
			from.Left = c.left
			if c.node != "" {
				from.Left, from.History = "", &engine.RestoreHistory{RestoreFile: restoreFile([]byte(was)), Node: c.node, Folder: folder, Owner: 65532}
			}
			if c.there != "" {
				l.host("m1").write(file, strings.TrimPrefix(c.there, "-"))
			}
			if c.free != "" {
				l.host("m1").write("/data/lost+found/x", "")
				l.host("m1").write("/.fake/data-kib", c.free+"\n")
			}
			told := []string{}
			from.Founded = func(left string) { told = append(told, left) }
			o := l.up(t.Context(), restoring(from))
			require.NoError(t, o.err, l.story(o))
			l.checkRestored()
			assert.Equal(t, []string{c.left}, told)
			assert.Equal(t, c.want, l.host("m1").read(file))
			assert.Empty(t, l.host("m2").read(file))
			if c.free == "1048576" {
				assert.Contains(t, fmt.Sprint(warnings(o)), "/data has 1.0 GiB free, and needs 1.0 GiB for the restore")
			}
			if warned := fmt.Sprint(warnings(o)); c.left == "" {
				assert.NotContains(t, warned, "history")
			} else {
				assert.Contains(t, warned, "the history of jobs isn't in place: "+c.left)
			}
			if c.want == was && c.there == "" {
				root := l.host("m1").root
				assert.Contains(t, l.host("m1").calls(), "chown 65532:65532 "+root+folder+" "+root+file+".paictl-new")
				info, err := os.Stat(root + file)
				require.NoError(t, err)
				assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			}
		})
	}
}

// The machine keeps the state of the history for the run that completes the restore.
func TestAHistoryThatWasNotPutInPlaceIsToldByTheRunThatEndsTheRestore(t *testing.T) {
	for by, c := range map[string]struct{ there, left string }{
		"restore": {"what it has had", "m1 has another one already, which stays"}, "up": {"what it has had", "m1 has another one already, which stays"},
		"restore, of one that is": {"", ""}, "up, of one that is": {"", ""},
	} {
		t.Run(by, func(t *testing.T) {
			l, from := newLab(t, 1, 0), saved(t)
			from.History = &engine.RestoreHistory{RestoreFile: restoreFile([]byte("the jobs that were")), Node: "m1", Folder: "/data/jobs"}
			if c.there != "" {
				l.host("m1").write("/data/jobs/archive.db", c.there)
			}
			l.host("m1").write("/.fake/fail/delete-node", "")
			require.Error(t, l.up(t.Context(), restoring(from)).err)
			l.host("m1").remove("/.fake/fail/delete-node")
			l.host("m1").write("/data/jobs/archive.db", "the controller has begun")
			told := []string{}
			from.Founded = func(left string) { told = append(told, left) }
			var o *outcome
			if strings.HasPrefix(by, "restore") {
				o = l.up(t.Context(), restoring(from))
				assert.Equal(t, []string{c.left}, told)
			} else {
				o = l.up(t.Context())
			}
			require.NoError(t, o.err, l.story(o))
			if c.left == "" {
				assert.NotContains(t, fmt.Sprint(warnings(o)), "history")
			} else {
				assert.Contains(t, fmt.Sprint(warnings(o)), "the history of jobs isn't in place: "+c.left)
			}
		})
	}
}

// TestWhatLiesBesideTheHistoryOfJobsDoesNotComeBack leaves the write-ahead log of an older SQLite database in the folder. SQLite would replay that
// log into any database file in the same folder.
func TestWhatLiesBesideTheHistoryOfJobsDoesNotComeBack(t *testing.T) {
	const folder = "/data/jobs"
	l, from := newLab(t, 1, 0), saved(t)
	history := func(file, job string) *sql.DB {
		db, err := sql.Open("sqlite", file)
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(1)
		for _, statement := range []string{"PRAGMA journal_mode=wal", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE jobs (name TEXT)", "INSERT INTO jobs VALUES ('" + job + "')"} {
			_, err := db.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		return db
	}
	jobs := func(file string) (name string) {
		db, err := sql.Open("sqlite", file)
		require.NoError(t, err)
		defer func() { _ = db.Close() }()
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT group_concat(name) FROM jobs").Scan(&name))
		return name
	}
	dir := t.TempDir()
	_, err := history(filepath.Join(dir, "of-the-backup"), "saved").ExecContext(t.Context(), "VACUUM INTO '"+filepath.Join(dir, "export")+"'")
	require.NoError(t, err)
	export, err := os.ReadFile(filepath.Join(dir, "export"))
	require.NoError(t, err)
	old := filepath.Join(dir, "old")
	history(old, "old") // it is open, so that its log stays
	both := filepath.Join(dir, "both")
	require.NoError(t, os.WriteFile(both, export, 0o600))
	for _, suffix := range []string{"-wal", "-shm"} {
		text, err := os.ReadFile(old + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(both+suffix, text, 0o600))
		l.host("m1").write(folder+"/archive.db"+suffix, string(text))
	}
	require.Equal(t, "old", jobs(both), "it does")

	for _, suffix := range []string{".copy", ".copy.new", ".damaged", ".replaced", ".broken-20261127T020000.000Z"} {
		l.host("m1").write(folder+"/archive.db"+suffix, "old")
	}
	from.History = &engine.RestoreHistory{RestoreFile: restoreFile(export), Node: "m1", Folder: folder, Owner: 65532}
	o := l.up(t.Context(), restoring(from))
	require.NoError(t, o.err, l.story(o))
	var names []string
	there, err := os.ReadDir(l.host("m1").root + folder)
	require.NoError(t, err)
	for _, e := range there {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"archive.db", "archive.db.broken-20261127T020000.000Z"}, names, "what was put aside as damaged is for people")
	assert.Equal(t, "saved", jobs(l.host("m1").root+folder+"/archive.db"))
}

// TestFoldersOfVolumesAreMadeAgain restores a backup that contains completed Jobs. The machines have the same names and new disks, so the Jobs that
// create folders must run again.
func TestFoldersOfVolumesAreMadeAgain(t *testing.T) {
	for name, masters := range map[string]int{"one master": 1, "three masters": 3} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, masters, 1)
			jobs := filepath.Join(l.cluster, "jobs")
			require.NoError(t, os.WriteFile(jobs, []byte("pai-system pai-volume-1-a pai-prometheus-1\npai-system pai-volume-2-a pai-job-controller-2\ndefault a-users-own -\n"), 0o600))
			o := l.up(t.Context(), restoring(saved(t)))
			require.NoError(t, o.err, l.story(o))
			left, err := os.ReadFile(jobs)
			require.NoError(t, err)
			assert.Equal(t, "default a-users-own -\n", string(left))
		})
	}
}

// TestABackupOfTheMiddleOfARotationIsRestored restores a backup that contains two keys for Secrets, and two certificates of a CA. Usually the CA's
// key belongs to the first certificate. If the rotation was killed between writing the certificates and the key, it belongs to the second
// certificate.
func TestABackupOfTheMiddleOfARotationIsRestored(t *testing.T) {
	one, other := withAuthorities(t, 1, 0), withAuthorities(t, 1, 0)
	first, second := string(pki.Encode(one.old[kubernetesCA].Cert)), string(pki.Encode(other.old[kubernetesCA].Cert))
	key := one.host("m1").read(authorityKey(kubernetesCA))
	was := one.host("m1").read(phases.EncryptionFile)
	found := keysOf.FindStringSubmatch(was)
	require.NotNil(t, found)
	both := strings.Replace(was, "keys:", "keys:\n            - name: paictl-2\n              secret: "+strings.Repeat("QUJD", 10)+"QUI=", 1)
	require.Len(t, keysOf.FindAllString(both, -1), 2)
	for name, c := range map[string]struct{ text, certs string }{
		"it writes by the new key":                         {both, first + second},
		"it has the old one alone":                         {was, first + second},
		"the certificates are the new ones before the key": {was, second + first},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.text
			l := newLab(t, 1, 0)
			from := savedAs(t, map[string]string{
				"etc/kubernetes/pki/ca.crt": c.certs, "etc/kubernetes/pki/ca.key": key, "etc/paictl/encryption.yaml": text,
				"etc/kubernetes/pki/etcd/ca.key": "the old key of etcd's authority",
			})
			o := l.up(t.Context(), restoring(from))
			require.NoError(t, o.err, l.story(o))
			assert.Equal(t, first, l.host("m1").read(authorityCert(kubernetesCA)), "kube-controller-manager takes one, that of the key")
			assert.Equal(t, text, l.host("m1").read(phases.EncryptionFile), "what either key has written can be read")
			l.put("secrets", "default a paictl-1\njobs b "+found[1]+"\njobs c paictl-1\n")
			o = l.rotateSecrets()
			require.NoError(t, o.err, "%s", l.story(o))
			l.rotated("paictl-2")
			assert.Empty(t, l.mustUp().changes)
		})
	}
}

func TestARestoreForgetsVolumesOfServicesOnMachinesThatAreGone(t *testing.T) {
	l := newLab(t, 1, 1)
	volumes := filepath.Join(l.cluster, "volumes")
	require.NoError(t, os.WriteFile(volumes, []byte("pv-1 pai-system prometheus-data old-1\npv-2 pai-system grafana-data w1\n"), 0o600))
	o := l.up(t.Context(), restoring(saved(t)))
	require.NoError(t, o.err, l.story(o))
	left, err := os.ReadFile(volumes)
	require.NoError(t, err)
	assert.Equal(t, "pv-2 pai-system grafana-data w1\n", string(left), "w1 joins again, with its disk")
	calls := strings.Join(l.host("m1").calls(), "\n")
	assert.Contains(t, calls, "kubectl delete pvc -n pai-system prometheus-data ")
	assert.NotContains(t, calls, "grafana-data")
}

func restoring(from *engine.RestoreParts) func(*labOptions, *ssh.Options) {
	return func(o *labOptions, _ *ssh.Options) { o.restore = from }
}

// checkRestored checks that a restore has left the right files, and has removed its own files.
func (l *lab) checkRestored() {
	l.t.Helper()
	m1 := l.host("m1")
	assert.Equal(l.t, "the old key of service accounts", m1.read("/etc/kubernetes/pki/sa.key"))
	assert.Equal(l.t, "the old key of etcd's authority", m1.read("/etc/kubernetes/pki/etcd/ca.key"))
	assert.Equal(l.t, "the old key of the authority", m1.read("/etc/kubernetes/pki/ca.key"))
	assert.Equal(l.t, "the old key of secrets at rest", m1.read("/etc/paictl/encryption.yaml"))
	assert.Equal(l.t, "node old-1\nnode w1\n", m1.read("/var/lib/etcd/member/snap/db"))
	var want []string
	for _, h := range l.hosts {
		want = append(want, h.name)
		assert.NoDirExists(l.t, h.root+"/var/lib/paictl/restore", "what lies there are keys")
		assert.NoDirExists(l.t, h.root+"/var/lib/etcd/paictl-restore")
	}
	assert.ElementsMatch(l.t, want, l.nodes())
}

func TestARestoreMakesTheClusterOfTheBackup(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 1)
	from := saved(t)
	o := l.up(t.Context(), restoring(from), func(o *labOptions, _ *ssh.Options) { o.DryRun = true })
	require.NoError(t, o.err)
	assert.NotEmpty(t, o.changes)
	assert.Empty(t, l.host("m1").read("/var/lib/paictl/restore/keys.tar"))
	o = l.up(t.Context(), restoring(from))
	require.NoError(t, o.err, l.story(o))
	l.checkRestored()
	assert.Contains(t, strings.Join(l.host("m1").calls(), "\n"),
		"--name m1 --initial-cluster m1=https://10.9.0.1:2380 --initial-advertise-peer-urls https://10.9.0.1:2380 --bump-revision")
	assert.Empty(t, l.mustUp().changes)

	o = l.up(t.Context(), restoring(from))
	require.ErrorContains(t, o.err, "m1, m2, w1 are machines of a cluster that runs; a restore would end it")
	o = l.up(t.Context(), restoring(from), func(o *labOptions, _ *ssh.Options) { o.Limit = []string{"m1"} })
	require.ErrorContains(t, o.err, "a restore makes a whole cluster")
	require.NoError(t, l.down(t.Context(), false).err)
	assert.NoFileExists(t, l.host("m1").root+"/etc/paictl/encryption.yaml", "it isn't the machine's own")
}

func TestARestoreThatFailedIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	for fails, c := range map[string]struct {
		text string
		says string
		// isFounded means that the cluster already exists, so that "cluster up" can also continue the restore.
		isFounded bool
	}{
		"etcdutl":      {"", "snapshot missing hash", false},
		"kubeadm-init": {"a program that waits", "a program that waits", false},
		"delete-node":  {"", "an error on the server", true},
	} {
		for _, by := range []string{"restore", "up"} {
			t.Run(fails+" then "+by, func(t *testing.T) {
				l, from := newLab(t, 1, 1), saved(t)
				l.host("m1").write("/.fake/fail/"+fails, c.text)
				o := l.up(t.Context(), restoring(from))
				require.Error(t, o.err)
				require.Contains(t, l.story(o), c.says)
				l.host("m1").remove("/.fake/fail/" + fails)
				if c.isFounded {
					other := saved(t)
					other.Etcd = restoreFile([]byte("node other\n"))
					require.ErrorContains(t, l.up(t.Context(), restoring(other)).err, "m1 belongs to a cluster that was restored from another backup")
					o = l.up(t.Context(), func(o *labOptions, _ *ssh.Options) { o.Phases = []string{engine.PhaseJoin} })
					require.ErrorContains(t, o.err, "hasn't come to its end")
				}
				if by == "restore" {
					o = l.up(t.Context(), restoring(from))
					require.NoError(t, o.err, l.story(o))
					l.checkRestored()
					return
				}
				o = l.up(t.Context())
				if c.isFounded {
					require.NoError(t, o.err, l.story(o))
					l.checkRestored()
					return
				}
				require.ErrorContains(t, o.err, "a restore was interrupted before there was a cluster")
				require.NoError(t, l.down(t.Context(), false).err)
				require.NoError(t, l.up(t.Context()).err, "and without a backup, if that is wanted")
				assert.ElementsMatch(t, []string{"m1", "w1"}, l.nodes())
			})
		}
	}
}

// TestARestoredClusterIsAnotherOneBeforeAnythingIsDeleted restores a backup that contains machines of the earlier cluster. The nodes of these
// machines can't be deleted yet.
func TestARestoredClusterIsAnotherOneBeforeAnythingIsDeleted(t *testing.T) {
	t.Parallel()
	l, from := newLab(t, 1, 1), saved(t)
	note := func() string {
		text, err := os.ReadFile(filepath.Join(l.cluster, "objects", "paictl"))
		require.NoError(t, err)
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "restored") {
				return line
			}
		}
		return ""
	}
	l.host("m1").write("/.fake/fail/delete-node", "")
	o := l.up(t.Context(), restoring(from))
	require.Error(t, o.err)
	require.NotEmpty(t, note(), "a backup that is made now must not be taken for one of the cluster that was")
	l.host("m1").remove("/.fake/fail/delete-node")
	l.host("m1").write("/var/lib/paictl/restore/restored", "20200101T000000Z-m1\n") // some time ago
	o = l.up(t.Context(), restoring(from))
	require.NoError(t, o.err, l.story(o))
	l.checkRestored()
	assert.Equal(t, "restored\t20200101T000000Z-m1", note(), "it is the same cluster still")
}

func TestARestoreThatIsInterruptedIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	from := saved(t)
	cutOff(t, 3, 3, func(t *testing.T) story {
		l := newLab(t, 1, 1)
		return story{
			lab: l, run: func() *outcome { return l.up(t.Context(), restoring(from)) }, between: l.rest, mayFail: true,
			check: func(c *crash, again *outcome) {
				if again.err != nil {
					require.True(t, l.isMember("m1"), "%s", l.story(again))
					require.ErrorContains(t, again.err, "of a cluster that runs") // only the other machines hadn't joined
					l.mustUp()
				}
				l.checkRestored()
			},
		}
	})
}

func (l *lab) isMember(name string) bool {
	_, err := os.Stat(l.host(name).root + "/var/lib/paictl/member")
	return err == nil
}
