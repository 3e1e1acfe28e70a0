// Package machine decides the next step of a Framework: states, attempts, retries, completion, rescaling, and which pods may exist.
// In: the Framework, its stored status, its pods, the time. Out: the next status, and the actions to take after that status is stored. It uses no
// API, so that a test can simulate any sequence of events.
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
	// Framework contains the spec and the metadata. Its status isn't used, because it may come from a cache that lags behind.
	Framework *v1.Framework
	// Status contains all tasks, and Step changes it. It is nil for a new Framework.
	Status    *v1.FrameworkStatus
	ConfigMap ConfigMap
	Pods      Pods
	Saved     Saved
	// Blocked says why no pod can be made now. Its text becomes part of the status's message.
	Blocked string
	// After describes the jobs that must finish before the Framework's first attempt begins.
	After After
	// Invalid says why the Framework can't run. If it isn't empty, the Framework ends, and its spec isn't used.
	Invalid string
	Now     time.Time
	Rules   Rules
	Random  func() float64 // in [0, 1)
	// GPUs returns the GPUs of a pod that has a machine, or nil for a pod without GPUs. If known is false, another step follows later. If GPUs
	// itself is nil, no GPUs are recorded.
	GPUs   func(p *corev1.Pod) (g *v1.TaskGPUs, known bool)
	Policy Policy
}

// After describes the jobs that must finish first.
type After struct {
	Waits  []string // jobs that haven't finished
	Done   []string // UIDs of jobs that have finished as required
	Failed string   // why the Framework will never start, as the rest of a sentence; empty if it may
}

// ConfigMap is the attempt's ConfigMap, which owns the pods unless the Framework itself owns them. The information must be certain. If the cache
// doesn't have an expected ConfigMap, the caller must query the API.
type ConfigMap struct {
	UID      types.UID // empty if it doesn't exist
	Attempt  int32
	Deleting bool
	Fresh    bool // made by this process and not in its cache yet
}

// Pods contains the pods of the Framework. A pod that isn't included is certainly gone.
type Pods struct {
	ByName map[string]*corev1.Pod
	// Fresh contains the names of pods that this process made and that aren't in its cache yet.
	Fresh map[string]bool
	// Deleted contains the UIDs of pods whose deletion the API has accepted.
	Deleted map[types.UID]bool
	// Forced contains the UIDs of pods that were deleted by force.
	Forced map[types.UID]bool
	// Refused contains, by name, the pods that the API rejects permanently.
	Refused map[string]Refusal
	// Last contains the last known states of pods that are gone. It is needed because a pod that is removed as soon as it ends may never be in
	// ByName in its final state. Last may be nil.
	Last map[types.UID]*corev1.Pod
}

// Refusal is the API's error for a pod that it permanently rejects.
type Refusal struct {
	Code    int32 // CodePodCreationPermanent or CodePodCreationUnknown
	Message string
}

// Saved reports which parts of the Framework are already archived.
type Saved struct {
	Attempt func(attempt int32) bool
	Task    func(role string, index, attempt int32) bool
}

// Rules classify failures of pods.
type Rules interface {
	// Failed returns the outcome of a pod whose phase is Failed.
	Failed(*corev1.Pod) Outcome
	// Code returns the outcome for a completion code.
	Code(int32) Outcome
}

// Outcome is the classification of a pod's or an attempt's end.
type Outcome struct {
	Code       int32
	Phrase     string
	Attributes []v1.CompletionTypeAttribute
	Reason     string // a sentence, or empty
	// NodeFault means that the machine caused the failure, and not the job.
	NodeFault bool
}

// Task identifies a task of a job.
type Task struct {
	Role  string
	Index int32
}

// Deletion is a pod to delete.
type Deletion struct {
	Name  string
	UID   types.UID
	Force bool // at once, although it may still run on a machine that doesn't answer
	// Log identifies the attempt whose log should be saved. The log is saved before the deletion or, if the program still runs, while the program
	// ends. Log is nil if there is no log to save.
	Log *LogOf
}

// LogOf identifies one attempt of one task.
type LogOf struct {
	Task
	Attempt, TaskAttempt int32
}

// Result contains the changes that a step made to the status, and the actions to take after the status is written.
type Result struct {
	// Changed means that the status or one of its tasks has changed.
	Changed bool
	// Decisive means that some of the changes can't be derived again from the pods and the ConfigMap. The status must then be written before
	// anything else happens. Other changes may wait for the next write.
	Decisive bool
	// Tasks lists the tasks that have changed.
	Tasks []Task
	// NewAttempt means that another attempt begins. Decided means that the outcome of the attempt was decided.
	NewAttempt, Decided bool

	CreateConfigMap bool
	DeleteConfigMap types.UID
	Create          []Task
	Delete          []Deletion
	ArchiveAttempt  bool
	ArchiveTasks    []Task
	// Peers are the addresses to publish, or nil. They are published only once, because Published then records the publication.
	Peers *peers.Peers
	Notes []Note
	// Wake is when the next step is due even if nothing changes. Zero means that no such step is needed.
	Wake time.Time
}

// Acts reports whether the result contains actions. The status must be written before they are carried out.
func (r *Result) Acts() bool {
	return r.CreateConfigMap || r.DeleteConfigMap != "" || len(r.Create) > 0 || len(r.Delete) > 0 ||
		r.ArchiveAttempt || len(r.ArchiveTasks) > 0 || r.Peers != nil
}

// Note is a message for the user.
type Note struct {
	Warning         bool
	Reason, Message string
}

// step is the state of one call of Step.
type step struct {
	Input
	Result
	status *v1.FrameworkStatus
	roles  map[string]*v1.TaskRole // the roles of the spec
}

// maxPasses is the maximum number of passes in a step. Each pass makes progress, and the longest sequence, from the end of a pod through a retry
// to the next pod, needs fewer passes.
const maxPasses = 8

// Step advances the status as far as the current state of the objects allows. It returns the new status, and a Result with the actions to take.
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

// pass checks everything once, and reports whether the status has changed. Each pass computes all actions again.
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

// live reports whether the outcome of the attempt has not been decided yet.
func (s *step) live() bool {
	return s.status.AttemptStatus.CompletionStatus == nil
}

// decides reports whether the transition to a state is a decision of the machine, and not only an observation.
func decides(to v1.State) bool {
	switch to {
	case v1.AttemptCreationPending, v1.AttemptDeletionPending, v1.AttemptCompleted, v1.Completed:
		return true
	}
	return false
}

// wake requests another step at time t.
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
