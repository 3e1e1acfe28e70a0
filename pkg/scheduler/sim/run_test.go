package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// counter is a core that only counts the free GPUs of one node, and logs the calls.
type counter struct {
	free  int
	pods  map[cell.PodID]*cell.Request
	order []cell.PodID
	log   []string
	// lie makes the core return a pod that doesn't run as the victim of every Preempt.
	lie bool
}

func gpus(r *cell.Request) int { return r.Sets()[0].Cells }

func (c *counter) note(format string, args ...any) {
	c.log = append(c.log, strings.ReplaceAll(fmt.Sprintf(format, args...), "default/job-", ""))
}

func (c *counter) Schedule(pod cell.PodID, r *cell.Request, phase cell.Phase, _ cell.Nodes) cell.Decision {
	d := c.decide(r)
	c.note("%s %s%s", pod, d.Result, map[cell.Phase]string{cell.Preempting: " (preempting)"}[phase])
	return d
}

func (c *counter) decide(r *cell.Request) cell.Decision {
	if gpus(r) == 5 {
		return cell.Decision{Result: cell.Refuse, Reason: "five is too many"}
	}
	// A gang is placed as a whole, so its other pods get their places at once.
	if gpus(r) <= c.free {
		p := cell.PodPlacement{Node: "n", Indices: make([]int32, gpus(r))}
		for i := range p.Indices {
			p.Indices[i] = int32(i)
		}
		return cell.Decision{Result: cell.Bind, Placement: &cell.Placement{Pods: []cell.PodPlacement{p}}}
	}
	if c.lie {
		return cell.Decision{Result: cell.Preempt, Victims: []cell.Victim{{Pod: "nobody"}}}
	}
	room := c.free
	var victims []cell.Victim
	for _, id := range c.order {
		if v, ok := c.pods[id]; ok && v.Priority < r.Priority && room < gpus(r) {
			room += gpus(v)
			victims = append(victims, cell.Victim{Pod: id})
		}
	}
	if r.Priority >= 0 && room >= gpus(r) {
		return cell.Decision{Result: cell.Preempt, Victims: victims}
	}
	return cell.Decision{Result: cell.Wait}
}

func (c *counter) Allocate(pod cell.PodID, r *cell.Request, _ *cell.Placement, _ int) ([]cell.Downgrade, error) {
	c.free -= gpus(r)
	c.pods[pod] = r
	c.order = append(c.order, pod)
	return nil, nil
}

func (c *counter) DeleteAllocated(pod cell.PodID) ([]cell.Downgrade, bool) {
	r, ok := c.pods[pod]
	if ok {
		c.free += gpus(r)
		delete(c.pods, pod)
		c.note("%s deleted", pod)
	}
	return nil, ok
}

func (c *counter) Why(r *cell.Request) cell.Explanation {
	c.note("why %s", r.Gang)
	return cell.Explanation{Code: "Fragmented"}
}

// small returns a cluster of one node with eight GPUs. The virtual clusters A and B own four GPUs each.
func small() cell.Config {
	return cell.Config{
		Types:    []cell.Type{{Name: "NODE", Child: "HALF", Children: 2, Node: true}, {Name: "HALF", Child: "GPU", Children: 4}},
		Physical: []cell.Physical{{Type: "NODE", Address: "n"}},
		VirtualClusters: []cell.VirtualCluster{
			{Name: "A", Cells: []cell.Virtual{{Type: "NODE.HALF", Count: 1}}}, {Name: "B", Cells: []cell.Virtual{{Type: "NODE.HALF", Count: 1}}}},
	}
}

func run(t *testing.T, jobs []trace.Job) (*counter, *sim.Report) {
	t.Helper()
	c := &counter{free: 8, pods: map[cell.PodID]*cell.Request{}}
	r, err := sim.Run(t.Context(), small(), jobs, sim.Options{Core: c})
	require.NoError(t, err)
	return c, r
}

