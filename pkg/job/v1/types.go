// Package v1 is the API group frameworkcontroller.microsoft.com/v1: the Framework, which is one
// job, as OpenPAI and FrameworkController write and read it.
// In: nothing. Out: types, the scheme; "go generate" writes the definition that is in the chart job-controller.
package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=frameworks,singular=framework,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.metadata.labels.userName`
// +kubebuilder:printcolumn:name="Job",type=string,JSONPath=`.metadata.annotations.jobName`
// +kubebuilder:printcolumn:name="Execution",type=string,JSONPath=`.spec.executionType`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attemptStatus.id`
// +kubebuilder:printcolumn:name="Code",type=integer,JSONPath=`.status.attemptStatus.completionStatus.code`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]{1,63}$')",message="the name of a Framework is 1 to 63 of a-z and 0-9"

// Framework is one job: roles of tasks, each task one pod at a time.
type Framework struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FrameworkSpec `json:"spec"`
	// Status is nil until the controller has seen the Framework.
	Status *FrameworkStatus `json:"status,omitempty"`

	// Unreadable explains why the spec or the status couldn't be decoded; that part is empty then. It is
	// never written.
	Unreadable string `json:"-"`
}

// +kubebuilder:object:root=true

// FrameworkList is the API's list of Frameworks.
type FrameworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Framework `json:"items"`
}

// FrameworkSpec is the job as the user wants it.
type FrameworkSpec struct {
	Description   string        `json:"description,omitempty"`
	ExecutionType ExecutionType `json:"executionType"`
	RetryPolicy   RetryPolicy   `json:"retryPolicy,omitempty"`
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:XValidation:rule="self.map(r, r.taskNumber).sum() <= 10000",message="a Framework has 10,000 tasks at most, over all of its roles"
	// +listType=map
	// +listMapKey=name

	// TaskRoles are the job's roles, each by its own name.
	TaskRoles []TaskRole `json:"taskRoles"`
}

// ExecutionType specifies whether the Framework may run. It changes Create → Start or Stop, Start → Stop.
//
// +kubebuilder:validation:Enum=Create;Start;Stop
// +kubebuilder:validation:XValidation:rule="self == oldSelf || oldSelf == 'Create' || self == 'Stop'",message="a Framework that was started can only be stopped, and one that was stopped stays so"
type ExecutionType string

// The execution types.
const (
	ExecutionCreate ExecutionType = "Create"
	ExecutionStart  ExecutionType = "Start"
	ExecutionStop   ExecutionType = "Stop"
)

// RetryPolicy specifies when a completed attempt is followed by another.
type RetryPolicy struct {
	// FancyRetryPolicy retries transient failures without counting them and never retries
	// permanent ones. Others count against MaxRetryCount.
	FancyRetryPolicy bool `json:"fancyRetryPolicy,omitempty"`
	// +kubebuilder:validation:Minimum=-2

	// MaxRetryCount: -2 always retries, -1 every failure, n that many failures.
	MaxRetryCount int32 `json:"maxRetryCount,omitempty"`
}

