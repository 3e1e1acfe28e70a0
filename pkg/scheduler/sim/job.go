package sim

import (
	"cmp"
	"container/heap"
	"fmt"

	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// job is a waiting, running or finished job of the trace.
type job struct {
	trace.Job
	queued  queue.Gang
	request *cell.Request
	pods    []cell.PodID
	// left is the remaining work in seconds. life counts how often the job's pods were created.
	left, life int
	// began is when the job last started, or -1 while it waits. starting is the duration of that start in seconds, during which
	// the job does no work.
	began, starting int
	// first is when the job first started. finish is when it ended. They are -1 before that.
	first, finish int
	// kills counts how often the job was killed. lost is the time for repeated work and restarts, in seconds.
	kills, lost int
	// waited means that the job has waited within its quota. See Report.
	waited bool
}

// makePods creates the pods for the next start. As in a cluster, a job gets new pods after each kill.
func (j *job) makePods() {
	j.life++
	j.pods = make([]cell.PodID, j.Pods)
	for i := range j.pods {
		j.pods[i] = cell.PodID(fmt.Sprintf("default/job-%d-%d-%d", j.ID, i, j.life))
	}
}

// requestOf returns the common request of a job's pods.
func requestOf(j *trace.Job) *cell.Request {
	name := fmt.Sprintf("default/job-%d", j.ID)
	return &cell.Request{VirtualCluster: j.VC, Priority: j.Priority, Gang: name,
		Root: cell.Group{Name: name, Pods: []cell.PodSet{{Count: j.Pods, Cells: j.GPUsPerPod}}}}
}

// class identifies equivalent jobs. If one of them can't start, the others can't start either.
type class struct {
	vc, policy               string
	priority, pods, gpusEach int
}

// gang converts a job for the queue. Opportunistic jobs with the same policy have the same class in all virtual clusters,
// because they may run anywhere.
func (j *job) gang(policy string) queue.Gang {
	c := class{policy: policy, priority: j.Priority, pods: j.Pods, gpusEach: j.GPUsPerPod}
	if j.Priority >= 0 {
		c.vc = j.VC
	}
	return queue.Gang{VC: j.VC, Name: fmt.Sprintf("%09d", j.ID), Priority: j.Priority, Since: int64(j.Arrival), GPUs: j.GPUs(), Class: c, Data: j}
}

// end is the time at which a job will end unless it is killed first.
type end struct {
	at, life int
	job      *job
}

// ends is a heap of the running jobs, ordered by time and id.
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

// next removes and returns the first end up to a time. It drops the ends of killed jobs.
func (e *ends) next(until int) (end, bool) {
	for len(*e) > 0 && (*e)[0].at <= until {
		x := heap.Pop(e).(end)
		if x.life == x.job.life && x.job.began >= 0 {
			return x, true
		}
	}
	return end{}, false
}
