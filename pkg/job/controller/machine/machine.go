// Package machine decides the next step of a Framework: states, attempts, retries, completion, rescaling, and which
// pods may exist. In: the Framework, its stored status, its pods, the time. Out: the next status, and the actions to
// take after that status is stored. It uses no API, so that a test can simulate any sequence of events.
package machine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/peers"
)

// Input holds all data that a step depends on.
type Input struct {
	// Framework has the spec and the metadata. Its status is not read, since a cache may be late.
	Framework *v1.Framework
	// Status has all tasks; Step changes it. Nil at first.
	Status    *v1.FrameworkStatus
	ConfigMap ConfigMap
	Pods      Pods
	Saved     Saved
	// Blocked explains why no pod can be made for now; it becomes the status's message.
	Blocked string
	// After describes what the Framework waits for before its first attempt begins.
	After After
	// Invalid explains why the Framework can't be run; then it ends. Its spec isn't read.
	Invalid string
	Now     time.Time
	Rules   Rules
	Random  func() float64 // in [0, 1)
	// GPUs returns the GPUs of a pod that has a machine, or nil. If known is false, the step is repeated later. Without GPUs
	// none are recorded.
	GPUs   func(p *corev1.Pod) (g *v1.TaskGPUs, known bool)
	Policy Policy
}

// After is the state of the jobs that must finish first.
type After struct {
	Waits  []string // jobs that haven't finished
	Done   []string // UIDs of jobs that have finished as required
	Failed string   // why the Framework will never start, as the rest of a sentence; empty if it may
}

// ConfigMap is the ConfigMap of the attempt, which owns the pods unless the Framework itself does. It must be certain: if the cache
// doesn't have an expected one, the caller has queried the API.
type ConfigMap struct {
	UID      types.UID // empty if it doesn't exist
	Attempt  int32
	Deleting bool
	Fresh    bool // made by this process and not in its cache yet
}

// Pods are the pods of the Framework. A pod that is missing here is certainly gone.
type Pods struct {
	ByName map[string]*corev1.Pod
	// Fresh are the pods that this process made and that aren't in its cache yet.
	Fresh map[string]bool
	// Deleted are the pods whose deletion the API has accepted.
	Deleted map[types.UID]bool
	// Forced are the pods that were deleted by force.
	Forced map[types.UID]bool
	// Refused are the pods that the API rejects permanently.
	Refused map[string]Refusal
	// Last has the last known state of deleted pods: a pod that is removed as soon as it ends may never be in ByName with its end.
	// It may be nil.
	Last map[types.UID]*corev1.Pod
}

// Refusal is the API's refusal of a pod that is invalid.
type Refusal struct {
	Code    int32 // CodePodCreationPermanent or CodePodCreationUnknown
	Message string
}

// Saved reports which parts of this Framework are archived.
type Saved struct {
	Attempt func(attempt int32) bool
	Task    func(role string, index, attempt int32) bool
}

// Rules classify failures.
type Rules interface {
	// Failed classifies a pod of phase Failed.
	Failed(*corev1.Pod) Outcome
	// Code returns the outcome of a code.
	Code(int32) Outcome
}

// Outcome is the classification of a failure.
type Outcome struct {
	Code       int32
	Phrase     string
	Attributes []v1.CompletionTypeAttribute
	Reason     string // a sentence, or empty
	// NodeFault: the machine is to blame and not the job.
	NodeFault bool
}

// Task names a task.
type Task struct {
	Role  string
	Index int32
}

// Deletion is a pod that must be deleted.
type Deletion struct {
	Name  string
	UID   types.UID
	Force bool // at once, although it may still run on a machine that doesn't answer
	// Log names the attempt whose log should be saved: before the deletion, or, for a program that still runs, as it ends. It is nil
	// if there is no log to save.
	Log *LogOf
}

// LogOf is one attempt of one task.
type LogOf struct {
	Task
	Attempt, TaskAttempt int32
}

