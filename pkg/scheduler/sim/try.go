package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

// try requests a place for a job. If a place is found, try kills the jobs on its cells and starts the job.
func (r *run) try(j *job) (queue.Attempt, error) {
	d, err := r.decide(j, 0, cell.Filtering)
	if err != nil {
		return queue.Unfit, err
	}
	if d.Result == cell.Preempt {
		if d, err = r.preempt(j); err != nil {
			return queue.Unfit, err
		}
	}
	switch d.Result {
	case cell.Bind:
		for i := 1; i < len(j.pods); i++ {
			next, err := r.decide(j, i, cell.Filtering)
			if err != nil {
				return queue.Unfit, err
			}
			if next.Result != cell.Bind {
				return queue.Unfit, fmt.Errorf("%w: job %d: pod 0 was bound, pod %d gets %s (%s)", errStuck, j.ID, i, next.Result, next.Reason)
			}
		}
		r.begin(j, d.Placement)
		return queue.Starts, nil
	case cell.Wait:
		r.wait(j)
		return queue.Waits, nil
	case cell.Refuse:
		r.queue.Remove(&j.queued)
		r.count.refused = append(r.count.refused, Refusal{Job: j.ID, Reason: d.Reason})
		return queue.Unfit, nil
	}
	return queue.Unfit, fmt.Errorf("%w: job %d: %s after all victims are gone", errStuck, j.ID, d.Result)
}

// preempt reserves cells for a job, and kills the jobs on these cells. It returns the last decision.
func (r *run) preempt(j *job) (cell.Decision, error) {
	d, err := r.decide(j, 0, cell.Preempting)
	if err != nil {
		return d, err
	}
	for d.Result == cell.Preempt {
		victims, err := r.owners(j, d.Victims)
		if err != nil {
			return d, err
		}
		for _, v := range victims {
			if err := r.kill(v); err != nil {
				return d, err
			}
		}
		if d, err = r.decide(j, 0, cell.Filtering); err != nil {
			return d, err
		}
		if d.Result == cell.Bind {
			return d, nil
		}
	}
	if d.Result == cell.Bind {
		// The reservation found a free place, but pods are bound only in the filter phase.
		return r.decide(j, 0, cell.Filtering)
	}
	return d, nil
}

// owners returns the jobs of the victims, sorted by id.
func (r *run) owners(j *job, victims []cell.Victim) ([]*job, error) {
	var out []*job
	for _, v := range victims {
		owner, ok := r.owner[v.Pod]
		if !ok {
			return nil, fmt.Errorf("%w: job %d: its victim %s doesn't run", errStuck, j.ID, v.Pod)
		}
		if !slices.Contains(out, owner) {
			out = append(out, owner)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: job %d: preemption without a victim", errStuck, j.ID)
	}
	slices.SortFunc(out, func(a, b *job) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// decide makes one decision, as the scheduler does under its lock. If the decision in the filter phase is Bind, decide takes
// the place.
func (r *run) decide(j *job, i int, phase cell.Phase) (cell.Decision, error) {
	pod := j.pods[i]
	since := r.watch.now()
	d := r.Core.Schedule(pod, j.request, phase, nil)
	bound := d.Result == cell.Bind && phase == cell.Filtering
	var downgrades []cell.Downgrade
	var err error
	if bound {
		downgrades, err = r.Core.Allocate(pod, j.request, d.Placement, d.Slot)
	}
	r.watch.decided(since, i == 0, bound)
	r.count.decisions++
	r.count.downgrades += len(downgrades)
	if err != nil {
		return d, fmt.Errorf("%w: job %d: pod %d was bound and can't be accepted: %w", errStuck, j.ID, i, err)
	}
	if bound {
		r.owner[pod] = j
	}
	return d, nil
}

// wait counts an unsuccessful attempt if the job waits within its quota.
func (r *run) wait(j *job) {
	if !r.withinQuota(j) {
		return
	}
	r.count.failedWithinQuota++
	if j.waited {
		return
	}
	j.waited = true
	r.watch.leave()
	why := r.Core.Why(j.request)
	r.watch.enter()
	r.count.waited[j.VC]++
	r.count.codes[why.Code]++
}
