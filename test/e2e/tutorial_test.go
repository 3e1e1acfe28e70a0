package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/test/docs/page"
)

// tutorial opens a shell for a tutorial. env holds additional environment variables. It returns the shell, and the steps of the tutorial.
func tutorial(t *testing.T, name, dir string, env ...string) (*page.Session, []page.Step) {
	t.Helper()
	pages, err := page.Read("../..", "docs/tutorials/"+name+".md")
	require.NoError(t, err)
	path := strings.Join([]string{filepath.Dir(paictl), filepath.Join(bundle, "bin"), os.Getenv("PATH")}, ":")
	// A sign-in stores its session in the configuration folder, so the shell gets a separate folder.
	env = append(append(os.Environ(), "NO_COLOR=1", "PAICTL_BUNDLE="+bundle, "PATH="+path, "XDG_CONFIG_HOME="+t.TempDir()), env...)
	s, err := page.Open(t.Context(), dir, env)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, pages[0].Steps()
}

// The tutorials for newcomers and researchers share a cluster, which "make demo" creates. This test runs before the parallel tests, which use the
// same bundle. "make demo" updates the bundle, and gives it another version if the checkout has changed.
func TestTheTutorialsOfNewcomersAndResearchersCanBeFollowed(t *testing.T) {
	if _, err := os.Stat(filepath.Join(sandbox.DefaultDir, "sandbox.json")); err == nil {
		t.Skip("skipped: there is a sandbox in " + sandbox.DefaultDir + " already, which this test would end")
	}
	enter(t, 3)
	lab := labIn(t, filepath.Join(t.TempDir(), "demo"))
	lab.dir = sandbox.DefaultDir
	t.Cleanup(lab.destroy)
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	demo := filepath.Join(checkout, "dist", "demo")
	newcomer, steps := tutorial(t, "newcomer", checkout)
	down := slices.IndexFunc(steps, func(s page.Step) bool { return s.Command == "paictl sandbox down" })
	require.Positive(t, down)
	require.NoError(t, newcomer.Play(steps[:down], t.Logf))
	researcher, its := tutorial(t, "researcher", t.TempDir(), "KUBECONFIG="+filepath.Join(demo, "kubeconfig"))
	require.NoError(t, researcher.Play(its, t.Logf))
	require.NoError(t, newcomer.Play(steps[down:], t.Logf))
}

// The hosts of this test have the addresses that the tutorial uses.
func TestTheTutorialOfOperatorsCanBeFollowed(t *testing.T) {
	const hosts = 4 // the tutorial adds one of them
	lab := newLab(t, "gpu", hosts-1, "--subnet", "10.0.0.0/24")
	operator, steps := tutorial(t, "operator", t.TempDir(), "SANDBOX="+lab.dir)
	require.NoError(t, operator.Play(steps, t.Logf))
}
