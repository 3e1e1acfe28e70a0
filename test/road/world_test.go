// Package road runs jobs through the main components of the platform: submission, job controller, scheduler, job runtime, logs.
// In: etcd and an API server, and pai-controller, pai-scheduler, pai-server, pai-runtime and paictl as processes; only the kubelet is simulated.
// Out: jobs and logs, as an operator with a kubeconfig and people who have signed in see them.
package road

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/test/platform"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) {
	chooseControlPlane()
	os.Exit(platform.Run(m))
}

// bundleVariable is the environment variable with the path of the tests' bundle.
const bundleVariable = "PAICTL_TEST_BUNDLE"

// chooseControlPlane selects the control plane that "make test" builds, unless the environment variable is set.
func chooseControlPlane() {
	cache, err := os.UserCacheDir()
	if err == nil && os.Getenv(bundleVariable) == "" {
		_ = os.Setenv(bundleVariable, filepath.Join(cache, "paictl", "control-plane")) // an impossible name can't be set
	}
}

// needControlPlane fails the test if there is no control plane. The test is never skipped for that reason.
func needControlPlane(t *testing.T) {
	t.Helper()
	tier.More(t, "a control plane and our programs")
	folder := os.Getenv(bundleVariable)
	b, err := bundle.Open(folder)
	require.NoError(t, err, "build a control plane: go run ./hack/controlplane %s", folder)
	for _, name := range []string{"etcd", "kube-apiserver"} {
		_, found := b.Lookup(bundle.KindTool, name)
		require.True(t, found, "the bundle in %s has no %s; build a control plane: go run ./hack/controlplane %s", folder, name, folder)
	}
}

// patience is how long one operation may take on a busy machine.
const patience = 2 * time.Minute

// machines is the configuration of three nodes with four GPUs each, for two virtual clusters.
const machines = `physicalCluster:
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: road-1}
    - {cellType: NODE, cellAddress: road-2}
    - {cellType: NODE, cellAddress: road-3}
virtualClusters:
  default:
    virtualCells: [{cellType: NODE, cellNumber: 2}]
  other:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
`

// nodes lists the nodes of the virtual clusters.
var nodes = []string{"road-1", "road-2", "road-3"}

// world is a platform with people.
type world struct {
	*platform.Platform
	t *testing.T
}

func newWorld(t *testing.T) *world {
	t.Helper()
	needControlPlane(t)
	w := &world{t: t, Platform: platform.Start(t, platform.Options{Nodes: nodes, Machines: machines, Host: "127.77.255.1"})}
	w.people()
	return w
}
