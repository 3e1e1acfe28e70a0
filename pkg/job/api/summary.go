package api

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// States of a job in a list.
const (
	Waiting   = "waiting" // for its first attempt, or for the next
	Running   = "running"
	Stopping  = "stopping"
	Succeeded = "succeeded"
	Failed    = "failed"
	Stopped   = "stopped"
	// Deleted means that the Framework was gone before the controller saw the job's end. Only the history has jobs in this state.
	Deleted = "deleted"
)

// PhraseGone is the phrase of a job in the state Deleted. Such a job has no code, and its completion time is when the controller found that the
// Framework was gone.
const PhraseGone = "FrameworkGone"

// Completion codes of attempts that ended on request, either by a user or by the controller on behalf of a user.
const (
	codeStopRequested    = -210
	codeAttemptCompleted = -220
	codeRestartRequested = v1.CodeRestart
)

// Summary returns the row for a Framework in a list of jobs.
func Summary(f *v1.Framework) Job {
	out := Job{
		Framework: f.Name, UID: string(f.UID), User: f.Labels[v1.LabelUser], Name: f.Annotations[v1.AnnotationJobName],
		VirtualCluster: f.Labels[v1.LabelVC], Priority: f.Annotations[v1.AnnotationPriority],
		State: StateOf(f), Submitted: f.CreationTimestamp.UTC(),
		Deleted:       f.DeletionTimestamp != nil && f.Annotations[v1.AnnotationExpired] != "true",
		ExecutionType: string(f.Spec.ExecutionType), Roles: len(f.Spec.TaskRoles), Tags: v1.ReadTags(f.Annotations[v1.AnnotationTags]),
	}
	if out.Name == "" {
		out.Name = f.Name // made by other tools
	}
	out.GPUs = readGPUs(f.Annotations[v1.AnnotationGPUs])
	out.TakesGPUs = max(readGPUs(f.Annotations[v1.AnnotationGPUsTaken]), 0)
	for i := range f.Spec.TaskRoles {
		r := &f.Spec.TaskRoles[i]
		out.Tasks += int(r.TaskNumber)
		for k := range r.Task.Pod.Spec.Containers {
			limits := r.Task.Pod.Spec.Containers[k].Resources.Limits
			out.MilliCPU += limited(limits.Cpu().MilliValue(), r.TaskNumber)
			out.MemoryMB += limited((limits.Memory().Value()+1<<20-1)>>20, r.TaskNumber)
		}
	}
	if s := f.Status; s != nil {
		out.Retries, out.AccountableRetries = s.RetryPolicyStatus.TotalRetriedCount, s.RetryPolicyStatus.AccountableRetriedCount
		out.FrameworkState = string(s.State)
		out.Started, out.Completed = UTC(s.RunTime), UTC(s.CompletionTime)
		if c := s.AttemptStatus.CompletionStatus; c != nil && c.CompletionStatus != nil && s.State == v1.Completed {
			code := c.Code
			out.Code, out.Phrase = &code, c.Phrase
		}
	}
	return out
}

// limited multiplies a task's resources by the number of tasks. It returns 0 if either number is impossibly high, because another tool may have
// written the Framework.
func limited(each int64, tasks int32) int64 {
	if each < 0 || each > 1<<30 || tasks < 0 || tasks > 1<<20 {
		return 0
	}
	return each * int64(tasks)
}

// Taken returns how many GPUs the job occupies, which may be more than the job requests. It returns UnknownGPUs if the number is unknown.
func (j *Job) Taken() int {
	if j.GPUs == UnknownGPUs {
		return j.GPUs
	}
	return max(j.GPUs, j.TakesGPUs)
}

// UnknownGPUs is the number of GPUs of a job whose annotation isn't a valid number.
const UnknownGPUs = -1

// maxGPUs is more than any job can have.
const maxGPUs = 10_000_000

// readGPUs parses an annotation with a number of GPUs. Any user may have written the annotation, so its value may be invalid. If it is empty,
// readGPUs returns 0.
func readGPUs(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return UnknownGPUs
	}
	return KnownGPUs(n)
}

// KnownGPUs returns n, or UnknownGPUs if no job can have n GPUs.
func KnownGPUs(n int) int {
	if n < 0 || n > maxGPUs {
		return UnknownGPUs
	}
	return n
}

// StateOf returns the state of a Framework in the words that users know. A Framework that waits for its next attempt is waiting, even if it has
// already run.
func StateOf(f *v1.Framework) string {
	s := f.Status
	stop := f.Spec.ExecutionType == v1.ExecutionStop
	if s == nil {
		return Waiting
	}
	code, ended := int32(0), false
	if c := s.AttemptStatus.CompletionStatus; c != nil && c.CompletionStatus != nil {
		code, ended = c.Code, true
		stop = stop || code == codeStopRequested || code == codeAttemptCompleted
	}
	switch {
	case s.State == v1.Completed && ended && code == 0:
		return Succeeded
	case s.State == v1.Completed && (code == codeStopRequested || code == codeAttemptCompleted || code == codeRestartRequested):
		return Stopped // also if the next attempt was requested, and the job was stopped before that attempt began
	case s.State == v1.Completed:
		return Failed
	case stop:
		return Stopping
	case s.State == v1.AttemptRunning || s.State == v1.AttemptDeletionPending || s.State == v1.AttemptDeletionRequested || s.State == v1.AttemptDeleting:
		return Running
	}
	return Waiting
}

// UTC converts a Kubernetes time to a time of this API. It returns nil if t is nil or zero.
func UTC(t *metav1.Time) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}
