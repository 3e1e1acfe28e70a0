package sim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// eights returns a cluster of nodes with 8 GPUs each. The virtual clusters A and B own half of the nodes each, and have the
// policies a and b.
func eights(nodes int, a, b string) cell.Config {
	c := cell.Config{Types: []cell.Type{{Name: "NODE", Child: "GPU", Children: 8, Node: true}}, VirtualClusters: []cell.VirtualCluster{
		{Name: "A", Cells: []cell.Virtual{{Type: "NODE", Count: nodes / 2}}, Policy: a},
		{Name: "B", Cells: []cell.Virtual{{Type: "NODE", Count: nodes / 2}}, Policy: b},
	}}
	for i := range nodes {
		c.Physical = append(c.Physical, cell.Physical{Type: "NODE", Address: fmt.Sprint("n", i)})
	}
	return c
}

// preempted returns a trace of opportunistic jobs that fill a cluster, and a guaranteed job that preempts some of them.
func preempted(nodes, pods int) []trace.Job {
	var jobs []trace.Job
	for i := range nodes {
		jobs = append(jobs, trace.Job{ID: i, Duration: 1000, VC: "A", Priority: -1, Pods: 1, GPUsPerPod: 8})
	}
	return append(jobs, trace.Job{ID: nodes, Arrival: 10, Duration: 100, VC: "A", Pods: pods, GPUsPerPod: 8})
}

// With --drain, the run continues until all jobs have finished. The simulator must retry a held job even if no job runs.
func TestADrainLetsJobsFinishThatAreHeldBack(t *testing.T) {
	for _, one := range []struct {
		policy      string
		nodes, pods int
	}{{"fewer-kills", 32, 2}, {"balanced", 512, 6}} {
		t.Run(one.policy, func(t *testing.T) {
			jobs := append(preempted(one.nodes, one.pods),
				trace.Job{ID: 9000, Arrival: 30, Duration: 10, VC: "A", Priority: -1, Pods: one.nodes, GPUsPerPod: 8})
			var last sim.Record
			r, err := sim.Run(t.Context(), eights(one.nodes, one.policy, one.policy), jobs, sim.Options{Drain: true, Job: func(r sim.Record) { last = r }})
			require.NoError(t, err)
			require.Empty(t, r.Refused)
			assert.Equal(t, len(jobs), r.Finished, "jobs that have finished")
			assert.Equal(t, len(jobs), r.Completion.All.Jobs)
			assert.Equal(t, 9000, last.ID)
			assert.Positive(t, last.Finish)
		})
	}
}

// Opportunistic jobs of one shape must not share a class across policies. Otherwise a held job would prevent the start of an
// equal job whose policy holds nothing back.
func TestAJobIsAskedThoughOneOfAnotherPolicyWasHeldBack(t *testing.T) {
	start := func(first string) int {
		jobs := append(preempted(32, 2),
			trace.Job{ID: 100, Arrival: 30, Duration: 10, VC: first, Priority: -1, Pods: 32, GPUsPerPod: 8},
			trace.Job{ID: 101, Arrival: 31, Duration: 10, VC: "B", Priority: -1, Pods: 32, GPUsPerPod: 8})
		var last sim.Record
		_, err := sim.Run(t.Context(), eights(32, "fewer-kills", "start-now"), jobs, sim.Options{Drain: true, Job: func(r sim.Record) { last = r }})
		require.NoError(t, err)
		return last.FirstStart
	}
	require.Positive(t, start("B"), "with another of its own virtual cluster before it")
	assert.Positive(t, start("A"), "with one of A, which is held back, before it")
}

// UsefulUtilisation excludes repeated work and restarts, including unfinished restarts.
func TestARestartUnderWayAtTheEndIsNotUseful(t *testing.T) {
	jobs := []trace.Job{
		{ID: 0, Duration: 10_000, VC: "A", Priority: -1, Pods: 2, GPUsPerPod: 8},
		{ID: 1, Arrival: 10, Duration: 10, VC: "A", Pods: 1, GPUsPerPod: 8},
		{ID: 2, Arrival: 1000, Duration: 10, VC: "A", Priority: -1, Pods: 2, GPUsPerPod: 8},
	}
	figure := func(drain bool) float64 {
		r, err := sim.Run(t.Context(), eights(2, "", ""), jobs, sim.Options{Drain: drain, Restart: 5000})
		require.NoError(t, err)
		return r.UsefulUtilisation
	}
	// Job 0 restarts at 20 and does no useful work until 1000.
	assert.InDelta(t, 0, figure(true), 0.02, "with drain")
	assert.InDelta(t, 0, figure(false), 0.02, "without drain")
}

func TestARestartThatIsTooLongIsRefused(t *testing.T) {
	jobs := []trace.Job{
		{ID: 0, Duration: 100, VC: "A", Priority: -1, Pods: 2, GPUsPerPod: 8},
		{ID: 1, Arrival: 10, Duration: 10, VC: "A", Pods: 1, GPUsPerPod: 8},
	}
	_, err := sim.Run(t.Context(), eights(2, "", ""), jobs, sim.Options{Drain: true, Restart: 1<<63 - 1})
	require.ErrorContains(t, err, "seconds from 0 to ")
}
