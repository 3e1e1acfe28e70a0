package bound_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
	"github.com/openpai/paictl/research/bound"
)

// recorder is the scheduler with only guaranteed jobs. It records the GPUs and nodes that these jobs hold.
type recorder struct {
	*cell.Scheduler
	nodes map[string]int
	pods  map[cell.PodID]cell.PodPlacement
}

func newRecorder(t testing.TB, c cell.Config) *recorder {
	s, err := cell.New(c)
	require.NoError(t, err)
	for _, n := range s.Nodes() {
		s.SetNode(n, true)
	}
	return &recorder{s, map[string]int{}, map[cell.PodID]cell.PodPlacement{}}
}

func (r *recorder) Schedule(pod cell.PodID, q *cell.Request, phase cell.Phase, nodes cell.Nodes) cell.Decision {
	if q.Priority < 0 {
		return cell.Decision{Result: cell.Wait}
	}
	return r.Scheduler.Schedule(pod, q, phase, nodes)
}

func (r *recorder) Allocate(pod cell.PodID, q *cell.Request, at *cell.Placement, slot int) ([]cell.Downgrade, error) {
	p := at.Pods[slot]
	r.pods[pod] = p
	r.nodes[p.Node] += len(p.Indices)
	return r.Scheduler.Allocate(pod, q, at, slot)
}

func (r *recorder) DeleteAllocated(pod cell.PodID) ([]cell.Downgrade, bool) {
	p := r.pods[pod]
	if r.nodes[p.Node] -= len(p.Indices); r.nodes[p.Node] == 0 {
		delete(r.nodes, p.Node)
	}
	return r.Scheduler.DeleteAllocated(pod)
}

func (r *recorder) held() bound.Occupied {
	o := bound.Occupied{Nodes: len(r.nodes)}
	for _, n := range r.nodes {
		o.GPUs += n
	}
	return o
}

// The test computes the figures of docs/performance.md and prints them with -v.
func TestUtilisationOfIdealSchedulersOn64GPUs(t *testing.T) {
	shares := []bound.Share{{Name: "vc0", Nodes: 1, Quads: 1}, {Name: "vc1", Nodes: 1, Quads: 1}, {Name: "vc2", Nodes: 2, Quads: 1}, {Name: "vc3", Nodes: 2, Quads: 1}}
	for _, seed := range []uint64{1, 7, 42} {
		tr, err := trace.Generate(64, seed)
		require.NoError(t, err)
		rec := newRecorder(t, tr.Config)
		var held []bound.Occupied
		_, err = sim.Run(t.Context(), tr.Config, tr.Jobs, sim.Options{Core: rec, Progress: func(int, int) { held = append(held, rec.held()) }})
		require.NoError(t, err)
		r, err := sim.Run(t.Context(), tr.Config, tr.Jobs, sim.Options{})
		require.NoError(t, err)
		everything := (&bound.Ideal{Nodes: 8, Shares: shares}).Utilisation(tr.Jobs)
		opportunistic := (&bound.Ideal{Nodes: 8, Taken: held}).Utilisation(tr.Jobs)
		steady := (&bound.Ideal{Nodes: 8, Taken: held, Steady: true}).Utilisation(tr.Jobs)
		t.Logf("seed %d: ours %.3f; opportunistic jobs together for nothing, in order of arrival %.3f; stopped and resumed at will %.3f; guaranteed ones moved too %.3f",
			seed, r.Utilisation, steady, opportunistic, everything)
		assert.Less(t, r.Utilisation, steady)
		assert.Less(t, steady, 0.86, "the bar")
		assert.Less(t, steady, opportunistic)
	}
}

func TestAnIdealSchedulerUsesWhatThereIs(t *testing.T) {
	job := func(id, at, priority, pods, gpus int) trace.Job {
		return trace.Job{ID: id, Arrival: at, Duration: 100, VC: "a", Priority: priority, Pods: pods, GPUsPerPod: gpus}
	}
	d := bound.Ideal{Nodes: 2, Shares: []bound.Share{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 1}}}
	last := job(9, 100, 0, 1, 1)
	assert.InDelta(t, 1.0, d.Utilisation([]trace.Job{job(0, 0, -1, 2, 8), last}), 1e-9)
	assert.InDelta(t, 9./16, d.Utilisation([]trace.Job{job(0, 0, 0, 1, 1), job(1, 0, -1, 1, 8), job(2, 0, -1, 1, 8), last}), 1e-9, "one of 8 finds no node")
	assert.InDelta(t, 0.5, d.Utilisation([]trace.Job{job(0, 0, 0, 1, 8), job(1, 0, 0, 1, 8), last}), 1e-9, "a owns one node")
}