// TaskRole is a number of tasks that run the same pod template.
type TaskRole struct {
	// +kubebuilder:validation:Pattern=`^[a-z0-9]{1,63}$`

	// Name matches ^[a-z0-9]{1,63}$. The user's name of the role is in the pod
	// template's annotation AnnotationTaskRole.
	Name string `json:"name"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000

	// TaskNumber may change while the attempt runs.
	TaskNumber                       int32            `json:"taskNumber"`
	FrameworkAttemptCompletionPolicy CompletionPolicy `json:"frameworkAttemptCompletionPolicy,omitempty"`
	Task                             Task             `json:"task"`
}

// CompletionPolicy specifies how many tasks of a role end the attempt. A value below 1 never does.
type CompletionPolicy struct {
	// +kubebuilder:validation:Minimum=-1

	MinFailedTaskCount int32 `json:"minFailedTaskCount,omitempty"`
	// +kubebuilder:validation:Minimum=-1

	MinSucceededTaskCount int32 `json:"minSucceededTaskCount,omitempty"`
}

// Task is the template of a role's tasks.
type Task struct {
	RetryPolicy RetryPolicy `json:"retryPolicy,omitempty"`
	// PodGracefulDeletionTimeoutSec: after that many seconds in deletion a pod is deleted by force,
	// and availability wins over "at most one instance". nil never does.
	PodGracefulDeletionTimeoutSec *int64 `json:"podGracefulDeletionTimeoutSec,omitempty"`
	// Pod is the template. Its types are checked when the Framework is written; the API server reports other
	// mistakes when it creates a pod.
	Pod corev1.PodTemplateSpec `json:"pod"`

	packed string `json:"-"` // the template as JSON, if Pod has only a part of it
}

// FrameworkStatus is the state of a Framework.
type FrameworkStatus struct {
	StartTime         metav1.Time            `json:"startTime"`
	RunTime           *metav1.Time           `json:"runTime,omitempty"`
	CompletionTime    *metav1.Time           `json:"completionTime,omitempty"`
	State             State                  `json:"state"`
	TransitionTime    metav1.Time            `json:"transitionTime"`
	RetryPolicyStatus RetryPolicyStatus      `json:"retryPolicyStatus"`
	AttemptStatus     FrameworkAttemptStatus `json:"attemptStatus"`
	// PreviousAttempt is how the attempt before the latest one ended.
	PreviousAttempt *PreviousAttempt `json:"previousAttempt,omitempty"`
	// AvoidedNodes are those that failed attempts of this job twice; new pods stay away from them.
	AvoidedNodes []AvoidedNode `json:"avoidedNodes,omitempty"`
	// ArchivedTime is set when the whole job is in the archive in its final state.
	ArchivedTime *metav1.Time `json:"archivedTime,omitempty"`
	// AfterDone are the UIDs of jobs that this one waited for and that have completed as it requires: they may be
	// removed, with their history, while it waits for others.
	AfterDone []string `json:"afterDone,omitempty"`
	// Message explains the state to a person in one sentence if the state alone isn't enough: why no pod can be
	// created, or why and when the attempt is retried.
	Message string `json:"message,omitempty"`
}

// PreviousAttempt is how an attempt ended that was retried.
type PreviousAttempt struct {
	ID             int32       `json:"id"`
	Code           int32       `json:"code"`
	Phrase         string      `json:"phrase"`
	CompletionTime metav1.Time `json:"completionTime"`
}

const (
	// CodePreempted is the code of an attempt whose GPUs another job took.
	CodePreempted = -1003
	// CodeRestart is the code of an attempt that ended because another one was requested.
	CodeRestart = -240
)

// Preempted reports whether the attempt was preempted.
func (p *PreviousAttempt) Preempted() bool { return p != nil && p.Code == CodePreempted }

// Requeued returns pai-alert-handler's request that caused the latest attempt, or nil if the attempt has another cause.
func (f *Framework) Requeued() *Requeue {
	if f.Status == nil || f.Status.PreviousAttempt == nil || f.Status.PreviousAttempt.Code != CodeRestart {
		return nil
	}
	return FindRequeue(ReadRequeues(f.Annotations), f.Status.AttemptStatus.Restart)
}

// Finished reports whether the latest attempt has ended for another reason than a request for the next one, and isn't retried so far. A request for
// another attempt has no effect then, unless the job is retried.
func (f *Framework) Finished() bool {
	if f.Status == nil || f.Status.RetryPolicyStatus.RetryDelaySec != nil {
		return false
	}
	c := f.Status.AttemptStatus.CompletionStatus
	return c != nil && c.CompletionStatus != nil && c.Code != CodeRestart
}

// Requested returns the latest request for another attempt, a value of AnnotationRestart, if that attempt hasn't begun; otherwise "".
func (f *Framework) Requested() string {
	if f.Status == nil || f.Annotations[AnnotationRestart] == f.Status.AttemptStatus.Restart {
		return ""
	}
	return f.Annotations[AnnotationRestart]
}

// AvoidedNode counts how often a node failed tasks of the job by no fault of the job.
type AvoidedNode struct {
	Name     string      `json:"name"`
	Failures int32       `json:"failures"`
	Last     metav1.Time `json:"last"`
}

// State is the state of a Framework or of a task. The source of truth is the ConfigMap of the Framework, or
// the pod of the task.
type State string

// These are the states, in their order.
const (
	// AttemptCreationPending: the object is not yet requested.
	AttemptCreationPending State = "AttemptCreationPending"
	// AttemptCreationRequested: the object is created, and not yet seen.
	AttemptCreationRequested State = "AttemptCreationRequested"
	// AttemptPreparing: the object exists, and isn't running yet.
	AttemptPreparing State = "AttemptPreparing"
	// AttemptRunning: the pod runs; of a Framework: some task has run.
	AttemptRunning State = "AttemptRunning"
	// AttemptDeletionPending: the outcome is decided and being written down.
	AttemptDeletionPending State = "AttemptDeletionPending"
	// AttemptDeletionRequested: the deletion is accepted.
	AttemptDeletionRequested State = "AttemptDeletionRequested"
	// AttemptDeleting: the object has a deletion timestamp.
	AttemptDeleting State = "AttemptDeleting"
	// AttemptCompleted: the attempt has ended, and it isn't decided yet whether to retry.
	AttemptCompleted State = "AttemptCompleted"
	// Completed is final.
	Completed State = "Completed"
)

// RetryPolicyStatus counts the retries.
type RetryPolicyStatus struct {
	TotalRetriedCount       int32 `json:"totalRetriedCount"`
	AccountableRetriedCount int32 `json:"accountableRetriedCount"`
	// RetryDelaySec is set while the retry waits, counted from the transition time.
	RetryDelaySec *int64 `json:"retryDelaySec,omitempty"`
}

// FrameworkAttemptStatus is the latest attempt of a Framework.
type FrameworkAttemptStatus struct {
	// ID is RetryPolicyStatus.TotalRetriedCount of the Framework.
	ID               int32                             `json:"id"`
	StartTime        metav1.Time                       `json:"startTime"`
	RunTime          *metav1.Time                      `json:"runTime,omitempty"`
	CompletionTime   *metav1.Time                      `json:"completionTime,omitempty"`
	InstanceUID      *string                           `json:"instanceUID,omitempty"` // "<id>_<UID of the owner of the pods>"
	ConfigMapName    string                            `json:"configMapName"`         // empty if the Framework owns the pods
	ConfigMapUID     *string                           `json:"configMapUID,omitempty"`
	CompletionStatus *FrameworkAttemptCompletionStatus `json:"completionStatus,omitempty"`
	// Restart is the value of AnnotationRestart when the attempt began.
	Restart string `json:"restart,omitempty"`
	// PeersTime is the time when the addresses of all tasks were published to the tasks.
	PeersTime *metav1.Time `json:"peersTime,omitempty"`
	// +nullable

	// TaskRoleStatuses has every task, unless TaskChunks > 0: then taskStatuses are empty here and
	// are stored in that many ConfigMaps; pkg/job/controller/status merges them.
	TaskRoleStatuses []*TaskRoleStatus `json:"taskRoleStatuses"`
	TaskChunks       int32             `json:"taskChunks,omitempty"`
	// TaskParts identifies the last version of each of these ConfigMaps; a ConfigMap that is older or missing is lost.
	TaskParts []TaskPart `json:"taskParts,omitempty"`
}

// TaskPart is one ConfigMap of tasks.
type TaskPart struct {
	// Generation counts how often it was written in this attempt; 0: not yet.
	Generation int64 `json:"generation"`
	// Sum is the beginning of the SHA-256 of its content, in hexadecimal digits.
	Sum string `json:"sum"`
}

// TaskRoleStatus is one role.
type TaskRoleStatus struct {
	Name                          string `json:"name"`
	InstanceUID                   string `json:"instanceUID,omitempty"`
	PodGracefulDeletionTimeoutSec *int64 `json:"podGracefulDeletionTimeoutSec,omitempty"`
	// Counts summarizes the tasks, so that a list doesn't need them.
	Counts TaskCounts `json:"counts"`
	// +nullable

	TaskStatuses []*TaskStatus `json:"taskStatuses"`
}

// TaskCounts counts the tasks of a role by state.
type TaskCounts struct {
	Total     int32 `json:"total"`
	Waiting   int32 `json:"waiting,omitempty"`
	Running   int32 `json:"running,omitempty"`
	Succeeded int32 `json:"succeeded,omitempty"`
	Failed    int32 `json:"failed,omitempty"`
}

// TaskStatus is one task.
type TaskStatus struct {
	Index          int32        `json:"index"`
	InstanceUID    string       `json:"instanceUID,omitempty"`
	StartTime      metav1.Time  `json:"startTime"`
	RunTime        *metav1.Time `json:"runTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	State          State        `json:"state"`
	TransitionTime metav1.Time  `json:"transitionTime"`
	// DeletionPending marks a task that a smaller taskNumber removes.
	DeletionPending   bool              `json:"deletionPending,omitempty"`
	RetryPolicyStatus RetryPolicyStatus `json:"retryPolicyStatus"`
	AttemptStatus     TaskAttemptStatus `json:"attemptStatus"`
}

