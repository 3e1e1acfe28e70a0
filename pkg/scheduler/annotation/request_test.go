package annotation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// openPAI is a request in the format of OpenPAI's REST server.
const openPAI = `virtualCluster: vc1
priority: 10
pinnedCellId: ""
leafCellType: A100
leafCellNumber: 8
gangReleaseEnable: false
lazyPreemptionEnable: true
ignoreK8sSuggestedNodes: true
affinityGroup:
  name: alice~job-1/default
  members:
  - podNumber: 4
    leafCellNumber: 8
  - podNumber: 1
    leafCellNumber: 2
`

// racks is a request of version 2 with a master and two workers per rack.
const racks = `version: v2
virtualCluster: vc1
priority: 0
cellType: QUAD
cellNumber: 2
podRootGroup:
  name: train
  withinOneCell: ROW
  pods:
  - podMinNumber: 1
    podMaxNumber: 1
    cellsPerPod: {cellType: GPU, cellNumber: 1}
  childGroups:
  - name: first
    withinOneCell: RACK
    pods:
    - podMinNumber: 2
      podMaxNumber: 2
      cellsPerPod:
        cellType: QUAD
        cellNumber: 2
      containsCurrentPod: true
  - name: second
    withinOneCell: RACK
    pod:
      podMinNumber: 2
      podMaxNumber: 2
      cellsPerPod:
        cellNumber: 2
`

func gang(name string, sets ...cell.PodSet) cell.Group { return cell.Group{Name: name, Pods: sets} }

