package annotation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// hived is a bind info in HiveD's format, with HiveD's order of members.
const hived = `node: 0.0.0.1
leafCellIsolation:
- 1
- 0
cellChain: NODE
affinityGroupBindInfo:
- podPlacements:
  - physicalNode: 0.0.0.2
    physicalLeafCellIndices:
    - 7
    preassignedCellTypes:
    - ""
- podPlacements:
  - physicalNode: 0.0.0.1
    physicalLeafCellIndices: [3, 2]
    preassignedCellTypes: [NODE, QUAD]
  - physicalNode: 0.0.0.1
    physicalLeafCellIndices:
    - 1
    - 0
    preassignedCellTypes:
    - PAIR
    - NODE
`

func twoSizes() *cell.Request {
	return &cell.Request{Root: gang("g", cell.PodSet{Count: 2, Cells: 2}, cell.PodSet{Count: 1, Cells: 1})}
}

func TestReadBoundOfHiveDsAnnotations(t *testing.T) {
	want := &cell.Placement{Chain: "NODE", Pods: []cell.PodPlacement{
		{Set: 0, Node: "0.0.0.1", Indices: []int32{2, 3}, Preassigned: []string{"QUAD", "NODE"}},
		{Set: 0, Node: "0.0.0.1", Indices: []int32{0, 1}, Preassigned: []string{"NODE", "PAIR"}},
		{Set: 1, Node: "0.0.0.2", Indices: []int32{7}, Preassigned: []string{""}},
	}}
	legacy := strings.NewReplacer("leafCellIsolation", "gpuIsolation", "physicalLeafCellIndices", "physicalGpuIndices").Replace(hived)
	tests := map[string]map[string]string{
		"as it is":                       {BindInfoKey: hived, IsolationKey: "1,0"},
		"without the isolation":          {BindInfoKey: hived},
		"of early releases":              {BindInfoKey: legacy, LegacyIsolationKey: "0,1"},
		"isolation beside the bind info": {BindInfoKey: strings.Replace(hived, "leafCellIsolation:\n- 1\n- 0\n", "", 1), IsolationKey: "0, 1"},
		"with a comment":                 {BindInfoKey: "# x\n" + hived, IsolationKey: "0,1"},
		"with a broken note of ours":     {BindInfoKey: hived, PlacementKey: `{"slot":`},
		"with a note of another gang":    {BindInfoKey: hived, PlacementKey: `{"slot":1,"order":3,"types":["NODE",1],"virtual":[["0/a/0"]]}`},
	}
	for name, notes := range tests {
		t.Run(name, func(t *testing.T) {
			got, slot, err := ReadBound(twoSizes(), notes)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Equal(t, 1, slot)
		})
	}
}

func TestReadBoundOfAnotherShape(t *testing.T) {
	t.Run("pods that belong to no set", func(t *testing.T) {
		r := &cell.Request{Root: gang("g", cell.PodSet{Count: 1, Cells: 2})}
		got, slot, err := ReadBound(r, map[string]string{BindInfoKey: hived})
		require.NoError(t, err)
		assert.Equal(t, 2, slot)
		sets := []int{got.Pods[0].Set, got.Pods[1].Set, got.Pods[2].Set}
		assert.Equal(t, []int{0, -1, -1}, sets)
	})
	t.Run("groups that are others", func(t *testing.T) {
		r, err := ParseRequest(racks, "a/b")
		require.NoError(t, err)
		got, _, err := ReadBound(r, map[string]string{BindInfoKey: hived})
		require.NoError(t, err)
		for _, p := range got.Pods {
			assert.Equal(t, -1, p.Set)
		}
	})
	t.Run("version 2 of a request of version 1", func(t *testing.T) {
		text := "version: v2\nnode: a\nleafCellIsolation: [3]\ncellChain: NODE\npodRootGroupBindInfo:\n  podPlacements:\n  - physicalNode: a\n    physicalLeafCellIndices: [3]\n    preassignedCellTypes: [NODE]\n  - physicalNode: b\n    physicalLeafCellIndices: [0, 1]\n    preassignedCellTypes: [NODE, NODE]\n  childGroupBindingInfo: []\n"
		got, slot, err := ReadBound(twoSizes(), map[string]string{BindInfoKey: text})
		require.NoError(t, err)
		assert.Equal(t, 1, slot)
		assert.Equal(t, "b", got.Pods[0].Node)
		assert.Equal(t, 1, got.Pods[1].Set)
	})
}