// TaskAttemptStatus is the latest attempt of a task: one pod.
type TaskAttemptStatus struct {
	ID               int32                        `json:"id"`
	StartTime        metav1.Time                  `json:"startTime"`
	RunTime          *metav1.Time                 `json:"runTime,omitempty"`
	CompletionTime   *metav1.Time                 `json:"completionTime,omitempty"`
	InstanceUID      *string                      `json:"instanceUID,omitempty"` // "<id>_<UID of the pod>"
	PodName          string                       `json:"podName"`
	PodUID           *string                      `json:"podUID,omitempty"`
	PodNodeName      *string                      `json:"podNodeName,omitempty"`
	PodIP            *string                      `json:"podIP,omitempty"`
	PodHostIP        *string                      `json:"podHostIP,omitempty"`
	GPUs             *TaskGPUs                    `json:"gpus,omitempty"` // nil: none, or its pod has no machine yet
	CompletionStatus *TaskAttemptCompletionStatus `json:"completionStatus,omitempty"`
}

// TaskGPUs are the GPUs that an attempt of a task holds from the scheduling of its pod until it ends. They never change: GPU
// time is computed from them.
type TaskGPUs struct {
	Count int32 `json:"count"`
	// Type is their model; empty if it isn't known.
	Type string `json:"type,omitempty"`
	// Opportunistic: the job requested the GPUs without a guarantee.
	Opportunistic bool        `json:"opportunistic,omitempty"`
	Since         metav1.Time `json:"since"`
}

