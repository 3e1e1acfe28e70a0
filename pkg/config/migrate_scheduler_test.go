package config

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHiveDsFileBecomesTheSectionOfTheScheduler(t *testing.T) {
	const layoutText = "machine-sku: {x: {mem: 1, cpu: {vcore: 1}, os: a}}\nmachine-list: [{hostname: a, hostip: 10.0.0.1, k8s-role: master, pai-master: \"true\", machine-type: x}]\n"
	for name, c := range map[string]struct {
		section string
		want    any
		reasons []string
	}{
		"cells and virtual clusters": {`
hivedscheduler:
  webservice-port: 30096
  config: |
    # OpenPAI's own comment.
    webServerAddress: ":30096"
    waitingPodSchedulingBlockMilliSec: 50
    physicalCluster:
      skuTypes:
        V100: {gpu: 1, cpu: 5, memory: 50Gi}
      cellTypes:
        V100-NODE: {childCellType: V100, childCellNumber: 4, isNodeLevel: true, colour: red}
      physicalCells:
      - cellType: V100-NODE
        cellAddress: worker-1
        cellChildren: [{cellAddress: 2, note: x}, {pinnedCellId: mine}]
    virtualClusters:
      default:
        virtualCells:
        - cellType: V100-NODE
          cellNumber: 1
        safeRelaxed: true
`, map[string]any{
			"physicalCluster": map[string]any{
				"skuTypes":  map[string]any{"V100": map[string]any{"gpu": 1, "cpu": 5, "memory": "50Gi"}},
				"cellTypes": map[string]any{"V100-NODE": map[string]any{"childCellType": "V100", "childCellNumber": 4, "isNodeLevel": true}},
				"physicalCells": []any{map[string]any{
					"cellType": "V100-NODE", "cellAddress": "worker-1",
					"cellChildren": []any{map[string]any{"cellAddress": 2}, map[string]any{"pinnedCellId": "mine"}},
				}},
			},
			"virtualClusters": map[string]any{"default": map[string]any{"virtualCells": []any{map[string]any{"cellType": "V100-NODE", "cellNumber": 1}}}},
		}, []string{
			"dropped, because HiveD did not use it or the scheduler doesn't: physicalCluster.cellTypes.V100-NODE.colour, " +
				"physicalCluster.physicalCells[0].cellChildren[0].note, virtualClusters.default.safeRelaxed, waitingPodSchedulingBlockMilliSec, webServerAddress",
			"hivedscheduler.webservice-port",
		}},
		"both sections": {`
hivedscheduler:
  config: |
    virtualClusters: {theirs: {virtualCells: [{cellType: x, cellNumber: 1}]}}
    physicalCluster: {cellTypes: {x-NODE: {childCellType: x, childCellNumber: 4}}}
scheduler:
  virtualClusters: {ours: {virtualCells: [{cellType: y, cellNumber: 1}]}}
`, map[string]any{"virtualClusters": map[string]any{"ours": map[string]any{"virtualCells": []any{map[string]any{"cellType": "y", "cellNumber": 1}}}}},
			[]string{"the section scheduler defines how the hardware is divided, and is used instead"}},
		"a section that divides nothing": {"hivedscheduler:\n  config: |\n    virtualClusters: {theirs: {}}\nscheduler: {virtualClusters: {}, reserveGpuMachines: true}\n",
			map[string]any{"virtualClusters": map[string]any{"theirs": map[string]any{}}, "reserveGpuMachines": true}, []string{"physicalCluster and virtualClusters are now in the section scheduler"}},
		"nothing":        {"hivedscheduler: {config: ''}\n", nil, []string{"it has no content"}},
		"no YAML":        {"hivedscheduler: {config: 'a: [b'}\n", nil, []string{"it is not readable as YAML"}},
		"no map":         {"hivedscheduler: 3\n", nil, []string{"expected a map of settings"}},
		"no config":      {"hivedscheduler: {}\n", nil, nil},
		"a list instead": {"hivedscheduler: {config: [a]}\n", nil, []string{"it has no content"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Migrate(folder(t, map[string]string{LayoutFile: layoutText, ServicesFile: c.section}), "new", nil)
			require.NoError(t, err)
			assert.Equal(t, c.want, m.Cluster.Services.Sections["scheduler"])
			assert.NotContains(t, m.Cluster.Services.Sections, "hivedscheduler")
			for _, reason := range c.reasons {
				assert.Contains(t, fmt.Sprintf("%+v", m.Notes), reason)
			}
		})
	}
}
