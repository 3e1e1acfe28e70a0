package machine

import (
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// afterWake is the time between two checks of the jobs that must finish first, because the notice of their end may have been missed.
const afterWake = time.Minute

// begin makes the status of a new Framework.
func (s *step) begin() {
	now := metav1.NewTime(s.Now)
	s.status = &v1.FrameworkStatus{
		StartTime: now, TransitionTime: now, State: v1.AttemptCreationPending,
		AttemptStatus: s.newAttempt(0),
	}
}

// newAttempt returns the status of a new attempt, without tasks.
func (s *step) newAttempt(id int32) v1.FrameworkAttemptStatus {
	a := v1.FrameworkAttemptStatus{
		ID: id, StartTime: metav1.NewTime(s.Now),
		Restart: s.Framework.Annotations[v1.AnnotationRestart], TaskRoleStatuses: []*v1.TaskRoleStatus{},
	}
	if !s.Framework.OwnsPods() {
		a.ConfigMapName = v1.ConfigMapName(s.Framework.Name)
	}
	return a
}

func (s *step) move(to v1.State) {
	if s.status.State != to {
		s.Decisive = s.Decisive || decides(to)
		s.status.State, s.status.TransitionTime = to, metav1.NewTime(s.Now)
	}
}

// configMap updates the status according to the existing ConfigMap.
func (s *step) configMap() {
	a, cm := &s.status.AttemptStatus, s.ConfigMap
	switch s.status.State {
	case v1.AttemptCreationPending:
		if cm.UID == "" || cm.Deleting || cm.Attempt != a.ID {
			return
		}
		uid := string(cm.UID)
		a.ConfigMapUID = &uid
		s.named(uid)
		s.move(v1.AttemptCreationRequested)
		if !cm.Fresh {
			s.move(v1.AttemptPreparing)
		}
	case v1.AttemptCreationRequested:
		if !cm.Fresh {
			s.move(v1.AttemptPreparing)
		}
	}
}

// named gives the attempt a name that differs from the names of all other attempts.
func (s *step) named(owner string) {
	instance := itoa(s.status.AttemptStatus.ID) + "_" + owner
	s.status.AttemptStatus.InstanceUID = &instance
}

// OwnerUID returns the UID of the object that owns the pods of an attempt. It returns "" if that object doesn't exist yet.
func OwnerUID(f *v1.Framework, a *v1.FrameworkAttemptStatus) string {
	switch {
	case f.OwnsPods():
		return string(f.UID)
	case a.ConfigMapUID != nil:
		return *a.ConfigMapUID
	}
	return ""
}

// owned reports whether a pod has the same owner as the pods of this attempt.
func (s *step) owned(p *corev1.Pod) bool {
	owner, uid := metav1.GetControllerOf(p), OwnerUID(s.Framework, &s.status.AttemptStatus)
	return owner != nil && uid != "" && string(owner.UID) == uid
}

// lost reports whether the attempt's ConfigMap was deleted or is being deleted.
func (s *step) lost() bool {
	uid := s.status.AttemptStatus.ConfigMapUID
	return uid != nil && (string(s.ConfigMap.UID) != *uid || s.ConfigMap.Deleting)
}

// stopping reports whether a user has stopped or deleted the job.
func (s *step) stopping() bool {
	return s.Framework.Spec.ExecutionType == v1.ExecutionStop || s.Framework.DeletionTimestamp != nil
}

// decide checks whether the attempt must end, and records its outcome.
func (s *step) decide() {
	a := &s.status.AttemptStatus
	var c *v1.FrameworkAttemptCompletionStatus
	switch {
	case s.stopping():
		c = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: completion(s.outcome(CodeStopped), s.Framework.Annotations[v1.AnnotationStopped])}
	case s.Invalid != "":
		c = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: completion(s.outcome(CodeInvalid), s.Invalid)}
	case s.After.Failed != "" && s.status.State == v1.AttemptCreationPending:
		c = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: completion(s.outcome(CodeDependency), "The job was not started: "+s.After.Failed+".")}
	case s.lost():
		c = s.ofFramework(CodeConfigMapDeleted)
	case a.Restart != s.Framework.Annotations[v1.AnnotationRestart]:
		c = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: completion(s.outcome(CodeRestart), s.requeued())}
	default:
		c = s.triggered()
	}
	if c == nil {
		return
	}
	a.CompletionStatus = c
	s.Decided = true
	s.move(v1.AttemptDeletionPending)
}

