package sim

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// Core defines the methods of the scheduler that a run needs. cell.Scheduler implements Core.
type Core interface {
	Schedule(pod cell.PodID, r *cell.Request, phase cell.Phase, suggested cell.Nodes) cell.Decision
	Allocate(pod cell.PodID, r *cell.Request, at *cell.Placement, slot int) ([]cell.Downgrade, error)
	DeleteAllocated(pod cell.PodID) ([]cell.Downgrade, bool)
	Why(r *cell.Request) cell.Explanation
}

// Options configures a run. The zero value is a run without measurement.
type Options struct {
	// Meter measures the costs of decisions. If Meter is nil, Report.Speed is nil.
	Meter Meter
	// Progress is called with the number of arrived jobs and the number of all jobs.
	Progress func(arrived, all int)
	// Core replaces the scheduler if it isn't nil. All its nodes must be healthy.
	Core Core
	// Drain continues the run after the last arrival until every job has finished.
	Drain bool
	// Checkpoint is the work between two checkpoints of a job, in seconds. A killed job continues from its last checkpoint. 0
	// means that a killed job keeps all its work.
	Checkpoint int
	// Restart is how many seconds each start after a kill takes. During this time, the job holds its GPUs but does no work.
	Restart int
	// ReservationAfter is how long a guaranteed job waits before GPUs are held for it. 0 means the default of a cluster. A
	// negative value means that GPUs are never held.
	ReservationAfter time.Duration
	// Job is called at the end of the run with the record of each job, in order of arrival.
	Job func(Record)
}

// Record is the history of a job. Times are in seconds of the trace. They are -1 for events that didn't happen.
type Record struct {
	ID, Arrival, FirstStart, Finish, Kills int
	// LostGPUSeconds is the GPU time for repeated work and restarts.
	LostGPUSeconds int
}

type run struct {
	Options
	topology *topology
	quota    map[string]int
	watch    stopwatch
	count    counts

	jobs  []*job
	queue queue.Queue
	ends  ends
	owner map[cell.PodID]*job
	// used counts the GPUs of all jobs. guaranteed counts the GPUs of guaranteed jobs, by virtual cluster and priority.
	used       int
	guaranteed map[string]map[int]int
	// now is the virtual time in seconds. last is the time of the last arrival.
	now, last int
}

// Run replays jobs in virtual time on a cluster with healthy nodes, and returns a report. It ends at the last arrival or, with
// Drain, after all jobs have finished. Jobs start in the order of package queue. A killed job returns to its queue position,
// and keeps the work up to its last checkpoint.
func Run(ctx context.Context, c cell.Config, jobs []trace.Job, o Options) (report *Report, err error) {
	r, err := newRun(c, jobs, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			report, err = nil, fmt.Errorf("second %d: %w", r.now, panicked(p))
		}
	}()
	r.watch.start()
	for i, j := range r.jobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.arrive(j); err != nil {
			return nil, fmt.Errorf("second %d: %w", r.now, err)
		}
		if r.Progress != nil {
			r.Progress(i+1, len(r.jobs))
		}
	}
	report = r.report(c)
	if r.Drain {
		if err := r.drain(ctx); err != nil {
			return nil, fmt.Errorf("second %d: %w", r.now, err)
		}
		report = r.drained(report, r.report(c))
	}
	if r.Job != nil {
		for _, j := range r.jobs {
			r.Job(Record{ID: j.ID, Arrival: j.Arrival, FirstStart: j.first, Finish: j.finish, Kills: j.kills, LostGPUSeconds: j.lost * j.GPUs()})
		}
	}
	return report, nil
}

func newRun(c cell.Config, jobs []trace.Job, o Options) (*run, error) {
	if outside := func(n int) bool { return n < 0 || n > trace.MaxSeconds }; outside(o.Checkpoint) || outside(o.Restart) {
		return nil, fmt.Errorf("the checkpoint and the restart are seconds from 0 to %d", trace.MaxSeconds)
	}
	t, err := newTopology(c)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, topology: t, quota: map[string]int{}, owner: map[cell.PodID]*job{}, guaranteed: map[string]map[int]int{},
		queue: queue.Queue{Reservations: queue.After(cmp.Or(o.ReservationAfter, queue.ReservationAfter), time.Second)}, watch: stopwatch{meter: o.Meter}, count: newCounts()}
	for _, v := range c.VirtualClusters {
		r.quota[v.Name] = t.owned(v)
		r.guaranteed[v.Name] = map[int]int{}
	}
	if err := r.take(c, jobs); err != nil {
		return nil, err
	}
	if r.Core == nil {
		s, err := cell.New(c)
		if err != nil {
			return nil, err
		}
		for _, n := range s.Nodes() {
			s.SetNode(n, true)
		}
		r.Core = s
	}
	return r, nil
}

// take sorts the jobs by arrival. It returns an error if the cluster can never run a job.
func (r *run) take(c cell.Config, jobs []trace.Job) error {
	var names []string
	policy := map[string]string{}
	for _, v := range c.VirtualClusters {
		names = append(names, v.Name)
		policy[v.Name] = cell.PolicyName(v.Policy)
	}
	for _, j := range jobs {
		if _, ok := r.quota[j.VC]; !ok {
			return hint.Errorf("the virtual clusters of the configuration are "+strings.Join(names, ", "), "job %d: there is no virtual cluster %q", j.ID, j.VC)
		}
		if j.Pods < 1 || j.GPUsPerPod < 1 || j.Arrival < 0 || j.Duration < 0 {
			return fmt.Errorf("job %d: negative times, or no pods or GPUs", j.ID)
		}
		if j.GPUs() > r.topology.gpus {
			return hint.Errorf("remove it, or make it smaller", "job %d: it wants %d GPUs of the cluster's %d", j.ID, j.GPUs(), r.topology.gpus)
		}
		one := &job{Job: j, request: requestOf(&j), left: j.Duration, began: -1, first: -1, finish: -1}
		one.queued = one.gang(policy[j.VC])
		r.jobs = append(r.jobs, one)
	}
	slices.SortFunc(r.jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.ID, b.ID))
	})
	if len(r.jobs) > 0 {
		r.last = r.jobs[len(r.jobs)-1].Arrival
	}
	return nil
}