func TestParseRequest(t *testing.T) {
	const pod = "default/pod-0"
	alone := func(n int) cell.Group { return gang(pod, cell.PodSet{Count: 1, Cells: n}) }
	tests := map[string]struct {
		text string
		want cell.Request
	}{
		"what OpenPAI writes": {openPAI, cell.Request{VirtualCluster: "vc1", Priority: 10, LeafType: "A100", Gang: "alice~job-1/default", LazyPreemption: true,
			Root: gang("alice~job-1/default", cell.PodSet{Count: 4, Cells: 8}, cell.PodSet{Count: 1, Cells: 2})}},
		"the least there can be": {"virtualCluster: a\nleafCellNumber: 1\n",
			cell.Request{VirtualCluster: "a", Gang: pod, Root: alone(1)}},
		"nulls are as good as nothing": {"virtualCluster: a\npriority: null\npinnedCellId: ~\nleafCellType:\nleafCellNumber: 2\nlazyPreemptionEnable: null\naffinityGroup: null\n",
			cell.Request{VirtualCluster: "a", Gang: pod, Root: alone(2)}},
		"opportunistic work on suggested nodes only": {"virtualCluster: a\npriority: -1\nleafCellNumber: 2\nignoreK8sSuggestedNodes: false\n",
			cell.Request{VirtualCluster: "a", Priority: -1, OnlySuggested: true, Gang: pod, Root: alone(2)}},
		"names of early releases": {"virtualCluster: a\nreservationId: p\ngpuType: K80\ngpuNumber: 3\naffinityGroup: {name: gpuNumber, members: [{podNumber: 2, gpuNumber: 3}]}\n",
			cell.Request{VirtualCluster: "a", PinnedCell: "p", LeafType: "K80", Gang: "gpuNumber", Root: gang("gpuNumber", cell.PodSet{Count: 2, Cells: 3})}},
		"members of one size are summed up": {"virtualCluster: a\nleafCellNumber: 4\naffinityGroup:\n  name: g\n  members:\n  - {podNumber: 1, leafCellNumber: 2}\n  - {podNumber: 3, leafCellNumber: 4}\n  - {podNumber: 2, leafCellNumber: 2}\n",
			cell.Request{VirtualCluster: "a", Gang: "g", Set: 1, Root: gang("g", cell.PodSet{Count: 3, Cells: 2}, cell.PodSet{Count: 3, Cells: 4})}},
		"JSON": {`{"virtualCluster":"a","priority":5,"leafCellNumber":1,"affinityGroup":{"name":"g/1","members":[{"podNumber":2,"leafCellNumber":1}]},"extra":[1,{"a":null}]}`,
			cell.Request{VirtualCluster: "a", Priority: 5, Gang: "g/1", Root: gang("g/1", cell.PodSet{Count: 2, Cells: 1})}},
		"comments, anchors and escapes": {"# by hand\nvirtualCluster: \"caf\\u00e9\" # here\nleafCellNumber: &n 0x10\naffinityGroup:\n  name: 'it''s'\n  members: [{podNumber: *n, leafCellNumber: *n}]\n",
			cell.Request{VirtualCluster: "café", Gang: "it's", Root: gang("it's", cell.PodSet{Count: 16, Cells: 16})}},
		"numbers as names": {"virtualCluster: 007\nleafCellNumber: 1\nleafCellType: 1e3\naffinityGroup: {name: 2001-01-01, members: [{podNumber: 1, leafCellNumber: 1}]}",
			cell.Request{VirtualCluster: "007", LeafType: "1e3", Gang: "2001-01-01", Root: gang("2001-01-01", cell.PodSet{Count: 1, Cells: 1})}},
		"unknown keys": {"virtualCluster: a\nleafCellNumber: 1\nquota:\n  tag: x\n  count: [1, 2]\nversion: v1\ncellType: [nonsense]\n",
			cell.Request{VirtualCluster: "a", Gang: pod, Root: alone(1)}},
		"version 2": {racks, cell.Request{VirtualCluster: "vc1", Gang: "train", Set: 1, Root: cell.Group{
			Name: "train", Within: "ROW", Pods: []cell.PodSet{{Count: 1, CellType: "GPU", Cells: 1}},
			Children: []cell.Group{
				{Name: "first", Within: "RACK", Pods: []cell.PodSet{{Count: 2, CellType: "QUAD", Cells: 2}}},
				{Name: "second", Within: "RACK", Pods: []cell.PodSet{{Count: 2, CellType: "QUAD", Cells: 2}}},
			}}}},
		"version 2 without a group": {"version: v2\nvirtualCluster: a\ncellType: NODE\ncellNumber: 1\nignoreK8sSuggestedNodes: false\n",
			cell.Request{VirtualCluster: "a", Gang: pod, Root: gang(pod, cell.PodSet{Count: 1, CellType: "NODE", Cells: 1})}},
		"other cells": {"virtualCluster: a\nleafCellType: CPU\nleafCellNumber: 4\naffinityGroup: {name: g, members: [{podNumber: 2, leafCellNumber: 4}, {podNumber: 1, leafCellNumber: 8}]}\n" +
			"orElse: {leafCellNumber: 1, affinityGroup: {name: g, members: [{podNumber: 3, leafCellNumber: 1}]}}\n",
			cell.Request{VirtualCluster: "a", LeafType: "CPU", Gang: "g", Root: gang("g", cell.PodSet{Count: 2, Cells: 4}, cell.PodSet{Count: 1, Cells: 8}),
				Alternative: &cell.Request{VirtualCluster: "a", Gang: "g", Root: gang("g", cell.PodSet{Count: 3, Cells: 1})}}},
		"other cells for one pod": {"virtualCluster: a\nleafCellType: CPU\nleafCellNumber: 4\norElse: {leafCellNumber: 1}\n",
			cell.Request{VirtualCluster: "a", LeafType: "CPU", Gang: pod, Root: gang(pod, cell.PodSet{Count: 1, Cells: 4}),
				Alternative: &cell.Request{VirtualCluster: "a", Gang: pod, Root: gang(pod, cell.PodSet{Count: 1, Cells: 1})}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseRequest(tt.text, pod)
			require.NoError(t, err)
			assert.Equal(t, &tt.want, got)
		})
	}
}

