package job

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/framework/api"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// Phase is where a job is on its way, in one word.
type Phase string

// The phases, in the order in which they are passed; Means says what they are.
const (
	Waiting   Phase = "waiting"
	Queued    Phase = "queued"
	Pulling   Phase = "pulling"
	Barrier   Phase = "barrier"
	Running   Phase = "running"
	Stopping  Phase = "stopping"
	Retry     Phase = "retry"
	Succeeded Phase = "succeeded"
	Failed    Phase = "failed"
	Stopped   Phase = "stopped"
	// Deleted: its Framework was removed before it had ended. Only the history has such jobs, and says so
	// itself once the job controller has looked.
	Deleted Phase = api.Deleted
)

// Phases are all of them.
func Phases() []Phase {
	return []Phase{Waiting, Queued, Pulling, Barrier, Running, Stopping, Retry, Succeeded, Failed, Stopped, Deleted}
}

// Means says what the phase is, for help texts.
func (p Phase) Means() string {
	switch p {
	case Waiting:
		return "for its pods to be made, or for a machine"
	case Queued:
		return "for GPUs, with the position in its virtual cluster"
	case Pulling:
		return "has its machines; images and volumes come"
	case Barrier:
		return "some tasks wait for the last ones"
	case Running:
		return "its tasks run"
	case Stopping:
		return "its tasks are being ended"
	case Retry:
		return "failed, and is tried again"
	case Succeeded:
		return "ended as it should"
	case Failed:
		return "ended otherwise, and is not tried again"
	case Stopped:
		return "ended on request"
	case Deleted:
		return "was removed before it had ended"
	}
	return ""
}

// Done reports whether nothing more comes.
func (p Phase) Done() bool {
	return p == Succeeded || p == Failed || p == Stopped || p == Deleted
}

// Verb is the phase as the end of a sentence about a job: "has failed", "was stopped", "is running".
func (p Phase) Verb() string {
	switch p {
	case Succeeded, Failed:
		return "has " + string(p)
	case Stopped, Deleted:
		return "was " + string(p)
	case Retry:
		return "waits for its next attempt"
	case Barrier:
		return "waits for its last tasks"
	}
	return "is " + string(p)
}

// State is where a job is on its way.
type State struct {
	Phase Phase
	// Position in the queue of its virtual cluster, from 1; only of queued jobs.
	Position int
	// RetryAt is when the next attempt begins; only of jobs that wait for it.
	RetryAt *time.Time
}

