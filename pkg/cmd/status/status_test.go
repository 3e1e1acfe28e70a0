package status

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func run(t *testing.T, args ...string) (*StatusOptions, error) {
	t.Helper()
	io, _, _, _ := iostreams.Test()
	var got *StatusOptions
	f := cmdutil.New("v0")
	f.IO = io
	cmd := NewCmdStatus(f, func(_ context.Context, o *StatusOptions) error {
		got = o
		return nil
	})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return got, err
}

func TestFlagsThatExcludeEachOtherAreMistakes(t *testing.T) {
	for _, args := range []string{"--once --watch", "--watch -o yaml", "--watch -o name", "-o xml", "more"} {
		_, err := run(t, strings.Fields(args)...)
		require.Error(t, err, args)
	}
	for _, args := range []string{"", "--once", "--all -o wide", "--watch -o json", "--kubeconfig k --context c"} {
		_, err := run(t, strings.Fields(args)...)
		require.NoError(t, err, args)
	}
}

func TestAChangeIsALineOfTextOrOfJSON(t *testing.T) {
	io, _, out, _ := iostreams.Test()
	f := cmdutil.New("v0")
	f.IO = io
	opts := &StatusOptions{Factory: f}
	cmdutil.AddOutputFlag(&cobra.Command{}, &opts.Output)
	c := &status.Change{Kind: "job", Name: "alice/tr\x1b[31main\nx", From: "queued (2nd)", To: "running"}
	require.NoError(t, opts.writeChange(c))
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
	assert.NotContains(t, out.String(), "\x1b")
	assert.Contains(t, out.String(), "job alice/tr[31main x queued (2nd) -> running")

	out.Reset()
	require.NoError(t, opts.Output.Set("json"))
	require.NoError(t, opts.writeChange(c))
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
	var back status.Change
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	assert.Equal(t, *c, back)
}

func TestAPersonAtATerminalGetsTheView(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(config, []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {}}]}`), 0o600))
	for _, tc := range []struct {
		args     string
		terminal bool
		view     bool
	}{
		{"", true, true}, {"", false, false}, {"--once", true, false}, {"-o json", true, false}, {"-o wide", true, false},
	} {
		io, _, _, _ := iostreams.Test()
		io.SetTerminal(tc.terminal)
		f := cmdutil.New("v0")
		f.IO = io
		seen := false
		cmd := NewCmdStatus(f, func(ctx context.Context, o *StatusOptions) error {
			assert.NotNil(t, o.View)
			assert.Equal(t, "cluster", o.Dir)
			o.View = func(context.Context, *cmdutil.Factory, Following) error { seen = true; return nil }
			return statusRun(ctx, o)
		})
		cmd.SetArgs(append(strings.Fields(tc.args), "--kubeconfig", config, "-p", "cluster"))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		assert.Equal(t, tc.view, err == nil, "no server answers there")
		assert.Equal(t, tc.view, seen, "%v", tc)
	}
}
