package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// run runs a command on a terminal. answers is the user's input.
func run(t *testing.T, answers string, args ...string) (code int, errOut string) {
	t.Helper()
	f := cmdutil.New("v0.0.0-test")
	io, _, _, e := iostreams.Test()
	io.In = strings.NewReader(answers)
	io.SetTerminal(true)
	f.IO = io
	code = cmd.Main(t.Context(), f, args)
	return code, e.String()
}

func TestAPersonSeesWhichClusterGetsItsFirstConfiguration(t *testing.T) {
	kubeconfig := kubetest.Kubeconfig(t)
	forget(t)
	t.Setenv("HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "cluster")
	quick := filepath.Join(t.TempDir(), "q.yaml")
	require.NoError(t, os.WriteFile(quick, []byte("machines: [10.0.0.1]\ndns: [10.0.0.53]\n"), 0o600))
	code, text := run(t, "", "config", "generate", "-i", quick, "-o", dir, "--offline")
	require.Zero(t, code, text)

	code, text = run(t, "maybe\nno\n", "config", "push", "-p", dir, "--kubeconfig", kubeconfig)
	assert.Equal(t, 1, code)
	assert.Contains(t, text, "context     sandbox-test\n  server      https://127.0.0.1:")
	assert.Equal(t, 2, strings.Count(text, `Make it the cluster "pai"? [yes/no]`))
	assert.Contains(t, text, "the first push to a cluster was not confirmed")

	code, text = run(t, "yes\n", "config", "push", "-p", dir, "--kubeconfig", kubeconfig)
	assert.Zero(t, code, text)
	assert.Contains(t, text, "pushed revision 1 of cluster pai")
}

func TestAPushComparesServicesForReadersWithoutReleases(t *testing.T) {
	kubeconfig := kubetest.Kubeconfig(t)
	forget(t)
	t.Setenv("HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "cluster")
	quick := filepath.Join(t.TempDir(), "q.yaml")
	require.NoError(t, os.WriteFile(quick, []byte("machines: [10.0.0.1]\ndns: [10.0.0.53]\n"), 0o600))
	code, text := run(t, "", "config", "generate", "-i", quick, "-o", dir, "--offline")
	require.Zero(t, code, text)

	client := kubetest.Start(t).Client
	reporter := &facts.Reporter{Client: client, Ready: ready.New(client), Now: time.Now}
	current := func() {
		t.Helper()
		report, err := reporter.Report(t.Context())
		require.NoError(t, err)
		assert.NotEmpty(t, report.Items)
		assert.Empty(t, report.Notes)
	}
	code, text = run(t, "", "config", "push", "-p", dir, "--yes", "--kubeconfig", kubeconfig)
	require.Zero(t, code, text)
	current()

	services := filepath.Join(dir, "services-configuration.yaml")
	b, err := os.ReadFile(services)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(services, append(b, "\ngrafana: {enabled: false}\n"...), 0o600))
	code, text = run(t, "", "config", "push", "-p", dir, "--kubeconfig", kubeconfig)
	require.Zero(t, code, text)
	current()
	code, text = run(t, "", "config", "rollback", "1", "--yes", "--kubeconfig", kubeconfig)
	require.Zero(t, code, text)
	current()
}
