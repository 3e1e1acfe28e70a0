package version

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/release"
	"github.com/openpai/paictl/pkg/release/releasetest"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/version"
)

// paictl runs "paictl version" with the given arguments. running is the path of the running program, and key is the public key that is built
// into the program.
func paictl(t *testing.T, running, key string, env map[string]string, args ...string) (out string, err error) {
	t.Helper()
	was := release.PublicKey
	t.Cleanup(func() { release.PublicKey = was })
	release.PublicKey = key
	f := cmdutil.New("test")
	var o *bytes.Buffer
	f.IO, _, o, _ = iostreams.Test()
	f.Getenv = func(name string) string { return env[name] }
	cmd := NewCmdVersion(f, func(ctx context.Context, opts *Options) error {
		opts.Program = func() (string, error) { return running, nil }
		return versionRun(ctx, opts)
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return o.String(), err
}

// thisProgram returns the name of the running program in its release.
func thisProgram() string {
	return release.Program("paictl", version.Version, runtime.GOOS, runtime.GOARCH)
}

func TestTheRunningProgramIsVerified(t *testing.T) {
	r := releasetest.New(t, version.Version, map[string][]byte{thisProgram(): []byte("the program"), "other": []byte("other")})
	running := filepath.Join(r.Dir, "paictl")
	require.NoError(t, os.Rename(filepath.Join(r.Dir, thisProgram()), running))
	out, err := paictl(t, running, r.Key, nil, "--verify")
	require.NoError(t, err)
	assert.Contains(t, out, "ok       "+running+" is "+thisProgram()+" of "+version.Version)
	assert.Contains(t, out, "signed   with the key "+r.Key)

	// The file isn't the expected program of the release.
	require.NoError(t, os.WriteFile(running, []byte("other"), 0o600))
	out, err = paictl(t, running, r.Key, nil, "--verify")
	require.ErrorContains(t, err, "1 of 1 file didn't match the release "+version.Version)
	assert.Contains(t, hint.Of(err), "download them again")
	assert.Equal(t, cmdutil.ExitFailure, cmdutil.ExitCode(err))
	assert.Contains(t, out, "refused  "+running+": it has sha256 ")
}

// The program that paictl starts is verified with it, and has to be the program of that name.
func TestTheProgramBesideIsVerified(t *testing.T) {
	history := release.Program("paictl-history", version.Version, runtime.GOOS, runtime.GOARCH)
	r := releasetest.New(t, version.Version, map[string][]byte{thisProgram(): []byte("the program"), history: []byte("history"), "other": []byte("other")})
	bin, link := filepath.Join(r.Dir, "bin"), filepath.Join(r.Dir, "link")
	require.NoError(t, os.Mkdir(bin, 0o755))
	require.NoError(t, os.Rename(filepath.Join(r.Dir, thisProgram()), filepath.Join(bin, "paictl")))
	beside := filepath.Join(bin, "paictl-history")
	require.NoError(t, os.Rename(filepath.Join(r.Dir, history), beside))
	require.NoError(t, os.Symlink(filepath.Join(bin, "paictl"), link))
	list := filepath.Join(r.Dir, release.ListFile)
	out, err := paictl(t, link, r.Key, nil, "--verify", "--checksums", list)
	require.NoError(t, err)
	assert.Contains(t, out, "ok       "+link+" is "+thisProgram())
	assert.Contains(t, out, "ok       "+beside+" is "+history)
	require.NoError(t, os.WriteFile(beside, []byte("other"), 0o600))
	out, err = paictl(t, link, r.Key, nil, "--verify", "--checksums", list)
	require.ErrorContains(t, err, "1 of 2 files didn't match")
	assert.Contains(t, out, "refused  "+beside)
}

func TestFilesAreVerifiedForAProgram(t *testing.T) {
	r := releasetest.New(t, "v1.2.3", map[string][]byte{"a.deb": []byte("a"), "b.rpm": []byte("b")})
	a, b := filepath.Join(r.Dir, "a.deb"), filepath.Join(r.Dir, "b.rpm")
	require.NoError(t, os.WriteFile(b, []byte("c"), 0o600))
	out, err := paictl(t, "", "", nil, "--verify", a, b, "--key", r.Key, "--checksums", filepath.Join(r.Dir, release.ListFile), "-o", "json")
	require.ErrorContains(t, err, "1 of 2 files")
	var got verification
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	assert.Equal(t, "v1.2.3", got.Release)
	require.Len(t, got.Files, 2)
	assert.True(t, got.Files[0].OK)
	assert.False(t, got.Files[1].OK)
	assert.NotEmpty(t, got.Files[1].Want)
}

func TestWithoutAKeyNothingIsVerified(t *testing.T) {
	r := releasetest.New(t, "v1.2.3", map[string][]byte{"a.deb": []byte("a")})
	for _, args := range [][]string{{"--verify", filepath.Join(r.Dir, "a.deb")}, {"--check"}} {
		_, err := paictl(t, "", "", nil, args...)
		require.ErrorContains(t, err, "built without the public key of releases")
	}
}

func TestANewerReleaseIsReported(t *testing.T) {
	r := releasetest.New(t, "v99.0.0", map[string][]byte{"x": nil})
	address := r.Serve(t, nil)
	out, err := paictl(t, "", r.Key, nil, "--check", "--address", address)
	require.NoError(t, err)
	assert.Contains(t, out, "v99.0.0 is released, of 2023-11-14; this is "+version.Version)

	out, err = paictl(t, "", r.Key, map[string]string{"PAICTL_RELEASE_ADDRESS": address}, "--check", "-o", "json")
	require.NoError(t, err)
	assert.Contains(t, out, `"newer": true`)

	out, err = paictl(t, "", r.Key, nil, "--check", "--address", strings.Replace(address, "://", "://u:sekrit@", 1))
	require.NoError(t, err)
	assert.NotContains(t, out, "sekrit")

	old := releasetest.New(t, "v0.0.1", map[string][]byte{"x": nil})
	out, err = paictl(t, "", old.Key, nil, "--check", "--address", old.Serve(t, nil))
	require.NoError(t, err)
	assert.Contains(t, out, "the newest release is v0.0.1")
}

// transport is a function that responds to HTTP requests.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestOnlyCheckMakesRequests(t *testing.T) {
	r := releasetest.New(t, version.Version, map[string][]byte{thisProgram(): []byte("the program")})
	address := r.Serve(t, nil)
	was := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = was })
	var asked []string
	http.DefaultTransport = transport(func(req *http.Request) (*http.Response, error) {
		asked = append(asked, req.URL.String())
		return was.RoundTrip(req)
	})
	program := filepath.Join(r.Dir, thisProgram())
	env := map[string]string{"PAICTL_RELEASE_ADDRESS": address}
	for _, args := range [][]string{nil, {"-o", "json"}, {"--verify"}, {"--verify", program}, {"--verify", "-o", "json"}} {
		_, err := paictl(t, program, r.Key, env, args...)
		require.NoError(t, err, "%v", args)
		assert.Empty(t, asked, "%v", args)
	}
	_, err := paictl(t, program, r.Key, env, "--check")
	require.NoError(t, err)
	assert.Equal(t, []string{address + "/latest/download/" + release.ListFile, address + "/latest/download/" + release.SignatureFile}, asked)
}

func TestFlagsThatDoNotBelongTogetherAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--verify", "--check"}, {"--checksums", "x"}, {"--address", "x"}, {"--key", "x"}, {"--verify", "--address", "x"},
	} {
		_, err := paictl(t, "", "", nil, args...)
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err), "%v: %v", args, err)
	}
}
