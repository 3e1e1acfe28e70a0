package release_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle/download"
	"github.com/openpai/paictl/pkg/hint"
	. "github.com/openpai/paictl/pkg/release"
	"github.com/openpai/paictl/pkg/release/releasetest"
)

const program = "paictl_v1.2.3_linux_amd64"

// signed returns a release with one program, and the release's key.
func signed(t *testing.T) (*releasetest.Release, Key) {
	t.Helper()
	r := releasetest.New(t, "v1.2.3", map[string][]byte{program: []byte("the program")})
	key, err := ReadKey(r.Key)
	require.NoError(t, err)
	return r, key
}

func TestASignedListIsOpened(t *testing.T) {
	r, key := signed(t)
	l, err := Open(r.List, r.Signature, key)
	require.NoError(t, err)
	assert.Equal(t, "v1.2.3", l.Version)
	assert.Equal(t, "2023-11-14T22:13:20Z", l.Time.Format(time.RFC3339))
	v, err := l.Verify(t.Context(), filepath.Join(r.Dir, program), "")
	require.NoError(t, err)
	assert.True(t, v.OK)
	assert.Equal(t, program, v.Name)
}

// The untrusted comment is the only part of a signature file that minisign doesn't sign.
func TestEachFlippedBitIsRefused(t *testing.T) {
	r, key := signed(t)
	l, err := Open(r.List, r.Signature, key)
	require.NoError(t, err)
	flips := func(data []byte, from int, refused func(changed []byte) bool) {
		for i := from * 8; i < len(data)*8; i++ {
			changed := bytes.Clone(data)
			changed[i/8] ^= 1 << (i % 8)
			if !refused(changed) {
				t.Fatalf("bit %d of %q is accepted as %q", i, data, changed)
			}
		}
	}
	flips(r.List, 0, func(list []byte) bool { _, err := Open(list, r.Signature, key); return hint.Of(err) != "" })
	flips(r.Signature, bytes.IndexByte(r.Signature, '\n'), func(sig []byte) bool { _, err := Open(r.List, sig, key); return hint.Of(err) != "" })
	file := filepath.Join(t.TempDir(), program)
	flips([]byte("the program"), 0, func(data []byte) bool {
		require.NoError(t, os.WriteFile(file, data, 0o600))
		v, err := l.Verify(t.Context(), file, "")
		return err == nil && !v.OK && strings.Contains(v.Reason, "but "+program+" of v1.2.3 has")
	})
}

