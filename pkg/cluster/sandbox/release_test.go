package sandbox

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

func mirror(t *testing.T, release, index string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a/dists/"+release+"/InRelease" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n" + index))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/a/"
}

func TestAnotherReleaseComesFromTheMirrorThatHasIt(t *testing.T) {
	const index = "Origin: Ubuntu\nSuite: noble\nCodename: noble\nComponents: main restricted universe multiverse\n"
	address := mirror(t, "noble", index)
	src, err := source(t.Context(), Options{Release: "noble", Mirror: address})
	require.NoError(t, err)
	src.proxy = ""
	assert.Equal(t, aptSource{release: "noble", mirror: address, components: []string{"main", "universe"}, foreign: true, ubuntu: true}, src)
	keys := filepath.Join(t.TempDir(), "keys.gpg")
	require.ErrorContains(t, src.requireKeys(keys), "no file "+keys)
	require.NoError(t, os.WriteFile(keys, nil, 0o600))
	require.NoError(t, src.requireKeys(keys))
	assert.Subset(t, debootstrapArgs(src, "/target"), []string{"--force-check-gpg", "--keyring=" + keys, "--components=main,universe", "noble", "/target", address})

	address = mirror(t, "forky", "Origin: Debian\nCodename: forky\nComponents: main contrib\n")
	src, err = source(t.Context(), Options{Release: "forky", Mirror: address})
	require.NoError(t, err)
	_ = src.requireKeys("") // an error if this machine isn't a Debian machine
	assert.Subset(t, debootstrapArgs(src, "/target"), []string{"--force-check-gpg", "--keyring=" + debianKeyring, "--components=main", "forky"})
	assert.Equal(t, filepath.Join(debootstrapScripts, "sid"), debootstrapArgs(aptSource{release: "nosuch"}, "/target")[6], "the script of a release that is newer than debootstrap")
}

func TestAReleaseThatAMirrorDoesNotHaveIsRefused(t *testing.T) {
	for name, index := range map[string]string{
		"another codename":  "Origin: Debian\nCodename: sid\nComponents: main\n",
		"no component main": "Origin: Debian\nCodename: noble\nComponents: extra\n",
		"not an index":      "<html>sign in</html>",
	} {
		_, err := source(t.Context(), Options{Release: "noble", Mirror: mirror(t, "noble", index)})
		require.ErrorContains(t, err, "has no release with the codename noble and the component main", name)
	}
	_, err := source(t.Context(), Options{Release: "noble", Mirror: mirror(t, "jammy", "")})
	require.ErrorContains(t, err, "404")
	assert.Contains(t, hint.Of(err), "--mirror")
}

func TestHostsOfAnotherReleaseHaveItsMirrorAndTheKeysOfTheirImage(t *testing.T) {
	base, dir := t.TempDir(), t.TempDir()
	r := &root{base: base, dir: dir}
	r.aptSources(&foreignRelease{Release: "noble", Mirror: "http://mirror.example/u", Components: []string{"main", "universe"}})
	require.NoError(t, r.err)
	b, err := os.ReadFile(filepath.Join(dir, "etc/apt/sources.list"))
	require.NoError(t, err)
	assert.Equal(t, "deb http://mirror.example/u noble main universe\n", string(b))
	assert.NoDirExists(t, filepath.Join(dir, "etc/apt/sources.list.d"))
	assert.NoDirExists(t, filepath.Join(dir, "usr/share/keyrings"))
}

func TestASandboxKeepsItsRelease(t *testing.T) {
	st := state{Base: "/var/cache/paictl/base-bookworm-0123456789ab"}
	require.NoError(t, st.agree(Options{Release: "bookworm"}))
	require.ErrorContains(t, st.agree(Options{Release: "trixie"}), "base-bookworm-0123456789ab, not trixie")
	require.ErrorContains(t, st.agree(Options{Release: "bookworm", Mirror: "http://mirror.example/d"}), "the mirror of this machine, not http://mirror.example/d")
	st.Foreign = &foreignRelease{Mirror: "http://mirror.example/d"}
	require.NoError(t, st.agree(Options{Release: "bookworm", Mirror: "http://mirror.example/d"}))
	require.ErrorContains(t, st.agree(Options{Release: "bookworm", Mirror: "http://other.example/d"}), "the mirror http://mirror.example/d, not http://other.example/d")
}

func TestAnImageIsThatOfItsMirrorAndKeys(t *testing.T) {
	one := aptSource{release: "noble", mirror: "http://a.example", keys: "1", foreign: true}
	other, keys, own := one, one, one
	other.mirror, keys.keys, own.foreign = "http://b.example", "2", false
	assert.Len(t, map[string]bool{baseID(one): true, baseID(other): true, baseID(keys): true, baseID(own): true}, 4)
}