func TestParseRequestRefuses(t *testing.T) {
	head := "virtualCluster: a\nleafCellNumber: 1\n"
	group := func(s string) string { return head + "affinityGroup:\n  name: g\n  members:\n  - " + s + "\n" }
	v2 := func(pods string) string {
		return "version: v2\nvirtualCluster: a\ncellNumber: 1\npodRootGroup:\n  name: g\n  pods: [" + pods + "]\n"
	}
	tests := map[string]struct{ text, want string }{
		"nothing":                        {"", "missing or empty"},
		"a comment alone":                {"# x\n", "the file is empty"},
		"text":                           {"hello", "expected a map, found text"},
		"a list":                         {"- a\n", "expected a map, found a list"},
		"broken YAML":                    {"virtualCluster: [a\n", "line 1: "},
		"no virtual cluster":             {"leafCellNumber: 1\n", "virtualCluster is missing"},
		"an empty virtual cluster":       {"virtualCluster: \"\"\nleafCellNumber: 1\n", "virtualCluster is missing"},
		"a virtual cluster's list":       {"virtualCluster: [a]\nleafCellNumber: 1\n", "line 1: virtualCluster: expected text, found a list"},
		"a priority too low":             {head + "priority: -2\n", "line 3: priority is -2"},
		"a priority too high":            {head + "priority: 1001\n", "write 0 to 1000 for guaranteed work, or -1"},
		"a priority in words":            {head + "priority: high\n", "line 3: priority: expected a whole number, found text"},
		"a priority beyond all numbers":  {head + "priority: 18446744073709551615\n", "line 3: priority: not a whole number, or one that is too large"},
		"a huge priority":                {head + "priority: 99999999999\n", "priority is 99999999999; write 0 to 1000"},
		"opportunistic and pinned":       {head + "priority: -1\npinnedCellId: p\n", "pinnedCellId is for guaranteed work"},
		"no number":                      {"virtualCluster: a\n", "leafCellNumber is 0 or missing"},
		"a negative number":              {"virtualCluster: a\ngpuNumber: -8\n", "line 2: gpuNumber is -8"},
		"a number in quotes":             {"virtualCluster: a\nleafCellNumber: \"8\"\n", "leafCellNumber: expected a whole number, found text; remove the quotes"},
		"a fraction":                     {"virtualCluster: a\nleafCellNumber: 0.5\n", "leafCellNumber: expected a whole number, found a number"},
		"two names of one field":         {head + "gpuNumber: 1\n", "leafCellNumber and gpuNumber mean the same"},
		"two types":                      {head + "gpuType: a\nleafCellType: b\n", "leafCellType and gpuType mean the same"},
		"a key twice":                    {head + "priority: 1\npriority: 2\n", "line 4: priority: the key is already set on line 3; keep one of the two"},
		"a word as a boolean":            {head + "lazyPreemptionEnable: maybe\n", "lazyPreemptionEnable: expected true or false"},
		"a gang without a name":          {head + "affinityGroup:\n  members:\n  - {podNumber: 1, leafCellNumber: 1}\n", "affinityGroup.name is missing"},
		"a gang without members":         {head + "affinityGroup: {name: g}\n", "no entry with this pod's leafCellNumber 1"},
		"a gang of others":               {group("{podNumber: 1, leafCellNumber: 2}"), "no entry with this pod's leafCellNumber 1"},
		"a gang of text":                 {head + "affinityGroup: g\n", "affinityGroup: expected a map"},
		"members that are no list":       {head + "affinityGroup: {name: g, members: {a: 1}}\n", "affinityGroup.members: expected a list"},
		"no pods":                        {group("{podNumber: 0, leafCellNumber: 1}"), "podNumber is 0"},
		"pods without GPUs":              {group("{podNumber: 1}"), "leafCellNumber is 0 or missing"},
		"more pods than there are":       {group("{podNumber: 1000001, leafCellNumber: 1}"), "the limit is 1000000"},
		"more pods altogether":           {group("{podNumber: 600000, leafCellNumber: 1}\n  - {podNumber: 600000, leafCellNumber: 1}"), "the gang has more than 1000000 pods"},
		"other cells in words":           {head + "orElse: GPUs\n", "line 3: orElse: expected a map, found text"},
		"other cells without a number":   {head + "orElse: {leafCellType: G}\n", "line 3: leafCellNumber is 0 or missing"},
		"other cells of others":          {head + "orElse: {leafCellNumber: 1, affinityGroup: {name: g, members: [{podNumber: 1, leafCellNumber: 1}]}}\n", "orElse has a different gang than the request"},
		"other cells for more pods":      {group("{podNumber: 1, leafCellNumber: 1}") + "orElse: {leafCellNumber: 1, affinityGroup: {name: g, members: [{podNumber: 2, leafCellNumber: 1}]}}\n", "the same name and number of pods"},
		"other cells beside pinned ones": {head + "pinnedCellId: p\norElse: {leafCellNumber: 1}\n", "orElse requests other cells, and pinnedCellId certain ones"},
		"other cells twice":              {head + "orElse: {leafCellNumber: 1, orElse: {leafCellNumber: 2}}\n", "orElse can have no orElse itself"},
		"another version":                {head + "version: v3\n", `version "v3" is unknown`},
		"version 2 without a size":       {"version: v2\nvirtualCluster: a\ncellType: NODE\n", "cellNumber is 0 or missing"},
		"version 2 by another name":      {"version: v2\nvirtualCluster: a\nleafCellNumber: 1\n", "cellNumber is 0 or missing"},
		"no current pod":                 {v2("{podMinNumber: 1, podMaxNumber: 1, cellsPerPod: {cellNumber: 1}}"), "has containsCurrentPod: true"},
		"two current pods": {v2("{podMinNumber: 1, podMaxNumber: 1, cellsPerPod: {cellNumber: 1}, containsCurrentPod: true}, " +
			"{podMinNumber: 1, podMaxNumber: 1, cellsPerPod: {cellNumber: 1}, containsCurrentPod: true}"), "containsCurrentPod is true twice"},
		"an elastic gang":      {v2("{podMinNumber: 1, podMaxNumber: 2, cellsPerPod: {cellNumber: 1}, containsCurrentPod: true}"), "gangs have a fixed size"},
		"a size of another":    {v2("{podMinNumber: 1, podMaxNumber: 1, cellsPerPod: {cellNumber: 2}, containsCurrentPod: true}"), `this pod requests 1 ""`},
		"no cells per pod":     {v2("{podMinNumber: 1, podMaxNumber: 1, containsCurrentPod: true}"), "cellsPerPod.cellNumber is 0"},
		"no name of the group": {"version: v2\nvirtualCluster: a\ncellNumber: 1\npodRootGroup:\n  pods: [{podMinNumber: 1, podMaxNumber: 1, cellsPerPod: {cellNumber: 1}, containsCurrentPod: true}]\n", "podRootGroup.name is missing"},
		"too long":             {head + strings.Repeat("\n", 64<<10), "more than the limit"},
		"an alias that multiplies": {"a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e]\n",
			"more than 262144 values once aliases are expanded; write fewer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseRequest(tt.text, "default/pod-0")
			require.ErrorContains(t, err, tt.want)
			assert.ErrorContains(t, err, SpecKey)
			assert.Nil(t, got)
		})
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, s := range []string{openPAI, racks, "virtualCluster: a\nleafCellNumber: 1\n", `{"virtualCluster":"a","leafCellNumber":1}`,
		"virtualCluster: 'a'\ngpuNumber: 010\n", "virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: \"g\", members: [ {podNumber: 1, leafCellNumber: 1} ]}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			t.Skip("longer inputs only slow the search down")
		}
		got, err := ParseRequest(text, "default/pod-0")
		if err == nil {
			sets := got.Sets()
			require.Less(t, got.Set, len(sets))
			require.Positive(t, sets[got.Set].Count)
		}
	})
}