func TestRunFollowsTheRules(t *testing.T) {
	for _, c := range []struct {
		name string
		jobs []trace.Job
		want []string
	}{
		{"at one time jobs end before others arrive, in order of id", []trace.Job{
			{ID: 2, Arrival: 0, Duration: 10, VC: "A", Pods: 1, GPUsPerPod: 3},
			{ID: 1, Arrival: 0, Duration: 10, VC: "A", Pods: 1, GPUsPerPod: 3},
			{ID: 0, Arrival: 10, Duration: 1, VC: "A", Pods: 1, GPUsPerPod: 8},
		}, []string{"1-0-1 bind", "2-0-1 bind", "1-0-1 deleted", "2-0-1 deleted", "0-0-1 bind"}},

		{"when a job ends virtual clusters take turns, and in one it is priority, arrival and id", []trace.Job{
			{ID: 0, Arrival: 0, Duration: 50, VC: "A", Priority: 1000, Pods: 1, GPUsPerPod: 8},
			{ID: 1, Arrival: 1, Duration: 50, VC: "B", Priority: 0, Pods: 1, GPUsPerPod: 2},
			{ID: 4, Arrival: 2, Duration: 50, VC: "A", Priority: 5, Pods: 1, GPUsPerPod: 2},
			{ID: 3, Arrival: 2, Duration: 50, VC: "B", Priority: 5, Pods: 1, GPUsPerPod: 2},
			{ID: 5, Arrival: 51, Duration: 1, VC: "A", Priority: -1, Pods: 1, GPUsPerPod: 8},
		}, []string{"0-0-1 bind", "1-0-1 wait", "why 1", "3-0-1 wait", "why 3", "4-0-1 wait", "0-0-1 deleted", "4-0-1 bind", "3-0-1 bind", "1-0-1 bind", "5-0-1 wait"}},

		{"where one couldn't start its like are not asked in the same pass", []trace.Job{
			{ID: 0, Arrival: 0, Duration: 50, VC: "A", Pods: 1, GPUsPerPod: 6},
			{ID: 1, Arrival: 0, Duration: 10, VC: "A", Pods: 1, GPUsPerPod: 1},
			{ID: 2, Arrival: 1, Duration: 50, VC: "A", Pods: 1, GPUsPerPod: 8, Priority: -1},
			{ID: 3, Arrival: 2, Duration: 50, VC: "B", Pods: 1, GPUsPerPod: 8, Priority: -1},
			{ID: 4, Arrival: 3, Duration: 50, VC: "B", Pods: 1, GPUsPerPod: 7, Priority: -1},
			{ID: 5, Arrival: 11, Duration: 50, VC: "B", Pods: 1, GPUsPerPod: 1},
		}, []string{"0-0-1 bind", "1-0-1 bind", "2-0-1 wait", "3-0-1 wait", "4-0-1 wait", "1-0-1 deleted", "2-0-1 wait", "4-0-1 wait", "5-0-1 bind"}},

		{"victims are killed by id, whole gangs, and come back with new pods for the rest of their time", []trace.Job{
			{ID: 7, Arrival: 0, Duration: 100, VC: "B", Pods: 2, GPUsPerPod: 2, Priority: -1},
			{ID: 6, Arrival: 0, Duration: 100, VC: "B", Pods: 1, GPUsPerPod: 3, Priority: -1},
			{ID: 8, Arrival: 40, Duration: 10, VC: "A", Pods: 1, GPUsPerPod: 8},
			{ID: 9, Arrival: 50, Duration: 0, VC: "A", Pods: 1, GPUsPerPod: 1},
			{ID: 10, Arrival: 110, Duration: 0, VC: "A", Pods: 1, GPUsPerPod: 1, Priority: -1},
		}, []string{"6-0-1 bind", "7-0-1 bind", "7-1-1 bind", "8-0-1 preempt", "8-0-1 preempt (preempting)", "6-0-1 deleted", "7-0-1 deleted", "7-1-1 deleted",
			"8-0-1 bind", "8-0-1 deleted", "6-0-2 bind", "7-0-2 bind", "7-1-2 bind", "9-0-1 bind", "9-0-1 deleted", "6-0-2 deleted", "7-0-2 deleted", "7-1-2 deleted", "10-0-1 bind"}},

		{"what can never start leaves the queue", []trace.Job{
			{ID: 0, Arrival: 0, Duration: 5, VC: "A", Pods: 1, GPUsPerPod: 1},
			{ID: 1, Arrival: 0, Duration: 5, VC: "A", Pods: 1, GPUsPerPod: 5},
			{ID: 2, Arrival: 6, Duration: 5, VC: "A", Pods: 1, GPUsPerPod: 1},
		}, []string{"0-0-1 bind", "1-0-1 badRequest", "0-0-1 deleted", "2-0-1 bind"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			core, _ := run(t, c.jobs)
			assert.Equal(t, c.want, core.log)
		})
	}
}

