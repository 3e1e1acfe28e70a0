package vc

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func owner(name string, gpus, nodes int) *api.VirtualCluster {
	v := &api.VirtualCluster{Name: name, Guaranteed: gpus}
	if nodes > 0 {
		v.Cells = []api.Cells{{CellType: "node", CellNumber: nodes}}
	}
	return v
}

func TestAChangeIsToldByWhatItDoes(t *testing.T) {
	limited := owner("e", 8, 1)
	limited.Quota = &api.Quota{PerUser: 2, PerGroup: 4, Users: map[string]int{"b": 1, "a": 0}, Groups: map[string]int{"g": 3}}
	lenient := owner("f", 8, 1)
	lenient.Policy = "fewer-kills"
	var b bytes.Buffer
	require.NoError(t, writeValidation(&b, &api.Validation{
		Valid:    true,
		Problems: []api.Problem{{Severity: "warning", Path: "virtualClusters.a", Message: "it is odd", Remedy: "make it even"}, {Severity: "error", Message: "no place"}},
		VirtualClusters: []api.ChangedVirtualCluster{
			{Name: "a", After: owner("a", 8, 1)},
			{Name: "b", Before: owner("b", 16, 2)},
			{Name: "c", Before: owner("c", 16, 2), After: owner("c", 1, 0)},
			{Name: "e", Before: owner("e", 8, 1), After: limited},
			{Name: "f", Before: owner("f", 8, 1), After: lenient},
		},
		Changes: []api.Change{
			{VC: "c", Group: "train", Effect: api.Downgraded, GPUs: 8, User: "ann", Reason: "no free node"},
			{VC: "a", Group: "run", Effect: api.Restored, GPUs: 1},
			{VC: "b", Group: "wait", Effect: api.Refused, GPUs: 2},
			{VC: "b", Group: "new", Effect: "moved", GPUs: 2},
		},
	}))
	assert.Equal(t, `warning: virtualClusters.a: it is odd
  -> make it even
error: no place
a: is new and owns 1 x node (8 GPUs)
b: ends; it owned 2 x node (16 GPUs)
c: owns nothing instead of 2 x node (16 GPUs)
e: quota 2 a user, 4 a group, a unlimited, b 1, group g 3 instead of -
f: policy fewer-kills instead of balanced
c/train (8 GPUs of ann) loses its guarantee: it continues to run, and the owners of its cells may preempt it (no free node)
a/run (1 GPU) has its guarantee again
b/wait (2 GPUs) waits, and could never start
b/new (2 GPUs) moved
`, b.String())
	b.Reset()
	require.NoError(t, writeValidation(&b, &api.Validation{Valid: true}))
	assert.Equal(t, "no gang is affected\n", b.String())
}

func TestOneVirtualClusterIsShownWithItsQueue(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	v := &shown{Running: true, VirtualCluster: *owner("vision", 16, 2)}
	v.Used, v.Free, v.FreeByLevel, v.WaitingGangs, v.WaitingPods = 8, 8, []cell.LevelCount{{CellType: "node", GPUs: 8, Count: 1}}, 1, 2
	v.PinnedCells = []string{"special"}
	v.Queue = []api.Queued{{PositionInVC: 1, Group: "big", State: api.Waiting, Priority: 10, Pods: 2, Request: api.Request{GPUs: 16}, Since: now.Add(-90 * time.Minute), Reason: "too little"}}
	var b bytes.Buffer
	require.NoError(t, writeOne(&b, &cmdutil.Output{}, v, now))
	assert.Equal(t, `vision
  owns           16 GPUs: 2 x node, pinned special
  quota          -
  policy         balanced: short waits for all; keeps up to 2 % of the GPUs idle after preemptions, with 4,096 or more of one type
  used           8
  opportunistic  0
  free           8: 1 x node
  bad            0
  waiting        1 gang, 2 pods

POSITION   GANG   STATE     PRIORITY   USER   PODS   GPUS   AGE   REASON
1          big    Waiting   10         -      2      16     1h    too little
`, b.String())
	b.Reset()
	hasty := *owner("a", 8, 1)
	hasty.Policy = "start-now"
	require.NoError(t, writeOne(&b, &cmdutil.Output{}, &shown{VirtualCluster: hasty}, now))
	assert.Equal(t, "a\n  owns    8 GPUs: 1 x node\n  quota   -\n  policy  start-now: opportunistic jobs start whenever there is room, but are preempted more often\n", b.String())
}