func TestReadBoundRefuses(t *testing.T) {
	with := func(old, now string) map[string]string {
		return map[string]string{BindInfoKey: strings.Replace(hived, old, now, 1)}
	}
	tests := map[string]struct {
		notes map[string]string
		want  string
	}{
		"no annotation":           {nil, "missing or empty"},
		"text":                    {map[string]string{BindInfoKey: "x"}, "line 1: expected a map, found text"},
		"broken YAML":             {map[string]string{BindInfoKey: "a: [\n"}, "line "},
		"no node":                 {with("node: 0.0.0.1\n", ""), "no node"},
		"no devices":              {with("leafCellIsolation:\n- 1\n- 0\n", ""), "no leafCellIsolation"},
		"a negative device":       {with("- 7", "- -7"), "line 10: physicalLeafCellIndices has -7"},
		"a device in words":       {with("- 7", "- x"), "line 10: affinityGroupBindInfo[0].podPlacements[0].physicalLeafCellIndices[0]: expected a whole number, found text"},
		"no device":               {with("- 7", "-"), "physicalLeafCellIndices[0]: the entry is empty"},
		"a placement of nothing":  {with("    physicalLeafCellIndices:\n    - 7\n", ""), "has no physicalNode, or no physicalLeafCellIndices"},
		"types of another number": {with("[NODE, QUAD]", "[NODE]"), "2 physicalLeafCellIndices and 1 preassignedCellTypes"},
		"a device twice":          {with("[3, 2]", "[3, 1]"), `device 1 of node "0.0.0.1" is in it twice`},
		"a pod that isn't there":  {with("node: 0.0.0.1", "node: other"), `no placement in it is the pod's own, devices [0 1] of node "other"`},
		"an isolation of others":  {map[string]string{BindInfoKey: hived, IsolationKey: "5,6"}, "says that the pod has devices [5 6]"},
		"an isolation in words":   {map[string]string{BindInfoKey: hived, IsolationKey: "all"}, `"all" is not a list of device indices`},
		"members that are text":   {map[string]string{BindInfoKey: "node: a\nleafCellIsolation: [0]\naffinityGroupBindInfo: x\n"}, "affinityGroupBindInfo: expected a list"},
		"groups that are text":    {map[string]string{BindInfoKey: "node: a\nleafCellIsolation: [0]\npodRootGroupBindInfo: x\n"}, "podRootGroupBindInfo: expected a map"},
		"JSON that isn't ours":    {map[string]string{BindInfoKey: `{"node":"a","leafCellIsolation":[null]}`}, "line 1: leafCellIsolation[0]: the entry is empty"},
		"too long":                {map[string]string{BindInfoKey: strings.Repeat(" ", 2<<20)}, "more than the limit"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, slot, err := ReadBound(twoSizes(), tt.notes)
			require.ErrorContains(t, err, tt.want)
			assert.Nil(t, p)
			assert.Zero(t, slot)
		})
	}
}

func FuzzReadBound(f *testing.F) {
	r, p := trainers()
	b := Write(r, decide(p, 1))
	f.Add(b.Isolation, b.BindInfo, b.Placement)
	f.Add("0,1", hived, `{"slot":9,"order":1,"downgraded":true}`)
	f.Add("", strings.ReplaceAll(hived, "physicalLeafCellIndices", "physicalGpuIndices"), `{"virtual":[["1/x"],[],[]],"types":["a",5]}`)
	requests := []*cell.Request{r, twoSizes(), {}}
	if v2, err := ParseRequest(racks, "a/b"); err == nil {
		requests = append(requests, v2)
	}
	f.Fuzz(func(t *testing.T, isolation, bindInfo, placement string) {
		if len(bindInfo) > 1<<12 {
			t.Skip("longer inputs only slow the search down")
		}
		for _, r := range requests {
			p, slot, err := ReadBound(r, map[string]string{IsolationKey: isolation, BindInfoKey: bindInfo, PlacementKey: placement})
			if err != nil {
				continue
			}
			require.Less(t, slot, len(p.Pods))
			require.GreaterOrEqual(t, slot, 0)
			sets := len(r.Sets())
			for _, pod := range p.Pods {
				require.Less(t, pod.Set, max(sets, 1))
				require.Len(t, pod.Preassigned, len(pod.Indices))
				require.Contains(t, []int{0, len(pod.Indices)}, len(pod.Virtual))
			}
			// Write and ReadBound must preserve the placement.
			b := Write(r, decide(p, slot))
			again, _, err := ReadBound(r, bound(b))
			require.NoError(t, err, "%s", b.BindInfo)
			require.Len(t, again.Pods, len(p.Pods))
		}
	})
}