// CompletionStatus is how an attempt ended.
type CompletionStatus struct {
	// Code is 0 for success; the failure rules (pkg/runtime/rules) define the others.
	Code        int32          `json:"code"`
	Phrase      string         `json:"phrase"`
	Type        CompletionType `json:"type"`
	Diagnostics string         `json:"diagnostics"`
}

// FrameworkAttemptCompletionStatus also names the task that caused the end of the attempt.
type FrameworkAttemptCompletionStatus struct {
	*CompletionStatus `json:",inline"`
	Trigger           *CompletionTrigger `json:"trigger,omitempty"`
}

// TaskAttemptCompletionStatus also holds the results of the pod's containers.
type TaskAttemptCompletionStatus struct {
	*CompletionStatus `json:",inline"`
	Pod               *PodCompletionStatus `json:"pod,omitempty"`
}

// CompletionTrigger names the task that caused the end of an attempt.
type CompletionTrigger struct {
	Message      string `json:"message"`
	TaskRoleName string `json:"taskRoleName"`
	TaskIndex    *int32 `json:"taskIndex,omitempty"`
}

// CompletionType describes whether and how an attempt failed.
type CompletionType struct {
	Name CompletionTypeName `json:"name"`
	// +nullable

	Attributes []CompletionTypeAttribute `json:"attributes"`
}

// CompletionTypeName is Succeeded or Failed.
type CompletionTypeName string

// The names.
const (
	Succeeded CompletionTypeName = "Succeeded"
	Failed    CompletionTypeName = "Failed"
)

// CompletionTypeAttribute steers the retry.
type CompletionTypeAttribute string

// The attributes.
const (
	// Transient: the same attempt may succeed when it is repeated.
	Transient CompletionTypeAttribute = "Transient"
	// Permanent: it can't.
	Permanent CompletionTypeAttribute = "Permanent"
	// Conflict: it collided with others; wait before the next.
	Conflict CompletionTypeAttribute = "Conflict"
)

// PodCompletionStatus is the result that the kubelet and the containers reported.
type PodCompletionStatus struct {
	Reason     string                      `json:"reason,omitempty"`
	Message    string                      `json:"message,omitempty"`
	Containers []ContainerCompletionStatus `json:"containers,omitempty"`
}

// ContainerCompletionStatus is one terminated container.
type ContainerCompletionStatus struct {
	Name    string `json:"name"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Signal  int32  `json:"signal,omitempty"`
	Code    int32  `json:"code"`
}