func TestTheEndOfAChangeSaysWhatIsInUse(t *testing.T) {
	fresh := &api.Validation{VirtualClusters: []api.ChangedVirtualCluster{{Name: "a", After: owner("a", 8, 1)}}}
	for name, c := range map[string]struct {
		out  vc.Outcome
		says string
	}{
		"in use":                {vc.Outcome{Changed: true, Installed: true, Applied: true, Revision: 4, Generation: 2, Effect: &api.Validation{}}, "pushed revision 4; the scheduler uses it (generation 2)\n"},
		"not waited for":        {vc.Outcome{Changed: true, Installed: true, Revision: 4}, "pushed revision 4; the scheduler was not waited for\n"},
		"no scheduler":          {vc.Outcome{Changed: true, Note: "it isn't installed", Revision: 4}, "pushed revision 4; it takes effect with: paictl service start -n scheduler\n"},
		"a scheduler is silent": {vc.Outcome{Changed: true, Installed: true, Note: "none leads", Revision: 4}, "pushed revision 4; the scheduler uses it when it answers again: none leads\n"},
		"pending":               {vc.Outcome{Pending: true, Installed: true, Applied: true, Base: 4, Revision: 4, Generation: 2, Effect: &api.Validation{}}, "revision 4 already has these values, and the scheduler did not; the scheduler uses it (generation 2)\n"},
		"nothing":               {vc.Outcome{Base: 3}, "nothing to change: revision 3 already has these values\n"},
		"a dry run":             {vc.Outcome{Changed: true, DryRun: true}, "nothing was changed (--dry-run)\n"},
		"one that is new":       {vc.Outcome{Changed: true, Installed: true, Applied: true, Effect: fresh}, "hivedscheduler-ds-a run: paictl service restart -n scheduler --force\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := cmdutil.New("v0")
			io, _, _, errOut := iostreams.Test()
			f.IO = io
			opts := &SetOptions{Factory: f}
			cmdutil.AddOutputFlag(NewCmdVC(f), &opts.Output, "text")
			require.NoError(t, opts.tell(&c.out))
			assert.Contains(t, errOut.String(), c.says)
		})
	}
}

func TestTheListShowsCPUCellsAndDeletedVirtualClusters(t *testing.T) {
	a, gone := *owner("a", 16, 2), api.VirtualCluster{Name: "vision", Opportunistic: 8, WaitingGangs: 1}
	a.Used, a.Free = 8, 8
	s := &state{Running: true, VirtualClusters: v3.VirtualClusters{VirtualClusters: api.VirtualClusters{Items: []api.VirtualCluster{a}, Deleted: []api.VirtualCluster{gone}}}}
	got := listTable(s, false)
	assert.Equal(t, []string{"NAME", "GPUS", "USED", "OPPORTUNISTIC", "FREE", "BAD", "WAITING", "QUOTA", "CELLS"}, got.Header)
	assert.Equal(t, [][]string{{"a", "16", "8", "0", "8", "0", "0", "-", "2 x node"}, {"vision (deleted)", "0", "0", "8", "0", "0", "1", "-", "-"}}, got.Rows)
	assert.Len(t, listTable(s, true).Rows, 1, "a name that other commands take is one that is there")

	s.Items[0].CPU = &cell.CPUStats{Guaranteed: 30, Used: 4, Opportunistic: 1, Free: 25, Bad: 1}
	got = listTable(s, false)
	assert.Equal(t, []string{"NAME", "GPUS", "USED", "OPPORTUNISTIC", "FREE", "BAD", "CPU CELLS", "WAITING", "QUOTA", "CELLS"}, got.Header)
	assert.Equal(t, []string{"a", "16", "8", "0", "8", "0", "30: 4 used, 25 free, 1 opportunistic, 1 bad", "0", "-", "2 x node"}, got.Rows[0])
	s.Running = false
	assert.Equal(t, []string{"a", "16", "-", "-", "-", "-", "30", "-", "-", "2 x node"}, listTable(s, false).Rows[0])
}

func TestAVirtualClusterSaysItsCPUCells(t *testing.T) {
	v := owner("a", 0, 0)
	v.CPU = &cell.CPUStats{Guaranteed: 15}
	assert.Equal(t, "15 CPU cells", amounts(v))
	v.Guaranteed = 1
	assert.Equal(t, "1 GPU and 15 CPU cells", amounts(v))
	assert.Equal(t, "(2 CPU cells of ann) continues to run without a guarantee, as now; a retry would be refused", effectText(&api.Change{Effect: api.Orphaned, CPUCells: 2, User: "ann"}))
}