func TestAListIsRefused(t *testing.T) {
	r, key := signed(t)
	public, _, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	other, err := ReadKey(public.String())
	require.NoError(t, err)
	tests := map[string]struct {
		list, signature []byte
		key             Key
		want            string
	}{
		"with the key of another project": {r.List, r.Signature, other, "was made with the key " + key.ID()},
		"without a signature":             {r.List, nil, key, "is not a signature by minisign"},
		"of another project":              {r.List, r.Sign(r.List, "timestamp:1"), key, "doesn't name a release of paictl"},
		"with a time that is not a number": {
			r.List, r.Sign(r.List, "timestamp:now\tpaictl:v1"), key, `timestamp "now" is not a number`,
		},
	}
	sum := strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"":                                     "it is empty",
		"abc  x\n":                             "line 1 is not of the form",
		sum + "  a/b\n":                        "line 1 is not of the form",
		sum + " one-gap\n":                     "line 1 is not of the form",
		strings.ToUpper(sum) + "  capitals\n":  "line 1 is not of the form",
		sum + "  twice\n" + sum + "  twice\n":  "line 2: twice is listed twice",
		sum + "  x\n\n" + sum + "  no-blank\n": "line 2 is not of the form",
	} {
		tests[text] = struct {
			list, signature []byte
			key             Key
			want            string
		}{[]byte(text), r.Sign([]byte(text), "paictl:v1"), key, want}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tt.list, tt.signature, tt.key)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAFileIsKnownByItsChecksumIfItWasRenamed(t *testing.T) {
	r, key := signed(t)
	l, err := Open(r.List, r.Signature, key)
	require.NoError(t, err)
	renamed := filepath.Join(r.Dir, "paictl")
	require.NoError(t, os.Rename(filepath.Join(r.Dir, program), renamed))
	v, err := l.Verify(t.Context(), renamed, "")
	require.NoError(t, err)
	assert.True(t, v.OK)
	assert.Equal(t, program, v.Name)

	v, err = l.Verify(t.Context(), renamed, "paictl_v1.2.2_linux_amd64")
	require.NoError(t, err)
	assert.False(t, v.OK, "a program must not be the one of another release")
	assert.Contains(t, v.Reason, "doesn't list paictl_v1.2.2_linux_amd64")

	v, err = l.Verify(t.Context(), filepath.Join(r.Dir, "missing"), "")
	require.NoError(t, err)
	assert.False(t, v.OK)
	assert.Contains(t, v.Reason, "no such file")

	foreign := filepath.Join(r.Dir, "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte("other"), 0o600))
	v, err = l.Verify(t.Context(), foreign, "")
	require.NoError(t, err)
	assert.False(t, v.OK)
	assert.Contains(t, v.Reason, "no file of v1.2.3 has its sha256")
}

func TestTheListOfAnInstalledProgramIsFound(t *testing.T) {
	r, key := signed(t)
	list, err := Find(filepath.Join(r.Dir, program))
	require.NoError(t, err)
	l, err := Read(list, key)
	require.NoError(t, err)
	assert.Equal(t, "v1.2.3", l.Version)

	prefix := t.TempDir()
	for _, dir := range []string{"bin", "share/paictl"} {
		require.NoError(t, os.MkdirAll(filepath.Join(prefix, dir), 0o755))
	}
	installed := filepath.Join(prefix, "bin/paictl")
	require.NoError(t, os.WriteFile(installed, nil, 0o600))
	_, err = Find(installed)
	require.ErrorContains(t, err, "found no checksums.txt")
	assert.Contains(t, hint.Of(err), "--checksums")
	require.NoError(t, os.WriteFile(filepath.Join(prefix, "share/paictl", ListFile), r.List, 0o600))
	list, err = Find(installed)
	require.NoError(t, err)
	_, err = Read(list, key)
	require.ErrorContains(t, err, "has no signature beside it")
}

func TestAListIsBounded(t *testing.T) {
	_, key := signed(t)
	_, err := Read("/dev/zero", key)
	require.ErrorContains(t, err, "/dev/zero has more than 1048576 bytes: it isn't a list of checksums")
}

func TestTheKeyIsAWordOrAFile(t *testing.T) {
	r, key := signed(t)
	assert.Regexp(t, `^RW\S{54}$`, key.String())
	file := filepath.Join(r.Dir, "minisign.pub")
	require.NoError(t, os.WriteFile(file, []byte("untrusted comment: minisign public key\n"+key.String()+"\n"), 0o600))
	read, err := ReadKey(file)
	require.NoError(t, err)
	assert.Equal(t, key.ID(), read.ID())

	_, err = ReadKey("RWnonsense")
	require.ErrorContains(t, err, "neither a public key of minisign nor a file")
	_, err = ReadKey(filepath.Join(r.Dir, program))
	require.ErrorContains(t, err, "contains no public key")
	_, err = ReadKey("")
	require.ErrorContains(t, err, "built without the public key")
	assert.Contains(t, hint.Of(err), "--key")
}

func TestTheNewestReleaseIsTheOneOfTheSignature(t *testing.T) {
	r, key := signed(t)
	address := r.Serve(t, func(_ http.ResponseWriter, req *http.Request) bool {
		req.URL.Path = strings.Replace(req.URL.Path, "v1.3.0", "v1.2.3", 1) // an address that serves an old release as another one
		return false
	})
	c := download.Client{HTTP: http.DefaultClient, Wait: download.Pause}
	l, err := Get(t.Context(), c, address+"/", "", key)
	require.NoError(t, err)
	assert.Equal(t, "v1.2.3", l.Version)

	_, err = Get(t.Context(), c, address, "v1.3.0", key)
	require.ErrorContains(t, err, "is signed for v1.2.3, not for v1.3.0")
	_, err = Get(t.Context(), c, address, "v9", key)
	require.ErrorContains(t, err, "404")
	assert.Contains(t, hint.Of(err), "--address")
}

func TestAnAddressOfReleasesIsThatOfAFolder(t *testing.T) {
	_, key := signed(t)
	for _, address := range []string{"ftp://ann:geheim@mirror.example", "https://mirror.example/?token=geheim", "https://mirror.example#geheim", "ftp://mirror.example", "mirror.example", "https://"} {
		_, err := Get(t.Context(), download.Client{}, address, "", key)
		require.ErrorContains(t, err, "is not an address below which releases are published")
		assert.NotContains(t, err.Error(), "geheim")
		assert.Contains(t, hint.Of(err), "PAICTL_RELEASE_ADDRESS")
	}
}

func TestVersionsAreCompared(t *testing.T) {
	for _, tt := range []struct {
		released, than string
		newer          bool
	}{
		{"v1.2.3", "v1.2.2", true},
		{"v1.2.3", "v1.2.3", false},
		{"v1.2.3", "v1.10.0", false},
		{"v1.2.3", "v1.2.3-rc.1", true},
		{"v0.1.0", "v0.1.0-dev+b04802d", true},
		{"v0.1.0", "unknown", true},
	} {
		newer, err := Newer(tt.released, tt.than)
		require.NoError(t, err)
		assert.Equal(t, tt.newer, newer, "%s and %s", tt.released, tt.than)
	}
	_, err := Newer("newest", "v1")
	require.ErrorContains(t, err, `"newest"`)
}