// Result lists the changes that a step made to the status, and the actions to take after the status is written.
type Result struct {
	// Changed: something of the status differs, tasks included.
	Changed bool
	// Decisive: some of that can't be determined again from the pods and the ConfigMap, so it has to be recorded first.
	// The rest may wait for the next write.
	Decisive bool
	// Tasks are the changed tasks.
	Tasks []Task
	// NewAttempt: the status begins another attempt. Decided: the attempt's outcome was decided.
	NewAttempt, Decided bool

	CreateConfigMap bool
	DeleteConfigMap types.UID
	Create          []Task
	Delete          []Deletion
	ArchiveAttempt  bool
	ArchiveTasks    []Task
	// Peers are to be published, once; Published records that.
	Peers *peers.Peers
	Notes []Note
	// Wake is when the next step is due even if nothing changes; zero: never.
	Wake time.Time
}

// Acts reports whether there are actions, which require that the status is stored first.
func (r *Result) Acts() bool {
	return r.CreateConfigMap || r.DeleteConfigMap != "" || len(r.Create) > 0 || len(r.Delete) > 0 ||
		r.ArchiveAttempt || len(r.ArchiveTasks) > 0 || r.Peers != nil
}

// Note is something that the user would want to know.
type Note struct {
	Warning         bool
	Reason, Message string
}

// step is one step in progress.
type step struct {
	Input
	Result
	status *v1.FrameworkStatus
	roles  map[string]*v1.TaskRole // the roles of the spec
}

// maxPasses bounds a step. Each pass makes progress. The longest path, from an end through a retry to the next pod, has fewer passes.
const maxPasses = 8

// Step advances the status as far as the current state of the objects allows.
func Step(in Input) (*v1.FrameworkStatus, Result) {
	s := &step{Input: in, status: in.Status, roles: map[string]*v1.TaskRole{}}
	for i := range in.Framework.Spec.TaskRoles {
		r := &in.Framework.Spec.TaskRoles[i]
		s.roles[r.Name] = r
	}
	if s.status == nil {
		s.begin()
		s.Changed, s.Decisive = true, true
	}
	if len(s.After.Done) > len(s.status.AfterDone) {
		s.status.AfterDone = s.After.Done
		s.Changed, s.Decisive = true, true
	}
	for range maxPasses {
		if !s.pass() {
			break
		}
		s.Changed = true
	}
	return s.status, s.Result
}

// pass checks everything once, and reports whether the status changed. Every pass computes the actions again.
func (s *step) pass() bool {
	tasks := len(s.Tasks)
	s.Result = Result{Changed: s.Changed, Decisive: s.Decisive, Tasks: s.Tasks, NewAttempt: s.NewAttempt, Decided: s.Decided, Notes: s.Notes}
	before := s.header()
	s.configMap()
	if s.live() && s.Invalid == "" {
		s.rescale()
	}
	s.tasks()
	s.running()
	if s.live() {
		s.decide()
	}
	s.finish()
	s.retry()
	s.prepare()
	s.strays()
	s.summarise()
	return len(s.Tasks) > tasks || s.differs(before)
}

// live reports whether the outcome of the attempt is still open.
func (s *step) live() bool {
	return s.status.AttemptStatus.CompletionStatus == nil
}

// decides reports whether the transition to a state is a decision, and not only an observation.
func decides(to v1.State) bool {
	switch to {
	case v1.AttemptCreationPending, v1.AttemptDeletionPending, v1.AttemptCompleted, v1.Completed:
		return true
	}
	return false
}

// wake requests another step at t.
func (s *step) wake(t time.Time) {
	if s.Wake.IsZero() || t.Before(s.Wake) {
		s.Wake = t
	}
}

func (s *step) note(warning bool, reason, message string) {
	if n := (Note{warning, reason, message}); !slices.Contains(s.Notes, n) {
		s.Notes = append(s.Notes, n)
	}
}
