package listing

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// Brief holds the fields of a Framework that determine the job's row and state. A Brief takes some hundred bytes, and a Framework takes
// thousands, so only Briefs of all jobs of a cluster fit into memory.
type Brief struct {
	// Job is the Framework as a row of a list. Its State is the state that the controller wrote.
	Job api.Job
	// Message is the controller's message about a state that needs an explanation.
	Message string
	// Version is the resource version of the Framework.
	Version uint64

	known     bool // the controller has written a status
	stop      bool
	deleting  bool
	at        v1.State
	retryAt   time.Time
	gang      bool
	published time.Time // when the tasks of a gang got each other's addresses
	// total is the number of tasks. begun is the number of tasks that have begun to run, and made the number of tasks whose pod exists but hasn't
	// begun to run.
	total, begun, made int
}

// NewBrief returns a Brief with the fields of a Framework. It keeps no reference to the Framework.
func NewBrief(f *v1.Framework) *Brief {
	b := &Brief{Job: api.Summary(f), Version: ReadVersion(f.ResourceVersion), stop: f.Spec.ExecutionType == v1.ExecutionStop,
		deleting: f.DeletionTimestamp != nil, gang: IsGang(f)}
	s := f.Status
	if s == nil {
		return b
	}
	b.known, b.at, b.Message = true, s.State, s.Message
	b.retryAt = s.TransitionTime.Time
	if delay := s.RetryPolicyStatus.RetryDelaySec; delay != nil {
		b.retryAt = b.retryAt.Add(time.Duration(*delay) * time.Second)
	}
	if t := s.AttemptStatus.PeersTime; t != nil {
		b.published = t.Time
	}
	b.total, b.begun, b.made = Tasks(f)
	return b
}

// Title returns the job's displayed name, in the form user/name.
func (b *Brief) Title() string { return b.Job.User + "/" + b.Job.Name }

// Row returns the row of a live job in a state.
func (b *Brief) Row(s State) Row { return NewRow(b.Job, s, true) }

// Failure returns the phrase and the code of a failed job as text, or "" for other jobs.
func (b *Brief) Failure() string {
	if Phase(b.Job.State) != Failed || b.Job.Code == nil {
		return ""
	}
	return fmt.Sprintf("%s, code %d", cmp.Or(rules.Words(b.Job.Phrase), "failed"), *b.Job.Code)
}

// Start holds the fields of a pod that affect the state of its job.
type Start struct {
	Created time.Time
	// Placed means that the pod has a machine. Begun means that the user's container runs or has ended.
	Placed, Begun bool
}

// NewStart returns the Start for a pod.
func NewStart(p *corev1.Pod) Start {
	return Start{p.CreationTimestamp.Time, p.Spec.NodeName != "", Started(p)}
}

// State returns the state of a job. pods are the job's pods that haven't begun to run, as they were read after the Framework. pods is nil if they
// are unknown; then the state is only as exact as the Framework itself. queued reports whether the scheduler's queue contains a gang of the job,
// and position is the gang's position in the queue of its virtual cluster.
func (b *Brief) State(pods []Start, queued bool, position int) State {
	switch row := b.Job.State; {
	case b.deleting:
		return State{Phase: Deleting}
	case Phase(row).Done(), row == api.Stopping:
		return State{Phase: Phase(row)}
	case !b.known && b.stop:
		return State{Phase: Stopping}
	case !b.known:
		return State{Phase: Waiting}
	}
	switch b.at {
	case v1.AttemptCompleted:
		at := b.retryAt
		return State{Phase: Retry, RetryAt: &at}
	case v1.AttemptDeletionPending, v1.AttemptDeletionRequested, v1.AttemptDeleting:
		return State{Phase: Stopping}
	case v1.AttemptCreationPending, v1.AttemptCreationRequested:
		return State{Phase: Waiting}
	}
	return b.progress(pods, queued, position)
}

// progress returns the state of an attempt whose objects exist. If tasks wait for each other, this is the state of the least advanced task, and
// otherwise the state of the most advanced task.
func (b *Brief) progress(pods []Start, queued bool, position int) State {
	if !b.gang && b.begun > 0 {
		return State{Phase: Running}
	}
	unplaced, starting, late := 0, 0, 0
	for i := range pods {
		p := &pods[i]
		if !p.Begun {
			late++
		}
		switch {
		case p.Begun:
		case b.gang && !b.published.IsZero() && p.Created.After(b.published):
			// This pod was added after the other tasks got each other's addresses, so it delays none of them.
		case !p.Placed:
			unplaced++
		default:
			starting++
		}
	}
	// If the Framework counts more pods that haven't begun than pods contains, the missing pods have begun since the Framework was written.
	// Without this condition, the job would seem to return to an earlier state.
	ahead := pods != nil && b.made > late
	switch {
	case !b.gang && (starting > 0 || ahead):
		return State{Phase: Starting}
	case queued && (unplaced > 0 || len(pods) == 0 && b.begun == 0 && !ahead):
		return State{Phase: Queued, Position: position}
	case unplaced > 0:
		return State{Phase: Waiting}
	case starting > 0 || ahead && b.begun+b.made == b.total:
		return State{Phase: Starting}
	case b.gang && !b.published.IsZero(), !b.gang && b.at == v1.AttemptRunning:
		return State{Phase: Running}
	case b.begun < b.total:
		return State{Phase: Waiting}
	case b.gang:
		return State{Phase: Barrier}
	}
	return State{Phase: Running}
}

// Tasks returns how many tasks a job has, how many of them have begun to run, and how many have a pod that hasn't begun to run. For a large job,
// made is 0, because its Framework contains only counts.
func Tasks(f *v1.Framework) (total, begun, made int) {
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

// IsGang reports whether the tasks of a job wait for each other before any task begins.
func IsGang(f *v1.Framework) bool {
	n := int32(0)
	for i := range f.Spec.TaskRoles {
		n += f.Spec.TaskRoles[i].TaskNumber
	}
	return f.Annotations[v1.AnnotationRuntime] != "" && f.Annotations[v1.AnnotationGang] != "false" && n > 1
}

// Started reports whether the user's container in a pod runs or has ended.
func Started(p *corev1.Pod) bool {
	return p.Status.Phase != corev1.PodPending && p.Status.Phase != ""
}