func TestRunReports(t *testing.T) {
	_, r := run(t, []trace.Job{
		{ID: 0, Arrival: 0, Duration: 60, VC: "A", Pods: 1, GPUsPerPod: 8, Priority: -1},
		{ID: 1, Arrival: 20, Duration: 100, VC: "A", Pods: 1, GPUsPerPod: 4}, // it kills job 0, which waits with 40 s of work left
		{ID: 2, Arrival: 30, Duration: 100, VC: "B", Pods: 1, GPUsPerPod: 4},
		{ID: 3, Arrival: 40, Duration: 1, VC: "B", Pods: 1, GPUsPerPod: 4}, // this job exceeds the quota
		{ID: 4, Arrival: 100, Duration: 1, VC: "A", Pods: 1, GPUsPerPod: 1, Priority: -1},
	})
	assert.Equal(t, 8, r.GPUs)
	assert.Equal(t, 100, r.Span)
	// From second 30, all GPUs are used, and jobs 0 and 3 wait until the end.
	assert.InDelta(t, 1, r.Utilisation, 1e-9)
	assert.InDelta(t, (70.0+60)/70, r.AvgQueueLength, 1e-9)
	assert.Equal(t, 3, r.WaitingAtEnd)
	assert.Equal(t, 1, r.WaitingAtEndGuaranteed)
	assert.Equal(t, 1, r.PreemptedJobs)
	assert.Equal(t, 3, r.Starts)
	assert.Zero(t, r.JobsThatWaitedWithinQuota)
	assert.Equal(t, sim.Share{Starts: 3, Optimal: 3, Share: 1}, r.OptimalLocality.All)
	assert.Equal(t, map[string]int{"HALF": 2}, r.Sizes[0].Levels)
	assert.Nil(t, r.Speed)
	assert.Empty(t, r.Refused)
	a, b := r.VirtualClusters[0], r.VirtualClusters[1]
	assert.Equal(t, []int{4, 3, 2, 1}, []int{a.GPUs, a.Jobs, a.WaitingAtEnd, a.PreemptedJobs})
	assert.Equal(t, []int{4, 2, 1, 0}, []int{b.GPUs, b.Jobs, b.WaitingAtEnd, b.PreemptedJobs})
}

