// Package bundletest finds a bundle for tests.
// In: PAICTL_TEST_BUNDLE, PAICTL_BUNDLE, or the bundle that "make test-more" builds. Out: the bundle's folder, and the file of an artifact.
package bundletest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/test/tier"
)

// Need returns the folder of the first bundle that contains an artifact, and the path of the artifact's file. It skips the test if no bundle contains
// the artifact.
func Need(t testing.TB, kind, name string) (folder, file string) {
	t.Helper()
	tier.More(t, "a bundle")
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = ""
	}
	for _, dir := range []string{os.Getenv("PAICTL_TEST_BUNDLE"), os.Getenv("PAICTL_BUNDLE"), filepath.Join(cache, "paictl", "bundle")} {
		if dir == "" {
			continue
		}
		b, err := bundle.Open(dir)
		if err != nil {
			continue
		}
		if a, ok := b.Lookup(kind, name); ok {
			return dir, b.File(a)
		}
	}
	t.Skipf("no bundle has %s; make one with \"make bundle\", or name it in PAICTL_TEST_BUNDLE", name)
	return "", ""
}

// ControlPlane returns the folder of a bundle that can start a control plane with simulated nodes. It skips the test if no such bundle exists.
func ControlPlane(t testing.TB) string {
	t.Helper()
	folder, _ := Need(t, bundle.KindTool, "kwok")
	return folder
}
