package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// job is a job of the trace while it waits, runs, or is over.
type job struct {
	trace.Job
	queued queue.Gang
	pods   []*pod
	// left are the seconds that it still has to run, life counts how often its pods were made.
	left, life int
	// began is when it started last; -1 while it waits. starting are the seconds since then that it does no work.
	began, starting int
	// first is when it started first, finish when it was over; -1 until then.
	first, finish int
	// kills counts how often it was killed, lost the seconds of work that it did again, and of restarts.
	kills, lost int
	// waited: it waited inside its quota.
	waited bool
}

// pod is a pod of a job: new after each kill, as a controller makes a new one in a cluster.
type pod struct {
	id         cell.PodID
	name, text string
	request    *cell.Request
}

// makePods makes the pods of the next life. Each has its own copy of the annotation, as pods in a cluster do.
func (j *job) makePods() {
	j.life++
	spec := specText(j.Job)
	j.pods = make([]*pod, j.Pods)
	for i := range j.pods {
		name := fmt.Sprintf("default/job-%d-%d", j.ID, i)
		j.pods[i] = &pod{id: cell.PodID(fmt.Sprintf("%s-%d", name, j.life)), name: name, text: strings.Clone(spec)}
	}
}

// specText is the annotation of a job's pods.
func specText(j trace.Job) string {
	return fmt.Sprintf(`virtualCluster: %q
priority: %d
leafCellNumber: %d
ignoreK8sSuggestedNodes: true
affinityGroup:
  name: default/job-%d
  members:
  - podNumber: %d
    leafCellNumber: %d
`, j.VC, j.Priority, j.GPUsPerPod, j.ID, j.Pods, j.GPUsPerPod)
}

// class is what jobs have in common of which one can't start if another couldn't.
type class struct {
	vc, policy               string
	priority, pods, gpusEach int
}

// gang is a job as the queue sees it, of a virtual cluster with a policy. Its class is the same for opportunistic jobs of all
// virtual clusters with one policy: they may lie anywhere.
func (j *job) gang(policy string) queue.Gang {
	c := class{policy: policy, priority: j.Priority, pods: j.Pods, gpusEach: j.GPUsPerPod}
	if j.Priority >= 0 {
		c.vc = j.VC
	}
	return queue.Gang{VC: j.VC, Name: fmt.Sprintf("%09d", j.ID), Priority: j.Priority, Since: int64(j.Arrival), GPUs: j.GPUs(), Class: c, Data: j}
}

// end is when a job will be over, unless it is killed before.
type end struct {
	at, life int
	job      *job
}

// ends is a heap of what runs, in order of time and id.
type ends []end

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[k].at), cmp.Compare(e[i].job.ID, e[k].job.ID)) < 0
}
func (e ends) Swap(i, k int) { e[i], e[k] = e[k], e[i] }

// Push implements heap.Interface.
func (e *ends) Push(x any) { *e = append(*e, x.(end)) }

// Pop implements heap.Interface.
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// next takes the first end until a time; stale ones, of jobs that were killed, are dropped.
func (e *ends) next(until int) (end, bool) {
	for len(*e) > 0 && (*e)[0].at <= until {
		x := heap.Pop(e).(end)
		if x.life == x.job.life && x.job.began >= 0 {
			return x, true
		}
	}
	return end{}, false
}