// Job 1 preempts job 0 after 2,000 s, and runs for 100 s. If job 0 keeps all its work, 1,000 s of work remain.
func TestAPreemptedJobFallsBackToItsLastCheckpoint(t *testing.T) {
	jobs := []trace.Job{
		{ID: 0, Arrival: 0, Duration: 3000, VC: "A", Priority: -1, Pods: 1, GPUsPerPod: 8},
		{ID: 1, Arrival: 2000, Duration: 100, VC: "A", Pods: 1, GPUsPerPod: 4},
		{ID: 2, Arrival: 2010, Duration: 40, VC: "A", Pods: 1, GPUsPerPod: 3},
	}
	for _, c := range []struct {
		name                string
		checkpoint, restart int
		finish, lost        int
	}{
		{"it keeps all", 0, 0, 3100, 0},
		{"a checkpoint each half hour", 1800, 0, 3300, 200 * 8},
		{"a slow start, too", 1800, 60, 3360, 260 * 8},
		{"no checkpoint in time", 2500, 0, 5100, 2000 * 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			var records []sim.Record
			core := &counter{free: 8, pods: map[cell.PodID]*cell.Request{}}
			r, err := sim.Run(t.Context(), small(), jobs, sim.Options{Core: core, Drain: true, Checkpoint: c.checkpoint, Restart: c.restart,
				Job: func(r sim.Record) { records = append(records, r) }})
			require.NoError(t, err)
			assert.Equal(t, []sim.Record{
				{ID: 0, Arrival: 0, FirstStart: 0, Finish: c.finish, Kills: 1, LostGPUSeconds: c.lost},
				{ID: 1, Arrival: 2000, FirstStart: 2000, Finish: 2100},
				{ID: 2, Arrival: 2010, FirstStart: 2010, Finish: 2050},
			}, records)
			assert.InDelta(t, float64(c.lost)/(3000*8+100*4+40*3), r.Completion.LostWork, 1e-9)
			assert.Equal(t, sim.Completion{Jobs: 1, Time: sim.Spread{Mean: float64(c.finish), P99: float64(c.finish)},
				Slowdown: sim.Spread{Mean: float64(c.finish) / 3000, P99: float64(c.finish) / 3000}}, r.Completion.Opportunistic)
			assert.Equal(t, 2, r.Completion.Guaranteed.Jobs)
			assert.Equal(t, 1, r.WaitingAtEnd, "at the last arrival")
			assert.Equal(t, 3, r.Finished)
		})
	}
}

// A job that is killed during its restart loses only the time of this restart, and only once.
func TestAJobThatIsKilledWhileItStartsLosesNoWorkAgain(t *testing.T) {
	jobs := []trace.Job{
		{ID: 0, Arrival: 0, Duration: 1000, VC: "A", Priority: -1, Pods: 1, GPUsPerPod: 8},
		{ID: 1, Arrival: 500, Duration: 10, VC: "A", Pods: 1, GPUsPerPod: 4},
		{ID: 2, Arrival: 520, Duration: 10, VC: "A", Pods: 1, GPUsPerPod: 4},
	}
	var first sim.Record
	core := &counter{free: 8, pods: map[cell.PodID]*cell.Request{}}
	_, err := sim.Run(t.Context(), small(), jobs, sim.Options{Core: core, Drain: true, Checkpoint: 400, Restart: 60, Job: func(r sim.Record) {
		if r.ID == 0 {
			first = r
		}
	}})
	require.NoError(t, err)
	// 0 to 500: 400 s of work kept, 100 lost; 510 to 520: restart; from 530: restart of 60 s, then 600 s of work.
	assert.Equal(t, sim.Record{ID: 0, FirstStart: 0, Finish: 1190, Kills: 2, LostGPUSeconds: (100 + 10 + 60) * 8}, first)
}

func TestRunExplainsWhatWaitsInsideItsQuotaOnce(t *testing.T) {
	core, r := run(t, []trace.Job{
		{ID: 0, Arrival: 0, Duration: 10, VC: "A", Pods: 1, GPUsPerPod: 4},
		{ID: 1, Arrival: 0, Duration: 20, VC: "A", Pods: 1, GPUsPerPod: 4}, // more than A owns
		{ID: 2, Arrival: 5, Duration: 10, VC: "B", Pods: 1, GPUsPerPod: 4},
		{ID: 3, Arrival: 50, Duration: 10, VC: "B", Pods: 1, GPUsPerPod: 1},
	})
	assert.Equal(t, 1, r.FailedAttemptsWithinQuota)
	assert.Equal(t, 1, r.JobsThatWaitedWithinQuota)
	assert.Equal(t, map[string]int{"Fragmented": 1}, r.WaitedWithinQuotaByCode)
	assert.Equal(t, 1, strings.Count(strings.Join(core.log, "\n"), "why"))
	assert.InDelta(t, 5.0/4, r.Mean, 1e-9)
	assert.Equal(t, 0, r.P50)
	assert.Equal(t, 5, r.P99)
}

