package support_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestMain(m *testing.M) {
	cmdtest.Main(kubetest.Wrap(m), func() { os.Exit(cmd.Main(context.Background(), cmdutil.New("v0.0.0-test"), os.Args[1:])) })
}

func TestScripts(t *testing.T) { cmdtest.Run(t) }

func TestScriptsOnAServer(t *testing.T) {
	cmdtest.RunIn(t, "testdata/server", map[string]string{"KUBECONFIG": kubetest.Kubeconfig(t)})
}

func paictl(ctx context.Context, args ...string) (code int, out, said string) {
	f := cmdutil.New("v0.0.0-test")
	io, _, stdout, stderr := iostreams.Test()
	f.IO = io
	f.Getenv = func(string) string { return "" }
	code = cmd.Main(ctx, f, args)
	return code, stdout.String(), stderr.String()
}

// The machine in the configuration accepts connections but doesn't respond, so that the command has to wait.
func TestNothingIsLeftOfABundleThatIsCancelled(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/q.yaml", []byte("machines: [192.0.2.1]\nssh-password: hunter2-hunter2\n"), 0o600))
	code, _, said := paictl(t.Context(), "config", "generate", "-i", dir+"/q.yaml", "-o", dir+"/c", "--offline")
	require.Zero(t, code, said)
	out := filepath.Join(dir, "out")
	require.NoError(t, os.Mkdir(out, 0o700))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		assert.Eventually(t, func() bool {
			entries, err := os.ReadDir(out)
			return err == nil && len(entries) == 1
		}, time.Minute, 10*time.Millisecond, "the archive is begun")
		cancel()
	}()
	begun := time.Now()
	code, _, said = paictl(ctx, "support-bundle", "-p", dir+"/c", "-o", out, "--kubeconfig", dir+"/none")
	assert.Equal(t, cmdutil.ExitCancelled, code, said)
	assert.Less(t, time.Since(begun), 30*time.Second)
	left, err := os.ReadDir(out)
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.NotContains(t, said, "hunter2")
	assert.True(t, strings.HasPrefix(said[strings.LastIndex(said, "paictl:"):], "paictl: cancelled"))
}