// requeued returns the alert handler's reason for requesting another attempt. It returns "" if a person requested the attempt with "job retry".
func (s *step) requeued() string {
	annotations := s.Framework.Annotations
	if r := v1.FindRequeue(v1.ReadRequeues(annotations), annotations[v1.AnnotationRestart]); r != nil {
		return r.Reason
	}
	return ""
}

func (s *step) ofFramework(code int32) *v1.FrameworkAttemptCompletionStatus {
	return &v1.FrameworkAttemptCompletionStatus{CompletionStatus: completion(s.outcome(code), "")}
}

// finish ends the tasks of an attempt whose outcome has been decided.
func (s *step) finish() {
	switch s.status.State {
	case v1.AttemptDeletionPending, v1.AttemptDeletionRequested, v1.AttemptDeleting:
	default:
		return
	}
	open, requested, deleting := 0, 0, 0
	s.each(func(r *v1.TaskRoleStatus, t *v1.TaskStatus) {
		if t.State != v1.Completed && t.AttemptStatus.CompletionStatus == nil {
			s.cut(t, CodeAttemptCompletion)
			s.await(r, t)
		}
		if t.State == v1.AttemptCompleted {
			s.completeTask(t)
		}
		switch t.State {
		case v1.Completed:
			return
		case v1.AttemptDeletionRequested:
			requested++
		case v1.AttemptDeleting:
			deleting++
		}
		open++
	})
	switch {
	case open == 0:
		now := metav1.NewTime(s.Now)
		s.status.AttemptStatus.CompletionTime = &now
		s.move(v1.AttemptCompleted)
	case deleting == open:
		s.move(v1.AttemptDeleting)
	case deleting+requested == open:
		s.move(v1.AttemptDeletionRequested)
	}
}

// retry decides whether another attempt follows a completed attempt.
func (s *step) retry() {
	if s.status.State != v1.AttemptCompleted {
		return
	}
	st, a := &s.status.RetryPolicyStatus, &s.status.AttemptStatus
	if s.stopping() || s.Invalid != "" || a.CompletionStatus.Code == CodeDependency {
		s.completed()
		return
	}
	v := s.judge(s.Framework.Spec.RetryPolicy, *st, a.CompletionStatus.CompletionStatus, ranFor(a.RunTime, a.CompletionTime))
	if st.RetryDelaySec == nil {
		if !v.retry {
			s.completed()
			return
		}
		sec := int64(v.delay / time.Second)
		st.RetryDelaySec = &sec
		s.note(true, "Retrying", s.retryMessage())
	}
	due := s.retryTime()
	if s.Now.Before(due) && a.Restart == s.Framework.Annotations[v1.AnnotationRestart] {
		s.wake(due)
		return
	}
	if !s.cleared() {
		return
	}
	st.TotalRetriedCount++
	if v.accountable {
		st.AccountableRetriedCount++
	}
	st.RetryDelaySec = nil
	s.status.PreviousAttempt = &v1.PreviousAttempt{ID: a.ID, Code: a.CompletionStatus.Code, Phrase: a.CompletionStatus.Phrase, CompletionTime: s.status.TransitionTime}
	s.status.AttemptStatus = s.newAttempt(st.TotalRetriedCount)
	s.Tasks = nil // those of the attempt that is forgotten
	s.NewAttempt, s.Decided = true, false
	s.move(v1.AttemptCreationPending)
}

func (s *step) retryTime() time.Time {
	return s.status.TransitionTime.Add(time.Duration(*s.status.RetryPolicyStatus.RetryDelaySec) * time.Second)
}

// cleared reports whether the attempt is archived and its pods are gone. If not, it requests the missing actions.
func (s *step) cleared() bool {
	ok := true
	if !s.Saved.Attempt(s.status.AttemptStatus.ID) {
		s.ArchiveAttempt = true
		ok = false
	}
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			if p := s.pod(t); p != nil {
				s.remove(r, s.logOf(r.Name, t), p)
			}
		}
	}
	if len(s.Pods.ByName) > 0 {
		return false
	}
	if s.ConfigMap.UID != "" {
		s.DeleteConfigMap = s.ConfigMap.UID
		ok = false
	}
	return ok
}

