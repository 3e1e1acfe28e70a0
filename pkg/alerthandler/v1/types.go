// Package v1 defines Action, a request to stop or requeue a job, or to change a machine or a GPU, and its result. It is in the API group
// paictl.openpai.org/v1.
// In: nothing. Out: types, their custom resource definition.
//
// Only the accounts of pai-server and pai-alert-handler may create Actions: the first after it has checked the rules for a person, the second by a
// policy. Only pai-alert-handler carries out Actions.
package v1

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=actions,singular=action,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Do",type=string,JSONPath=`.spec.do`
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=`.spec.machine.name`
// +kubebuilder:printcolumn:name="Job",type=string,JSONPath=`.spec.job.name`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.by.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// Action is one request and its result.
type Action struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ActionSpec `json:"spec"`
	// +optional
	Status ActionStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ActionList is the API's list of Actions.
type ActionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Action `json:"items"`
}

// +kubebuilder:validation:XValidation:rule="self.do == oldSelf.do && self.by == oldSelf.by && self.reason == oldSelf.reason && self.notAfter == oldSelf.notAfter && has(self.job) == has(oldSelf.job) && (!has(self.job) || self.job == oldSelf.job) && has(self.machine) == has(oldSelf.machine) && (!has(self.machine) || self.machine == oldSelf.machine) && has(self.dryRun) == has(oldSelf.dryRun) && (!has(self.dryRun) || self.dryRun == oldSelf.dryRun) && has(self.graceSeconds) == has(oldSelf.graceSeconds) && (!has(self.graceSeconds) || self.graceSeconds == oldSelf.graceSeconds)",message="a request can't change; cancel it, and make another"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.canceled) || has(self.canceled) && self.canceled == oldSelf.canceled",message="a canceled request stays canceled"
// +kubebuilder:validation:XValidation:rule="self.do in ['stop-job', 'requeue-job'] ? has(self.job) && !has(self.machine) : has(self.machine) && !has(self.job)",message="stop-job and requeue-job name a job, and all others name a machine"
// +kubebuilder:validation:XValidation:rule="self.do != 'reset-gpu' || has(self.machine) && has(self.machine.gpu)",message="reset-gpu names a GPU"

// ActionSpec is the request. It never changes, except that it can be canceled.
type ActionSpec struct {
	Do Operation `json:"do"`
	// Job is the target of OperationStopJob and OperationRequeueJob.
	Job *Job `json:"job,omitempty"`
	// Machine is the target of all other operations.
	Machine *Machine  `json:"machine,omitempty"`
	By      Requester `json:"by"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500

	// Reason says in one sentence why the operation is wanted. People who are affected read it.
	Reason string `json:"reason"`
	// DryRun makes the checks, says what would be done, and does nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800

	// GraceSeconds is the time between the notice to affected people and the operation.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// NotAfter is when a request that hasn't begun expires.
	NotAfter metav1.Time `json:"notAfter"`
	// +kubebuilder:validation:MaxLength=300

	// Canceled, if not empty, withdraws the request, and says by whom and why.
	Canceled string `json:"canceled,omitempty"`
}

// Operation is what is to be done.
//
// +kubebuilder:validation:Enum=stop-job;requeue-job;cordon;uncordon;drain;reset-gpu;restart-machine
type Operation string

// Operations.
const (
	OperationStopJob Operation = "stop-job"
	// OperationRequeueJob ends the attempt of a job that runs. The scheduler places all tasks of the next one together.
	OperationRequeueJob Operation = "requeue-job"
	OperationCordon     Operation = "cordon"
	OperationUncordon   Operation = "uncordon"
	// OperationDrain cordons a machine and evicts its pods.
	OperationDrain Operation = "drain"
	// OperationResetGPU orders the machine's agent to reset a GPU.
	OperationResetGPU Operation = "reset-gpu"
	// OperationRestartMachine orders the agent of a drained machine to restart it.
	OperationRestartMachine Operation = "restart-machine"
)

// Operations returns all operations.
func Operations() []Operation {
	return []Operation{OperationStopJob, OperationRequeueJob, OperationCordon, OperationUncordon, OperationDrain, OperationResetGPU, OperationRestartMachine}
}

// ForJobs reports whether the target of the operation is a job. That of all others is a machine.
func (o Operation) ForJobs() bool { return o == OperationStopJob || o == OperationRequeueJob }

// Verb returns the operation as a word of a sentence before its target: restart for restart-machine. It is a noun as well: the restart of gpu-1.
func (o Operation) Verb() string {
	verb, _, _ := strings.Cut(string(o), "-")
	return verb
}

// Job is the job that existed when the request was made. The UID keeps the request from another job that gets the name later.
type Job struct {
	// +kubebuilder:validation:MaxLength=63

	// Object is the name of the Framework.
	Object string    `json:"object"`
	UID    types.UID `json:"uid"`
	// +kubebuilder:validation:MaxLength=400

	// Name is the job's name with its owner, OWNER/NAME.
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=253

	VirtualCluster string `json:"virtualCluster,omitempty"`
}

// Machine is the machine that existed when the request was made.
type Machine struct {
	// +kubebuilder:validation:MaxLength=253

	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023

	// GPU is the index of a GPU of the machine.
	GPU *int32 `json:"gpu,omitempty"`
}

// Requester says who asked.
type Requester struct {
	Kind RequesterKind `json:"kind"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253

	// Name is the person's, or the policy's.
	Name string `json:"name"`
	// UID is the UID of the User object of a person.
	UID types.UID `json:"uid,omitempty"`
}

