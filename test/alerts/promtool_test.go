package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
)

// promtool returns the path of the program that evaluates the rules, or skips the test.
func promtool(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("PAICTL_PROMTOOL"); path != "" {
		require.FileExists(t, path, "PAICTL_PROMTOOL")
		return path
	}
	_, path := bundletest.Need(t, bundle.KindTool, "promtool")
	return path
}

// run runs promtool. If promtool fails, it fails the test and shows the output.
func run(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), promtool(t), args...).CombinedOutput()
	require.NoError(t, err, "promtool %v:\n%s", args, out)
}

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	promtool(t)
	for group := range suites(t) {
		t.Run(group, func(t *testing.T) { run(t, "test", "rules", group+"_test.yaml") })
	}
}

func TestPrometheusUnderstandsWhatTheChartRenders(t *testing.T) {
	promtool(t)
	for _, c := range prometheusCases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, m := range configMaps(t, "prometheus", c.values) {
				for name, text := range m.Data {
					require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
				}
			}
			run(t, "check", "config", "--syntax-only", filepath.Join(dir, "prometheus.yml"))
			require.NoError(t, os.Remove(filepath.Join(dir, "prometheus.yml")))
			files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
			require.NoError(t, err)
			if len(files) > 0 {
				run(t, append([]string{"check", "rules"}, files...)...)
			}
		})
	}
}