func (s *step) completed() {
	s.status.RetryPolicyStatus.RetryDelaySec = nil
	s.status.CompletionTime = s.status.AttemptStatus.CompletionTime
	s.move(v1.Completed)
}

// prepare requests the ConfigMap and the pods that a live attempt still needs. If the Framework owns the pods, the attempt needs no ConfigMap, so
// it begins immediately.
func (s *step) prepare() {
	if !s.live() || s.stopping() || s.Invalid != "" || s.Framework.Spec.ExecutionType == v1.ExecutionCreate {
		return
	}
	if s.status.State == v1.AttemptCreationPending {
		switch {
		case s.After.Failed != "": // decided in the next pass
		case len(s.After.Waits) > 0:
			s.wake(s.Now.Add(afterWake))
		case s.Framework.OwnsPods():
			s.named(string(s.Framework.UID))
			s.move(v1.AttemptPreparing) // the next pass makes its tasks
		case s.ConfigMap.UID == "":
			s.CreateConfigMap = true
		case !s.ConfigMap.Deleting && s.ConfigMap.Attempt != s.status.AttemptStatus.ID:
			s.DeleteConfigMap = s.ConfigMap.UID
		}
		return
	}
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		room := s.room(r)
		for _, t := range r.TaskStatuses {
			if room > 0 && t.State == v1.AttemptCreationPending && !t.DeletionPending && s.Pods.ByName[t.AttemptStatus.PodName] == nil {
				s.Create = append(s.Create, Task{r.Name, t.Index})
				room--
			}
		}
	}
	s.peers()
}

// maxQueued is how many pods of a role may wait for a machine at the same time, if the role's tasks start one by one. Further pods are created
// when some of these pods have a machine. Too many waiting pods would use up the quota of the namespace for pods, and the scheduler would examine
// each of them again and again.
const maxQueued = 200

// room returns how many more pods of a role may be made now.
func (s *step) room(r *v1.TaskRoleStatus) int {
	if !s.oneByOne(r.Name) {
		return math.MaxInt
	}
	queued := 0
	for _, t := range r.TaskStatuses {
		if p := s.Pods.ByName[t.AttemptStatus.PodName]; p != nil && p.Spec.NodeName == "" && p.Status.Phase != corev1.PodFailed {
			queued++
		}
	}
	return maxQueued - queued
}

// oneByOne reports whether the tasks of a role start one by one. This means that the tasks don't wait for each other, and that the scheduler
// doesn't place them as a gang.
func (s *step) oneByOne(role string) bool {
	if s.Framework.Annotations[v1.AnnotationGang] != "false" {
		return false
	}
	for i := range s.Framework.Spec.TaskRoles {
		if r := &s.Framework.Spec.TaskRoles[i]; r.Name == role {
			asks := r.Task.Pod.Annotations[annotation.SpecKey]
			return asks == "" || strings.Contains(asks, "affinityGroup: null")
		}
	}
	return false
}

// strays removes pods that belong to no task. Either a replica that lost its lease made them, or their tasks were removed. This ensures that a
// task never has more than one running pod.
func (s *step) strays() {
	if len(s.Pods.ByName) == 0 {
		return
	}
	known := make(map[string]bool, len(s.Pods.ByName))
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			// A pod that blocks the start of a task is handled by creationPending.
			if s.pod(t) != nil || t.State == v1.AttemptCreationPending {
				known[t.AttemptStatus.PodName] = true
			}
		}
	}
	for name, p := range s.Pods.ByName {
		if !known[name] {
			s.remove(s.graceOf(p), nil, p)
		}
	}
}

// graceOf returns the role to which a stray pod belongs, because the role determines how long the pod's deletion may take.
func (s *step) graceOf(p *corev1.Pod) *v1.TaskRoleStatus {
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		if r.Name == p.Labels[v1.LabelTaskRole] {
			return r
		}
	}
	return &v1.TaskRoleStatus{}
}
