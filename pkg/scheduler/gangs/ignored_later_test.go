package gangs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// A pod that another scheduler bound runs on a machine that is later added to the configuration. As after a restart, its GPUs
// must not be allocated to other pods.
func TestAPodThatIsIgnoredKeepsTheGPUsOfANodeThatIsAddedLater(t *testing.T) {
	full := strings.Replace(twoTeams, "  physicalCells:\n", "  physicalCells:\n    - {cellType: NODE, cellAddress: late}\n", 1)
	full = strings.Replace(full, "  B:\n    virtualCells: [", "  B:\n    virtualCells: [{cellType: NODE, cellNumber: 1}, ", 1)
	c := newCluster(t, twoTeams, readyNode("late"))
	foreign := newPod("foreign", spec("B", 1, "foreign:1:2"))
	foreign.Spec.NodeName = "late"
	foreign = c.create(foreign)
	c.wait(foreign, api.Ignored)
	c.run(newPod("first", spec("B", 1, "first:1:2")))
	c.reconfigure(full)
	require.Empty(t, c.b.problem)
	c.waits(c.create(newPod("second", spec("B", 1, "second:1:2"))))
}
