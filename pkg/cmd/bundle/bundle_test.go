package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/release"
	"github.com/openpai/paictl/pkg/release/releasetest"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/version"
)

// newBundle creates a bundle with a program and an image, and returns its folder.
func newBundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	w, err := bundle.Create(dir, &bundle.Manifest{Kubernetes: "v1.36.3", Arch: "amd64", Origin: bundle.OriginBuild})
	require.NoError(t, err)
	defer w.Close()
	for _, a := range []bundle.Artifact{
		{Name: "kubelet", Kind: bundle.KindBinary, Source: "k8s.io/kubernetes@v1.36.3"},
		{Name: "etcd", Kind: bundle.KindImage, Source: "go.etcd.io/etcd@v3", Image: "registry.k8s.io/etcd:3.6.8-0", Roles: []string{"master"},
			Digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
		{Name: "kwok", Kind: bundle.KindTool, Source: "sigs.k8s.io/kwok@v0.8.0"},
	} {
		a.Version, a.Path = "v1", bundle.PathOf(a.Kind, a.Name)
		file := w.Work("file")
		require.NoError(t, os.WriteFile(file, []byte(a.Name), 0o600))
		_, err := w.Add(t.Context(), a, a.Name, file)
		require.NoError(t, err)
	}
	_, err = w.Commit()
	require.NoError(t, err)
	return dir
}