// Text names the requester for people.
func (r *Requester) Text() string {
	if r.Kind == ByPolicy || r.Kind == ByOperator {
		return string(r.Kind) + " " + r.Name
	}
	return r.Name
}

// RequesterKind is a kind of requester.
//
// +kubebuilder:validation:Enum=person;operator;policy
type RequesterKind string

// Kinds of requesters.
const (
	// ByPerson is an administrator who signed in. pai-alert-handler checks the administrator's right again before the operation.
	ByPerson RequesterKind = "person"
	// ByOperator is someone with the cluster's kubeconfig.
	ByOperator RequesterKind = "operator"
	// ByPolicy is a policy of the configuration. The limits on policies hold.
	ByPolicy RequesterKind = "policy"
)

// ActionStatus is the result. pai-alert-handler alone writes it.
type ActionStatus struct {
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Message gives the result, or the reason for waiting or refusing, in one sentence.
	Message string `json:"message,omitempty"`
	// NoticeTime is the time of the notice to affected people, ActTime the end of the grace period.
	NoticeTime *metav1.Time `json:"noticeTime,omitempty"`
	ActTime    *metav1.Time `json:"actTime,omitempty"`
	// StartTime is when the operation began, and EndTime when the phase became final.
	StartTime *metav1.Time `json:"startTime,omitempty"`
	EndTime   *metav1.Time `json:"endTime,omitempty"`
	// +kubebuilder:validation:MaxLength=64

	// Boot is the boot ID that the machine had when OperationRestartMachine began. It has another one after the restart.
	Boot string `json:"boot,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100

	// Results are the results of the operation's parts, such as the pods of a drain. At most 100 are kept.
	Results []Result `json:"results,omitempty"`
}

// Result is the result for one target.
type Result struct {
	Target  string `json:"target"`
	Done    bool   `json:"done"`
	Message string `json:"message,omitempty"`
}

// Phase is the state of a request.
//
// +kubebuilder:validation:Enum="";Pending;Noticed;Acting;Succeeded;Failed;Refused;Expired;Canceled
type Phase string

// Phases. The last five are final.
const (
	// PhaseNew is a request without a decision.
	PhaseNew Phase = ""
	// PhasePending waits for a limit of its policy.
	PhasePending Phase = "Pending"
	// PhaseNoticed waits for the end of the grace period.
	PhaseNoticed   Phase = "Noticed"
	PhaseActing    Phase = "Acting"
	PhaseSucceeded Phase = "Succeeded"
	PhaseFailed    Phase = "Failed"
	PhaseRefused   Phase = "Refused"
	PhaseExpired   Phase = "Expired"
	PhaseCanceled  Phase = "Canceled"
)

// Phases returns all phases, in the order in which a request goes through them.
func Phases() []Phase {
	return []Phase{PhaseNew, PhasePending, PhaseNoticed, PhaseActing, PhaseSucceeded, PhaseFailed, PhaseRefused, PhaseExpired, PhaseCanceled}
}

// String returns the phase for people: the phase of a request without a decision is New.
func (p Phase) String() string {
	if p == PhaseNew {
		return "New"
	}
	return string(p)
}

// Final reports whether a phase is the last one.
func (p Phase) Final() bool {
	switch p {
	case PhaseSucceeded, PhaseFailed, PhaseRefused, PhaseExpired, PhaseCanceled:
		return true
	}
	return false
}

// Ended returns a final phase as the verb of a sentence about the operation.
func (p Phase) Ended() string {
	if p == PhaseRefused || p == PhaseCanceled {
		return "was " + strings.ToLower(string(p))
	}
	return strings.ToLower(string(p))
}

// Begun reports whether the operation began: it has or may have had an effect.
func (a *Action) Begun() bool { return a.Status.StartTime != nil }

// tooLate is the time before an Action acts within which a notice of it comes too late.
const tooLate = 2 * time.Minute

// Acts returns when an Action in its grace period acts if its notice is sent at a time. If that is too late, the grace period begins again: a mail server may be
// away for hours. Only the stop of a job by a policy waits for its notice.
func (a *Action) Acts(told time.Time) time.Time {
	at := a.Status.ActTime
	switch {
	case at == nil:
		return time.Time{}
	case a.Spec.Do == OperationStopJob && a.Spec.By.Kind == ByPolicy && told.After(at.Add(-tooLate)):
		return told.Add(a.Spec.Grace())
	}
	return at.Time
}

// Grace returns the time between notice and operation.
func (s *ActionSpec) Grace() time.Duration { return time.Duration(s.GraceSeconds) * time.Second }

// Target names the target for people: a job, a machine, or the GPU that is reset.
func (s *ActionSpec) Target() string {
	switch {
	case s.Job != nil:
		return s.Job.Name
	case s.Machine != nil && s.Machine.GPU != nil && s.Do == OperationResetGPU:
		return fmt.Sprintf("GPU %d of %s", *s.Machine.GPU, s.Machine.Name)
	case s.Machine != nil:
		return s.Machine.Name
	}
	return ""
}