// arrive advances the time to a job's arrival, and tries once to start the job.
func (r *run) arrive(j *job) error {
	for {
		e, ok := r.ends.next(j.Arrival)
		if !ok {
			break
		}
		r.advance(e.at)
		if err := r.complete(e.job); err != nil {
			return err
		}
	}
	r.advance(j.Arrival)
	j.makePods()
	r.queue.Add(&j.queued)
	if r.queue.Reservation(&j.queued) != nil {
		return nil
	}
	_, err := r.try(j)
	return err
}

// If no job runs, drain retries held jobs every askAgain seconds, as in a cluster, but at most askMost times.
const (
	askAgain = 10
	askMost  = 100_000
)

// drain continues the run until all jobs have finished.
func (r *run) drain(ctx context.Context) error {
	asked := 0
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, ok := r.ends.next(math.MaxInt)
		if !ok {
			if r.queue.Len() == 0 {
				return nil
			}
			if asked++; asked > askMost {
				return fmt.Errorf("%w: job %d waits although no job runs", errStuck, r.queue.Order()[0].Data.(*job).ID)
			}
			r.advance(r.now + askAgain)
			if err := r.pass(); err != nil {
				return err
			}
			continue
		}
		asked = 0
		r.advance(e.at)
		if err := r.complete(e.job); err != nil {
			return err
		}
	}
}

func (r *run) complete(j *job) error {
	r.waste(j, j.began, j.starting)
	if err := r.free(j); err != nil {
		return err
	}
	j.pods, j.finish = nil, r.now
	r.count.finished++
	return r.pass()
}

// pass tries to start each waiting job once, in order.
func (r *run) pass() error {
	return r.queue.Pass(int64(r.now), func(g *queue.Gang) (queue.Attempt, error) { return r.try(g.Data.(*job)) }, nil)
}

func (r *run) free(j *job) error {
	since := r.watch.now()
	for _, p := range j.pods {
		downgrades, ok := r.Core.DeleteAllocated(p)
		if !ok {
			return fmt.Errorf("job %d: the scheduler doesn't know its pod %s", j.ID, p)
		}
		r.count.downgrades += len(downgrades)
	}
	r.watch.deletes += r.watch.now() - since
	for _, p := range j.pods {
		delete(r.owner, p)
	}
	j.began = -1
	r.hold(j, -j.GPUs())
	return nil
}

// hold adds the GPUs of a job to the counts. gpus is negative if the job releases its GPUs.
func (r *run) hold(j *job, gpus int) {
	r.used += gpus
	if gpus > 0 {
		r.queue.Started(&j.queued)
	} else {
		r.queue.Ended(&j.queued)
	}
	if j.Priority >= 0 {
		r.guaranteed[j.VC][j.Priority] += gpus
	}
}

// withinQuota reports whether a guaranteed job waits within its quota. This is the case if the virtual cluster owns enough
// cells for the job and for all its jobs that the job can't preempt.
func (r *run) withinQuota(j *job) bool {
	if j.Priority < 0 {
		return false
	}
	gpus := j.GPUs()
	for priority, n := range r.guaranteed[j.VC] {
		if priority >= j.Priority {
			gpus += n
		}
	}
	return gpus <= r.quota[j.VC]
}

// advance moves the virtual time to a later time, and updates the averages.
func (r *run) advance(to int) {
	from := max(float64(r.now), 0.3*float64(r.last))
	if d := min(float64(to), float64(r.last)) - from; d > 0 {
		r.count.busy += d * float64(r.used)
		r.count.pending += d * float64(r.queue.Len())
	}
	r.now = to
}

func (r *run) begin(j *job, at *cell.Placement) {
	r.queue.Remove(&j.queued)
	j.began = r.now
	if j.kills > 0 {
		j.starting = r.Restart
	}
	r.hold(j, j.GPUs())
	heap.Push(&r.ends, end{at: r.now + j.starting + j.left, life: j.life, job: j})
	r.count.started(r.topology, j, at)
	if j.first < 0 {
		j.first = r.now
		r.count.delayed(j, r.now-j.Arrival)
	}
}

// kill ends a job early. The job returns to its last checkpoint and waits again with new pods.
func (r *run) kill(j *job) error {
	starting := min(j.starting, r.now-j.began)
	worked := j.Duration - j.left + r.now - j.began - starting
	kept := worked
	if r.Checkpoint > 0 {
		kept -= worked % r.Checkpoint
	}
	r.waste(j, j.began, starting)
	r.waste(j, r.now-(worked-kept), worked-kept)
	if err := r.free(j); err != nil {
		return err
	}
	j.left = j.Duration - kept
	j.kills++
	j.makePods()
	r.queue.Add(&j.queued)
	r.count.killed[j.VC]++
	return nil
}

// waste records lost work of a job. from is the beginning of the lost time.
func (r *run) waste(j *job, from, seconds int) {
	j.lost += seconds
	r.count.lost += seconds * j.GPUs()
	if d := min(float64(from+seconds), float64(r.last)) - max(float64(from), 0.3*float64(r.last)); d > 0 {
		r.count.useless += d * float64(j.GPUs())
	}
}

// errStuck means that two decisions of the scheduler contradict each other.
var errStuck = errors.New("the scheduler's state is inconsistent")