// Text is the state for people: "queued (3rd)", "retry in 4m".
func (s State) Text(now time.Time) string {
	switch {
	case s.Phase == Queued && s.Position > 0:
		return fmt.Sprintf("queued (%s)", ordinal(s.Position))
	case s.Phase == Retry && s.RetryAt != nil && s.RetryAt.After(now):
		return "retry in " + Duration(s.RetryAt.Sub(now))
	}
	return string(s.Phase)
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// Queue is the gangs that wait for GPUs, by the Framework that they belong to. Of several gangs of one
// job it is the one that is furthest behind.
type Queue map[string]schedulerapi.Queued

// NewQueue sorts what the scheduler says; nil is no queue.
func NewQueue(q *schedulerapi.Queue) Queue {
	out := Queue{}
	if q == nil {
		return out
	}
	for _, g := range q.Items {
		object := ObjectOfGroup(g.Group)
		if other, ok := out[object]; !ok || other.Position < g.Position {
			out[object] = g
		}
	}
	return out
}

// ObjectOfGroup is the Framework that a gang belongs to. Gangs are called USER~JOB/GROUP; a pod that
// belongs to none is its own gang, NAMESPACE/POD.
func ObjectOfGroup(group string) string {
	first, rest, _ := strings.Cut(group, "/")
	if user, name, ok := strings.Cut(first, "~"); ok {
		return v1.ObjectName(user, name)
	}
	object, _, _ := strings.Cut(rest, "-")
	return object
}

// StateOf is the state of a job. Of the pods, which were read after the Framework, only those that have not started matter; nil
// is not known: then the state is as exact as the Framework alone tells it.
func StateOf(f *v1.Framework, pods []corev1.Pod, queue Queue) State {
	switch row := api.StateOf(f); {
	case Phase(row).Done(), row == api.Stopping:
		return State{Phase: Phase(row)}
	case f.Status == nil && f.Spec.ExecutionType == v1.ExecutionStop:
		return State{Phase: Stopping}
	case f.Status == nil:
		return State{Phase: Waiting}
	}
	switch s := f.Status; s.State {
	case v1.AttemptCompleted:
		at := s.TransitionTime.Time
		if delay := s.RetryPolicyStatus.RetryDelaySec; delay != nil {
			at = at.Add(time.Duration(*delay) * time.Second)
		}
		return State{Phase: Retry, RetryAt: &at}
	case v1.AttemptDeletionPending, v1.AttemptDeletionRequested, v1.AttemptDeleting:
		return State{Phase: Stopping}
	case v1.AttemptCreationPending, v1.AttemptCreationRequested:
		return State{Phase: Waiting}
	}
	return progress(f, pods, queue)
}

// progress is the state of an attempt that has its objects: that of the task that is furthest behind,
// if tasks wait for each other, else that of the one that is furthest ahead.
func progress(f *v1.Framework, pods []corev1.Pod, queue Queue) State {
	total, begun, made := tasks(f)
	gang, published := IsGang(f), f.Status.AttemptStatus.PeersTime
	if !gang && begun > 0 {
		return State{Phase: Running}
	}
	unplaced, starting, late := 0, 0, 0
	for i := range pods {
		p := &pods[i]
		if !hasStarted(p) {
			late++
		}
		switch {
		case hasStarted(p):
		case gang && published != nil && p.CreationTimestamp.After(published.Time):
			// The tasks had found each other when this one was added.
		case p.Spec.NodeName == "":
			unplaced++
		default:
			starting++
		}
	}
	// Pods that the Framework knows as not begun, and that are not among those that wait, have begun meanwhile. Without that a
	// job would seem to go back.
	ahead := pods != nil && made > late
	queued, inQueue := queue[f.Name]
	switch {
	case !gang && (starting > 0 || ahead):
		return State{Phase: Pulling}
	case inQueue && (unplaced > 0 || len(pods) == 0 && begun == 0 && !ahead):
		return State{Phase: Queued, Position: queued.PositionInVC}
	case unplaced > 0:
		return State{Phase: Waiting}
	case starting > 0 || ahead && begun+made == total:
		return State{Phase: Pulling}
	case gang && published != nil, !gang && f.Status.State == v1.AttemptRunning:
		return State{Phase: Running}
	case begun < total:
		return State{Phase: Waiting}
	case gang:
		return State{Phase: Barrier}
	}
	return State{Phase: Running}
}

// tasks counts a job's tasks, those that have begun to run, and those that have a pod which has not. Of a large job the last are
// not known: its Framework has only the counts.
func tasks(f *v1.Framework) (total, begun, made int) {
	for _, r := range f.Status.AttemptStatus.TaskRoleStatuses {
		if r == nil {
			continue
		}
		total += int(r.Counts.Total)
		begun += int(r.Counts.Running + r.Counts.Succeeded + r.Counts.Failed)
		for _, t := range r.TaskStatuses {
			if t != nil && t.State == v1.AttemptPreparing && !t.DeletionPending {
				made++
			}
		}
	}
	return total, begun, made
}

// IsGang reports whether the tasks of a job wait for each other before any of them begins.
func IsGang(f *v1.Framework) bool {
	n := int32(0)
	for i := range f.Spec.TaskRoles {
		n += f.Spec.TaskRoles[i].TaskNumber
	}
	return f.Annotations[v1.AnnotationRuntime] != "" && f.Annotations[v1.AnnotationGang] != "false" && n > 1
}

// hasStarted reports whether the user's container has begun to run, or has ended.
func hasStarted(p *corev1.Pod) bool {
	return p.Status.Phase != corev1.PodPending && p.Status.Phase != ""
}

// archivedState is the state of a job that has no Framework.
func archivedState(row *api.Job) State {
	if p := Phase(row.State); p.Done() {
		return State{Phase: p}
	}
	return State{Phase: Deleted}
}

// Duration is a time span for people: the two largest units.
func Duration(d time.Duration) string {
	switch d = max(d, 0).Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return two(int(d.Minutes()), "m", int(d.Seconds())%60, "s", 10)
	case d < 24*time.Hour:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "m", 10)
	}
	return two(int(d.Hours())/24, "d", int(d.Hours())%24, "h", 10)
}

// two leaves the smaller unit out where it is zero, or where the larger one has two digits.
func two(a int, unitA string, b int, unitB string, enough int) string {
	if b == 0 || a >= enough {
		return fmt.Sprintf("%d%s", a, unitA)
	}
	return fmt.Sprintf("%d%s%d%s", a, unitA, b, unitB)
}