func TestRunRefusesATraceThatDoesNotFitTheCluster(t *testing.T) {
	for _, c := range []struct {
		name            string
		job             trace.Job
		message, remedy string
	}{
		{"a virtual cluster that isn't there", trace.Job{ID: 3, VC: "C", Pods: 1, GPUsPerPod: 1}, `job 3: there is no virtual cluster "C"`, "the virtual clusters of the configuration are A, B"},
		{"more GPUs than there are", trace.Job{ID: 3, VC: "A", Pods: 2, GPUsPerPod: 5}, "job 3: it wants 10 GPUs of the cluster's 8", "remove it, or make it smaller"},
		{"no pods", trace.Job{ID: 3, VC: "A"}, "job 3: negative times, or no pods or GPUs", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := sim.Run(t.Context(), small(), []trace.Job{c.job}, sim.Options{})
			require.EqualError(t, err, c.message)
			assert.Equal(t, c.remedy, hint.Of(err))
		})
	}
}

func TestRunEndsWhereTheSchedulerContradictsItself(t *testing.T) {
	c := &counter{free: 0, lie: true, pods: map[cell.PodID]*cell.Request{}}
	_, err := sim.Run(t.Context(), small(), []trace.Job{{VC: "A", Pods: 1, GPUsPerPod: 1}}, sim.Options{Core: c})
	require.EqualError(t, err, "second 0: the scheduler's state is inconsistent: job 0: its victim nobody doesn't run")
}

func TestRunOfNothingReportsNothing(t *testing.T) {
	r, err := sim.Run(t.Context(), small(), nil, sim.Options{})
	require.NoError(t, err)
	assert.Zero(t, r.Utilisation)
	assert.Zero(t, r.Jobs)
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var seen int
	_, err := sim.Run(ctx, small(), []trace.Job{{VC: "A", Pods: 1, GPUsPerPod: 1}, {ID: 1, VC: "A", Pods: 1, GPUsPerPod: 1}},
		sim.Options{Core: &counter{free: 8, pods: map[cell.PodID]*cell.Request{}}, Progress: func(arrived, all int) { seen = arrived; cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 1, seen)
}

// ticks is a meter whose clock advances by a microsecond with each reading.
type ticks struct{ n int }

func (m *ticks) Wall() time.Duration {
	m.n++
	return time.Duration(m.n) * time.Microsecond
}
func (m *ticks) CPU() time.Duration { return time.Duration(m.n) * time.Microsecond }
func (m *ticks) Allocated() uint64  { return uint64(1000 * m.n) }
func (m *ticks) PeakMemory() uint64 { return 3 << 20 }

func TestRunMeasuresDecisionsWithTheMeterItIsGiven(t *testing.T) {
	core := &counter{free: 8, pods: map[cell.PodID]*cell.Request{}}
	r, err := sim.Run(t.Context(), small(), []trace.Job{{VC: "A", Pods: 2, GPUsPerPod: 1, Duration: 1}, {ID: 1, Arrival: 2, VC: "A", Pods: 1, GPUsPerPod: 1}},
		sim.Options{Core: core, Meter: &ticks{}})
	require.NoError(t, err)
	require.NotNil(t, r.Speed)
	assert.Equal(t, 3, r.Decisions)
	// The meter counts three decisions and one deletion, which take a microsecond each.
	assert.InDelta(t, 1e6, r.Speed.DecisionsPerSec, 1)
	assert.InDelta(t, 750e3, r.Speed.DecisionsPerSecInclDeletes, 1)
	assert.InDelta(t, 1, r.Speed.P99, 1e-9)
	assert.InDelta(t, 3, r.Speed.PeakRSS, 1e-9)
	assert.InDelta(t, 8000.0/3, r.Speed.AllocBytesPerDecision, 1)
}
