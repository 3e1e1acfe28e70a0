package sim

import (
	"cmp"
	"container/heap"
	"fmt"

	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// job is a job of the trace while it waits or runs, and after its end.
type job struct {
	trace.Job
	queued  queue.Gang
	request *cell.Request
	pods    []cell.PodID
	// left are the remaining seconds of work; life counts how often its pods were created.
	left, life int
	// began is when it last started, or -1 while it waits. starting is how many seconds since then it does no work.
	began, starting int
	// first is when it first started, and finish is when it ended, or -1 if that hasn't happened yet.
	first, finish int
	// kills counts how often it was killed; lost are the seconds of repeated work and of restarts.
	kills, lost int
	// waited reports that it waited within its quota; see Report.
	waited bool
}

// makePods creates the pods for the next start. After each kill the pods are new, like the pods of a controller in a cluster.
func (j *job) makePods() {
	j.life++
	j.pods = make([]cell.PodID, j.Pods)
	for i := range j.pods {
		j.pods[i] = cell.PodID(fmt.Sprintf("default/job-%d-%d-%d", j.ID, i, j.life))
	}
}

// requestOf returns the request of each pod of a job.
func requestOf(j *trace.Job) *cell.Request {
	name := fmt.Sprintf("default/job-%d", j.ID)
	return &cell.Request{VirtualCluster: j.VC, Priority: j.Priority, Gang: name,
		Root: cell.Group{Name: name, Pods: []cell.PodSet{{Count: j.Pods, Cells: j.GPUsPerPod}}}}
}

// class holds the properties that jobs share if one of them can't start when another couldn't.
type class struct {
	vc, policy               string
	priority, pods, gpusEach int
}

// gang converts a job to the queue's form, for a virtual cluster with a policy. Its class is the same for opportunistic jobs of all
// virtual clusters with one policy: they may run anywhere.
func (j *job) gang(policy string) queue.Gang {
	c := class{policy: policy, priority: j.Priority, pods: j.Pods, gpusEach: j.GPUsPerPod}
	if j.Priority >= 0 {
		c.vc = j.VC
	}
	return queue.Gang{VC: j.VC, Name: fmt.Sprintf("%09d", j.ID), Priority: j.Priority, Since: int64(j.Arrival), GPUs: j.GPUs(), Class: c, Data: j}
}

// end is when a job will end, unless it is killed before.
type end struct {
	at, life int
	job      *job
}

// ends is a heap of the running jobs, in order of time and id.
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

// next removes and returns the first end up to a time; it drops stale ends of jobs that were killed.
func (e *ends) next(until int) (end, bool) {
	for len(*e) > 0 && (*e)[0].at <= until {
		x := heap.Pop(e).(end)
		if x.life == x.job.life && x.job.began >= 0 {
			return x, true
		}
	}
	return end{}, false
}