// paictl runs "paictl bundle" with the given arguments.
func paictl(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	f := cmdutil.New("test")
	var o, e *bytes.Buffer
	f.IO, _, o, e = iostreams.Test()
	f.Getenv = func(string) string { return "" }
	cmd := NewCmdBundle(f)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(o)
	cmd.SetErr(e)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

func TestListShowsWhatGoesWhere(t *testing.T) {
	out, _, err := paictl(t, "list", newBundle(t))
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^NAME +KIND +VERSION +MB +SHA256 +NODES +SOURCE$`, out)
	assert.Regexp(t, `(?m)^kubelet +binary +v1 +0\.0 +[0-9a-f]{12} +all +k8s\.io/kubernetes@v1\.36\.3$`, out)
	assert.Regexp(t, `(?m)^etcd +image .* master `, out)
	assert.Regexp(t, `(?m)^kwok +tool .* none `, out)
}

func TestListTakesAKindAndAFormat(t *testing.T) {
	dir := newBundle(t)
	out, _, err := paictl(t, "list", dir, "--kind", "image", "-o", "json")
	require.NoError(t, err)
	var m bundle.Manifest
	require.NoError(t, json.Unmarshal([]byte(out), &m))
	require.Len(t, m.Artifacts, 1)
	assert.Equal(t, "registry.k8s.io/etcd:3.6.8-0", m.Artifacts[0].Image)

	out, _, err = paictl(t, "list", dir, "-o", "name")
	require.NoError(t, err)
	assert.Equal(t, "kubelet\netcd\nkwok\n", out)

	_, _, err = paictl(t, "list", dir, "--kind", "script")
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
}

func TestVerifyIsSilentOnStdoutWhenAllIsWell(t *testing.T) {
	dir := newBundle(t)
	out, errOut, err := paictl(t, "verify", dir)
	require.NoError(t, err)
	assert.Empty(t, out)
	assert.Equal(t, "bundle "+dir+" is complete: 3 files\n", errOut)
}

func TestVerifyShowsEveryBadFileAndTheRemedy(t *testing.T) {
	dir := newBundle(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin/kubelet"), []byte("damaged"), 0o755))
	require.NoError(t, os.Remove(filepath.Join(dir, "tools/kwok")))
	out, _, err := paictl(t, "verify", dir)
	require.ErrorContains(t, err, "2 of 3 files")
	assert.Equal(t, cmdutil.ExitFailure, cmdutil.ExitCode(err))
	assert.Contains(t, hint.Of(err), "rm -f bin/kubelet) && paictl bundle build -o "+dir)
	assert.Regexp(t, `(?m)^bin/kubelet +[0-9a-f]{64} +[0-9a-f]{64}$`, out)
	assert.Regexp(t, `(?m)^tools/kwok +[0-9a-f]{64} +missing$`, out)

	out, _, err = paictl(t, "verify", dir, "-o", "json")
	require.Error(t, err)
	var list []verdict
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	bad := map[string]bool{}
	for _, v := range list {
		bad[v.Name] = !v.OK
	}
	assert.Equal(t, map[string]bool{"kubelet": true, "etcd": false, "kwok": true}, bad)
}

func TestFlagsReachTheRun(t *testing.T) {
	f := cmdutil.New("test")
	f.IO, _, _, _ = iostreams.Test()
	f.Getenv = func(string) string { return "" }

	t.Run("build", func(t *testing.T) {
		var got *buildOptions
		cmd := newCmdBuild(f, func(_ context.Context, o *buildOptions) error { got = o; return nil })
		cmd.SetArgs([]string{"-o", "x", "--source", "y"})
		require.NoError(t, cmd.Execute())
		assert.Equal(t, "x", got.Dir)
		assert.Equal(t, "y", got.Source)
	})
	t.Run("fetch", func(t *testing.T) {
		var got *fetchOptions
		cmd := newCmdFetch(f, func(_ context.Context, o *fetchOptions) error { got = o; return nil })
		cmd.SetArgs([]string{"--mirror", "https://m.example.org", "--lock", "l", "--arch", "arm64"})
		require.NoError(t, cmd.Execute())
		assert.Equal(t, fetchOptions{IO: f.IO, Dir: bundle.DefaultDir, Lock: "l", Mirror: "https://m.example.org", Arch: "arm64", From: fromUpstream}, *got)
	})
}

func TestTheFolderIsTheGivenOneOrThatOfTheSettingsOrTheDefault(t *testing.T) {
	f := cmdutil.New("test")
	env := map[string]string{}
	f.Getenv = func(k string) string { return env[k] }
	dir, err := folder(f, "", nil)
	require.NoError(t, err)
	assert.Equal(t, bundle.DefaultDir, dir)

	env["PAICTL_BUNDLE"] = "/srv/bundle"
	dir, err = folder(f, "", nil)
	require.NoError(t, err)
	assert.Equal(t, "/srv/bundle", dir)
	dir, err = folder(f, "given", nil)
	require.NoError(t, err)
	assert.Equal(t, "given", dir)
}

func TestTheMirrorCanComeFromTheEnvironment(t *testing.T) {
	f := cmdutil.New("test")
	f.IO, _, _, _ = iostreams.Test()
	f.Getenv = func(k string) string { return map[string]string{"PAICTL_MIRROR": "https://env.example.org"}[k] }
	var got *fetchOptions
	cmd := newCmdFetch(f, func(_ context.Context, o *fetchOptions) error { got = o; return nil })
	cmd.SetArgs(nil)
	require.NoError(t, cmd.Execute())
	assert.Equal(t, "https://env.example.org", got.Mirror)
}

func TestAReleasedPaictlFetchesFromItsRelease(t *testing.T) {
	r := releasetest.New(t, version.Version, map[string][]byte{release.BundleArchive(version.Version, "amd64"): []byte("not an archive")})
	t.Cleanup(func() { release.PublicKey = "" })
	release.PublicKey = r.Key
	address := r.Serve(t, nil)
	dir := filepath.Join(t.TempDir(), "bundle")
	out, _, err := paictl(t, "fetch", "--arch", "amd64", "--address", address, "-o", dir, "--dry-run")
	require.NoError(t, err)
	assert.Contains(t, out, "from "+address+"/download/"+version.Version+"/paictl-bundle_")
	assert.Contains(t, out, "signed with the key "+r.Key)
	assert.NoDirExists(t, dir)

	_, _, err = paictl(t, "fetch", "--arch", "amd64", "--address", address, "-o", dir)
	require.ErrorContains(t, err, "unpack paictl-bundle_"+version.Version)
	_, _, err = paictl(t, "fetch", "--arch", "arm64", "--address", address, "-o", dir)
	require.ErrorContains(t, err, "doesn't list paictl-bundle_")
	assert.Contains(t, hint.Of(err), "has no bundle for arm64")
}

func TestFlagsOfAnotherSourceAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--from", "nowhere"}, {"--dry-run"}, {"--key", "x"}, {"--from", "upstream", "--address", "https://x.example.org"},
	} {
		_, _, err := paictl(t, append([]string{"fetch"}, args...)...)
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err), "%v: %v", args, err)
	}
	_, _, err := paictl(t, "fetch", "--from", "release")
	require.ErrorContains(t, err, "built without the public key of releases")
}

func TestFetchRefusesAnArchitectureThatUpstreamsDoNotPublish(t *testing.T) {
	_, _, err := paictl(t, "fetch", "--arch", "mips")
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
}

func TestTheBundleIsAnArgumentOrAFlag(t *testing.T) {
	f := cmdutil.New("test")
	dir, err := folder(f, "", []string{"argument"})
	require.NoError(t, err)
	assert.Equal(t, "argument", dir)
	_, err = folder(f, "flag", []string{"argument"})
	require.ErrorContains(t, err, "named twice")
	for _, cmd := range []*cobra.Command{newCmdList(f, func(_ context.Context, o *listOptions) error { dir = o.Dir; return nil }), newCmdVerify(f, func(_ context.Context, o *verifyOptions) error { dir = o.Dir; return nil })} {
		dir = ""
		cmd.SetArgs([]string{"--bundle", "flag"})
		require.NoError(t, cmd.ExecuteContext(t.Context()))
		assert.Equal(t, "flag", dir, cmd.Name())
	}
}
