package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func testFactory(t *testing.T) (f *cmdutil.Factory, out, errOut func() string) {
	t.Helper()
	home := t.TempDir()
	f = cmdutil.New("test")
	streams, _, o, e := iostreams.Test()
	f.IO = streams
	f.Getenv = func(k string) string { return map[string]string{"HOME": home}[k] }
	return f, o.String, e.String
}

func execute(t *testing.T, cmd *cobra.Command, args ...string) error {
	t.Helper()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context())
}

func TestUpTurnsFlagsIntoOptions(t *testing.T) {
	f, _, _ := testFactory(t)
	var got *UpOptions
	cmd := NewCmdUp(f, func(_ context.Context, o *UpOptions) error { got = o; return nil })
	require.NoError(t, execute(t, cmd, "--hosts", "50", "--light", "--name", "many", "-d", "/x", "--subnet", "10.9.9.0/24", "--bundle", "/b"))
	assert.Equal(t, sandbox.Options{Dir: "/x", Name: "many", Hosts: 50, Kind: sandbox.Light, Subnet: "10.9.9.0/24", Bundle: "/b", CacheDir: sandbox.DefaultCache}, got.Sandbox)
	assert.False(t, got.APIOnly)
}

func TestUpRefusesFlagsThatContradict(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"light hosts without hosts": {[]string{"--api-only", "--light"}, "--light is for hosts"},
		"a network without hosts":   {[]string{"--api-only", "--subnet", "10.0.0.0/24"}, "--subnet is for hosts"},
		"a release without hosts":   {[]string{"--api-only", "--release", "noble"}, "--release is for hosts"},
		"a layout for hosts":        {[]string{"--layout", "layout.yaml"}, "--layout needs --api-only"},
		"two numbers of nodes":      {[]string{"--api-only", "--layout", "l", "--hosts", "4"}, "give one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, _ := testFactory(t)
			cmd := NewCmdUp(f, func(context.Context, *UpOptions) error { t.Error("it ran"); return nil })
			err := execute(t, cmd, tt.args...)
			require.ErrorContains(t, err, tt.want)
			assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
		})
	}
}

func TestSSHHandsTheCommandThroughWithItsFlags(t *testing.T) {
	f, _, _ := testFactory(t)
	var got *SSHOptions
	cmd := NewCmdSSH(f, func(_ context.Context, o *SSHOptions) error { got = o; return nil })
	require.NoError(t, execute(t, cmd, "pai-1", "-u", "pai", "--", "ls", "-l", "--", "/"))
	assert.Equal(t, "pai-1", got.Host)
	assert.Equal(t, "pai", got.User)
	assert.Equal(t, []string{"ls", "-l", "--", "/"}, got.Command)
}

func TestStopTakesSeveralHosts(t *testing.T) {
	f, _, _ := testFactory(t)
	var got *PowerOptions
	cmd := NewCmdStop(f, func(_ context.Context, o *PowerOptions) error { got = o; return nil })
	require.NoError(t, execute(t, cmd, "pai-1", "pai-2", "--unplug"))
	assert.Equal(t, []string{"pai-1", "pai-2"}, got.Hosts)
	assert.True(t, got.Unplug)
	require.Error(t, execute(t, NewCmdStop(f, nil)), "which host?")
}

func TestListAndDownWithoutASandboxAreNoFailure(t *testing.T) {
	f, out, errOut := testFactory(t)
	dir := t.TempDir()
	require.NoError(t, execute(t, NewCmdList(f), "-d", dir, "-o", "json"))
	assert.JSONEq(t, `{"name":"","dir":"`+dir+`","hosts":[]}`, out())
	require.NoError(t, execute(t, NewCmdDown(f), "-d", dir))
	assert.Contains(t, errOut(), "no sandbox in "+dir)
}

func TestTheUsersFolderIsHisOwn(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	assert.Equal(t, sandbox.DefaultDir, defaultDir(0, env(map[string]string{"HOME": "/root"})))
	assert.Equal(t, "/home/a/.local/state/paictl/sandbox", defaultDir(1000, env(map[string]string{"HOME": "/home/a"})))
	assert.Equal(t, "/s/paictl/sandbox", defaultDir(1000, env(map[string]string{"HOME": "/home/a", "XDG_STATE_HOME": "/s"})))
}

func TestALayoutAloneGivesItsMachinesAsNodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "layout.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`apiVersion: paictl.openpai.org/v1
kind: Layout
machine-sku:
  a100: {mem: 1Ti, cpu: {vcore: 96}, gpu: {type: A100, count: 8}, os: ubuntu22.04, discovered: true}
machine-list:
  - {hostname: gpu-1, hostip: 10.1.0.2, machine-type: a100, roles: [worker], labels: {rack: r1}, taints: ["a=b:NoSchedule"]}
`), 0o600))
	nodes, err := simulatedNodes(path)
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	assert.Equal(t, "gpu-1", nodes[0].Name)
	assert.Equal(t, 8, nodes[0].GPUs)
	assert.Equal(t, map[string]string{"rack": "r1"}, nodes[0].Labels)
	assert.Equal(t, []string{"a=b:NoSchedule"}, nodes[0].Taints)
}

func TestABadLayoutIsNamedWithItsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "layout.yaml")
	require.NoError(t, os.WriteFile(path, []byte("kind: Layout\nmachines: []\n"), 0o600))
	_, err := simulatedNodes(path)
	require.ErrorContains(t, err, "layout.yaml:2")
	_, err = simulatedNodes(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
