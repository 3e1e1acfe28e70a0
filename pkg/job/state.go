package job

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// The types that describe jobs in lists, so that users of this package need not import package listing.
type (
	// Phase is the phase of a job, in one word.
	Phase = listing.Phase
	// State is the state of a job.
	State = listing.State
	// Row is a job in a list.
	Row = listing.Row
	// Page is a part of a list.
	Page = listing.Page
	// Filter selects jobs.
	Filter = listing.Filter
	// Brief holds the fields of a live job that lists show.
	Brief = listing.Brief
	// Start holds the fields of a pod that determine the state of its job.
	Start = listing.Start
)

// The phases of a job.
const (
	Waiting   = listing.Waiting
	Queued    = listing.Queued
	Starting  = listing.Starting
	Barrier   = listing.Barrier
	Running   = listing.Running
	Stopping  = listing.Stopping
	Retry     = listing.Retry
	Succeeded = listing.Succeeded
	Failed    = listing.Failed
	Stopped   = listing.Stopped
	Deleting  = listing.Deleting
	Deleted   = listing.Deleted
)

// Phases returns all phases.
func Phases() []Phase { return listing.Phases() }

// PhaseNames returns the names of all phases.
func PhaseNames() []string { return listing.PhaseNames() }

// ReadPhases parses the names of phases.
func ReadPhases(names []string) ([]Phase, error) { return listing.ReadPhases(names) }

// NewBrief returns the Brief of a Framework's job.
func NewBrief(f *v1.Framework) *Brief { return listing.NewBrief(f) }

// NewStart returns the fields of a pod that determine the state of its job.
func NewStart(p *corev1.Pod) Start { return listing.NewStart(p) }

// IsGang reports whether the tasks of a job wait for each other before any of them begins.
func IsGang(f *v1.Framework) bool { return listing.IsGang(f) }

// Duration formats a time span with its two largest units.
func Duration(d time.Duration) string { return listing.Duration(d) }

// Queue maps the name of a Framework to a gang of the job that waits for GPUs. If several gangs of the job wait, Queue contains the gang that is
// furthest behind.
type Queue map[string]schedulerapi.Queued

// NewQueue converts the scheduler's queue to a Queue. If q is nil, the Queue is empty.
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

// ObjectOfGroup returns the name of the Framework that a gang belongs to. The name of a gang is USER~JOB/GROUP, or NAMESPACE/POD for a pod without a
// gang.
func ObjectOfGroup(group string) string {
	first, rest, _ := strings.Cut(group, "/")
	if user, name, ok := strings.Cut(first, "~"); ok {
		return v1.ObjectName(user, name)
	}
	object, _, _ := strings.Cut(rest, "-")
	return object
}

// StateOf returns the state of a job; see listing.Brief.State.
func StateOf(f *v1.Framework, pods []corev1.Pod, queue Queue) State {
	var starts []Start
	if pods != nil {
		starts = make([]Start, len(pods))
	}
	for i := range pods {
		starts[i] = NewStart(&pods[i])
	}
	queued, waits := queue[f.Name]
	return NewBrief(f).State(starts, waits, queued.PositionInVC)
}

// endedPhase returns the final phase of a job without a Framework.
func endedPhase(j *Job) Phase {
	row := listing.NewArchivedRow(j.archived.Job)
	return Phase(row.State)
}
