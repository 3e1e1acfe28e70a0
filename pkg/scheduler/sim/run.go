package sim

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// Core is what a run needs of the scheduler's core; cell.Scheduler is it.
type Core interface {
	Schedule(pod cell.PodID, r *cell.Request, phase cell.Phase, suggested cell.Nodes) cell.Decision
	Allocate(pod cell.PodID, r *cell.Request, at *cell.Placement, slot int) ([]cell.Downgrade, error)
	DeleteAllocated(pod cell.PodID) ([]cell.Downgrade, bool)
	Why(r *cell.Request) cell.Explanation
}

// Options of a run. The zero value is a run without measurement.
type Options struct {
	// Meter measures what decisions cost; nil leaves Report.Speed out.
	Meter Meter
	// Progress is called with how many of all jobs have arrived.
	Progress func(arrived, all int)
	// CoreOnly leaves out reading and writing annotations, to see what the core alone costs.
	CoreOnly bool
	// Core replaces the scheduler, all its nodes healthy.
	Core Core
}

// run is the state of one run.
type run struct {
	Options
	topology *topology
	quota    map[string]int
	codec    codec
	watch    stopwatch
	count    counts

	jobs  []*job
	queue queue
	ends  ends
	owner map[cell.PodID]*job
	// used are the GPUs in use, in all and of guaranteed jobs by virtual cluster and priority.
	used       int
	guaranteed map[string]map[int]int
	// now is the virtual time in seconds, last the last arrival.
	now, last int
}

// Run replays jobs on a cluster whose nodes are all healthy, in virtual time, and reports how it
// went. It ends at the last arrival. Jobs of the same priority start in order of arrival; a job
// that is killed goes back to its place in the queue and keeps what it ran.
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
	return r.report(c), nil
}

func newRun(c cell.Config, jobs []trace.Job, o Options) (*run, error) {
	t, err := newTopology(c)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, topology: t, quota: map[string]int{}, owner: map[cell.PodID]*job{}, guaranteed: map[string]map[int]int{},
		codec: textCodec{}, watch: stopwatch{meter: o.Meter}, count: newCounts()}
	if o.CoreOnly {
		r.codec = directCodec{}
	}
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

// take orders the jobs by arrival and refuses what no cluster could run.
func (r *run) take(c cell.Config, jobs []trace.Job) error {
	var names []string
	for _, v := range c.VirtualClusters {
		names = append(names, v.Name)
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
		r.jobs = append(r.jobs, &job{Job: j, left: j.Duration, began: -1})
	}
	slices.SortFunc(r.jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.ID, b.ID))
	})
	if len(r.jobs) > 0 {
		r.last = r.jobs[len(r.jobs)-1].Arrival
	}
	return nil
}

// arrive brings the cluster to a job's arrival, and tries it once.
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
	r.queue.add(j)
	_, err := r.try(j)
	return err
}

// complete ends a job and lets those that wait try the cells that it leaves, each once. Where one
// couldn't start, its like are not asked.
func (r *run) complete(j *job) error {
	if err := r.free(j); err != nil {
		return err
	}
	j.pods = nil
	r.count.finished++
	failed := map[class]bool{}
	for _, w := range slices.Clone(r.queue) {
		if failed[w.class()] {
			continue
		}
		started, err := r.try(w)
		if err != nil {
			return err
		}
		if !started {
			failed[w.class()] = true
		}
	}
	return nil
}

// free deletes the pods of a running job.
func (r *run) free(j *job) error {
	since := r.watch.now()
	for _, p := range j.pods {
		downgrades, ok := r.Core.DeleteAllocated(p.id)
		if !ok {
			return fmt.Errorf("job %d: the scheduler doesn't know its pod %s", j.ID, p.id)
		}
		r.count.downgrades += len(downgrades)
	}
	r.watch.deletes += r.watch.now() - since
	for _, p := range j.pods {
		delete(r.owner, p.id)
	}
	j.began = -1
	r.hold(j, -j.GPUs())
	return nil
}

// hold counts GPUs that a job takes, or gives back.
func (r *run) hold(j *job, gpus int) {
	r.used += gpus
	if j.Priority >= 0 {
		r.guaranteed[j.VC][j.Priority] += gpus
	}
}

// withinQuota reports whether a guaranteed job and those of its virtual cluster that it can't preempt
// fit into what the virtual cluster owns.
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

// advance moves the virtual time and the averages over it.
func (r *run) advance(to int) {
	from := max(float64(r.now), 0.3*float64(r.last))
	if d := float64(to) - from; d > 0 {
		r.count.busy += d * float64(r.used)
		r.count.pending += d * float64(len(r.queue))
	}
	r.now = to
}

// begin records that a job runs.
func (r *run) begin(j *job, at *cell.Placement) {
	r.queue.remove(j)
	j.began = r.now
	r.hold(j, j.GPUs())
	heap.Push(&r.ends, end{at: r.now + j.left, life: j.life, job: j})
	r.count.started(r.topology, j, at)
	if !j.once {
		j.once = true
		r.count.delayed(j, r.now-j.Arrival)
	}
}

// kill ends a job before its time: it keeps what it ran and waits again, with new pods.
func (r *run) kill(j *job) error {
	ran := r.now - j.began
	if err := r.free(j); err != nil {
		return err
	}
	j.left -= ran
	j.makePods()
	r.queue.add(j)
	r.count.killed[j.VC]++
	return nil
}

// errStuck is a contradiction between what the scheduler said and what it says now.
var errStuck = errors.New("the scheduler contradicts itself")
