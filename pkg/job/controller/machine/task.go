package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// notSeenAfter is how long a pod may be missing from the cache after it was created.
const notSeenAfter = 5 * time.Minute

// each calls f for every task and records which tasks have changed. f may replace pointers, but never changes the values behind pointers. So a
// comparison of the structs is enough.
func (s *step) each(f func(*v1.TaskRoleStatus, *v1.TaskStatus)) {
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			before := *t
			f(r, t)
			if before != *t {
				s.touch(r.Name, t.Index)
			}
		}
	}
}

func (s *step) touch(role string, index int32) {
	s.Tasks = append(s.Tasks, Task{role, index})
}

// tasks updates every task according to the state of its pod.
func (s *step) tasks() {
	s.each(func(r *v1.TaskRoleStatus, t *v1.TaskStatus) {
		switch t.State {
		case v1.Completed:
			return
		case v1.AttemptCreationPending:
			s.creationPending(r, t)
		case v1.AttemptCreationRequested, v1.AttemptPreparing, v1.AttemptRunning:
			s.observe(t)
		}
		if t.DeletionPending && t.AttemptStatus.CompletionStatus == nil {
			s.cut(t, CodeTaskDeleted)
		}
		s.await(r, t)
		s.retryTask(r, t)
	})
}

// pod returns the pod of the task's current attempt, or nil if the pod doesn't exist.
func (s *step) pod(t *v1.TaskStatus) *corev1.Pod {
	p := s.Pods.ByName[t.AttemptStatus.PodName]
	if p == nil || t.AttemptStatus.PodUID == nil || string(p.UID) != *t.AttemptStatus.PodUID {
		return nil
	}
	return p
}

// mine reports whether a pod was made for exactly this attempt of this task. If a process created a pod and was killed before it recorded the
// pod's UID, the next process can find the pod with mine.
func (s *step) mine(t *v1.TaskStatus, p *corev1.Pod) bool {
	return s.owned(p) &&
		p.Annotations[AnnotationTaskUID] == t.InstanceUID &&
		p.Annotations[v1.AnnotationFrameworkAttempt] == itoa(s.status.AttemptStatus.ID) &&
		p.Annotations[v1.AnnotationTaskAttempt] == itoa(t.AttemptStatus.ID)
}

// AnnotationTaskUID is the annotation of a pod with the InstanceUID of its task. A task that was removed and added again has a new InstanceUID.
const AnnotationTaskUID = "FC_TASK_UID"

func (s *step) creationPending(r *v1.TaskRoleStatus, t *v1.TaskStatus) {
	name := t.AttemptStatus.PodName
	p := s.Pods.ByName[name]
	switch {
	case p != nil && s.mine(t, p):
		uid := string(p.UID)
		instance := itoa(t.AttemptStatus.ID) + "_" + uid
		t.AttemptStatus.PodUID, t.AttemptStatus.InstanceUID = &uid, &instance
		s.moveTask(t, v1.AttemptCreationRequested)
		s.observe(t)
	case p != nil:
		s.remove(r, nil, p)
	default:
		if why, ok := s.Pods.Refused[name]; ok && s.live() {
			s.complete(t, s.outcome(why.Code), why.Message, nil)
		}
	}
}

// observe updates a task whose pod should exist according to the state of that pod.
func (s *step) observe(t *v1.TaskStatus) {
	p := s.pod(t)
	if p == nil && t.AttemptStatus.PodUID != nil {
		if last := s.Pods.Last[types.UID(*t.AttemptStatus.PodUID)]; last != nil {
			s.gone(t, last)
			return
		}
	}
	if p == nil {
		code := int32(CodePodDeleted)
		if t.State == v1.AttemptCreationRequested && s.Now.Sub(t.TransitionTime.Time) >= notSeenAfter {
			code = CodePodNotSeen
		}
		s.complete(t, s.outcome(code), "", nil)
		return
	}
	s.where(t, p)
	if o, ok := s.ended(p); ok {
		s.ran(t, p)
		s.complete(t, o, "", p)
		return
	}
	if p.DeletionTimestamp != nil || terminal(p) {
		o, why := s.taken(p)
		s.complete(t, o, why, p)
		return
	}
	switch {
	case p.Status.Phase == corev1.PodRunning:
		s.ran(t, p)
		s.moveTask(t, v1.AttemptRunning)
	case p.Status.Phase == corev1.PodPending && !s.Pods.Fresh[p.Name] && t.State == v1.AttemptCreationRequested:
		s.moveTask(t, v1.AttemptPreparing)
	case s.Pods.Fresh[p.Name] && t.State == v1.AttemptCreationRequested:
		s.wake(t.TransitionTime.Add(notSeenAfter))
	}
}

// gone completes a task whose pod no longer exists, according to the pod's last known state.
func (s *step) gone(t *v1.TaskStatus, last *corev1.Pod) {
	s.where(t, last)
	o, ok := s.ended(last)
	why := ""
	if !ok {
		o, why = s.taken(last)
	}
	if terminal(last) || last.Status.Phase == corev1.PodRunning {
		s.ran(t, last)
	}
	s.complete(t, o, why, last)
	if t.State == v1.AttemptDeletionPending {
		s.attemptCompleted(t, s.Now) // there is nothing to delete
	}
}

// where records the machine and the GPUs of a pod in its task. It also records the addresses of both.
func (s *step) where(t *v1.TaskStatus, p *corev1.Pod) {
	a := &t.AttemptStatus
	set := func(field **string, value string) {
		if value != "" && (*field == nil || **field != value) {
			*field = &value
		}
	}
	set(&a.PodNodeName, p.Spec.NodeName)
	set(&a.PodHostIP, p.Status.HostIP)
	set(&a.PodIP, p.Status.PodIP)
	if a.GPUs == nil && p.Spec.NodeName != "" && s.GPUs != nil {
		s.holds(a, p)
	}
}

// gpusLater is the time until GPUs that aren't fully known yet are checked again.
const gpusLater = 5 * time.Second

// holds records the GPUs that were assigned to a pod together with its machine.
func (s *step) holds(a *v1.TaskAttemptStatus, p *corev1.Pod) {
	g, known := s.GPUs(p)
	switch {
	case !known:
		s.wake(s.Now.Add(gpusLater))
	case g != nil:
		if g.Since.IsZero() {
			g.Since = metav1.NewTime(s.Now)
		}
		if g.Since.Before(&a.StartTime) { // another clock's
			g.Since = a.StartTime
		}
		a.GPUs = g
	}
}

// ran records when the pod's program began.
func (s *step) ran(t *v1.TaskStatus, p *corev1.Pod) {
	if t.AttemptStatus.RunTime != nil {
		return
	}
	at := firstStart(p)
	if at.IsZero() {
		if terminal(p) {
			return // it failed before anything ran
		}
		at = s.Now
	}
	// The clock of the machine may differ. So the time is limited to the period from the start of the attempt until now.
	when := metav1.NewTime(latest(earliest(at, s.Now), t.AttemptStatus.StartTime.Time))
	t.AttemptStatus.RunTime = &when
	if t.RunTime == nil {
		t.RunTime = &when
	}
}

// complete sets the outcome of a task's attempt, which never changes after that. p is nil if the pod is gone.
func (s *step) complete(t *v1.TaskStatus, o Outcome, more string, p *corev1.Pod) {
	c := &v1.TaskAttemptCompletionStatus{CompletionStatus: completion(o, more)}
	at := s.Now
	if p != nil {
		c.Pod = told(p)
		if end := lastEnd(p); terminal(p) && !end.IsZero() {
			at = earliest(end, s.Now)
		}
	}
	t.AttemptStatus.CompletionStatus = c
	if o.NodeFault && t.AttemptStatus.PodNodeName != nil {
		s.blame(*t.AttemptStatus.PodNodeName, t.AttemptStatus.StartTime.Time)
	}
	if p != nil && !terminal(p) {
		s.moveTask(t, v1.AttemptDeletionPending)
		return
	}
	s.attemptCompleted(t, at)
}

// cut ends a task's attempt for a reason other than the state of its pod.
func (s *step) cut(t *v1.TaskStatus, code int32) {
	if p := s.Pods.ByName[t.AttemptStatus.PodName]; t.State == v1.AttemptCreationPending && p != nil && !terminal(p) {
		return // the pod in its way must be removed first, since it may be an instance of the task
	}
	s.complete(t, s.outcome(code), "", s.pod(t))
}

func (s *step) attemptCompleted(t *v1.TaskStatus, at time.Time) {
	when := metav1.NewTime(latest(at, t.AttemptStatus.StartTime.Time))
	t.AttemptStatus.CompletionTime = &when
	s.moveTask(t, v1.AttemptCompleted)
}

func (s *step) moveTask(t *v1.TaskStatus, to v1.State) {
	if t.State != to {
		s.Decisive = s.Decisive || decides(to)
		t.State, t.TransitionTime = to, metav1.NewTime(s.Now)
	}
}

// retryTask decides whether another attempt follows a completed attempt of a task.
func (s *step) retryTask(r *v1.TaskRoleStatus, t *v1.TaskStatus) {
	if t.State != v1.AttemptCompleted {
		return
	}
	a := &t.AttemptStatus
	if !s.live() || t.DeletionPending {
		s.completeTask(t)
		return
	}
	v := s.judge(s.taskPolicy(r.Name), t.RetryPolicyStatus, a.CompletionStatus.CompletionStatus, ranFor(a.RunTime, a.CompletionTime))
	if t.RetryPolicyStatus.RetryDelaySec == nil {
		if !v.retry {
			s.completeTask(t)
			return
		}
		sec := int64(v.delay / time.Second)
		t.RetryPolicyStatus.RetryDelaySec = &sec
	}
	due := t.TransitionTime.Add(time.Duration(*t.RetryPolicyStatus.RetryDelaySec) * time.Second)
	if s.Now.Before(due) {
		s.wake(due)
		return
	}
	if !s.forgettable(r, t) {
		return
	}
	t.RetryPolicyStatus.TotalRetriedCount++
	if v.accountable {
		t.RetryPolicyStatus.AccountableRetriedCount++
	}
	t.RetryPolicyStatus.RetryDelaySec = nil
	t.AttemptStatus = s.newTaskAttempt(r.Name, t.Index, t.RetryPolicyStatus.TotalRetriedCount)
	s.status.AttemptStatus.PeersTime = nil // its address will change
	s.moveTask(t, v1.AttemptCreationPending)
}

// forgettable reports whether the attempt of a task is archived and its pod is gone. If not, it requests the missing actions.
func (s *step) forgettable(r *v1.TaskRoleStatus, t *v1.TaskStatus) bool {
	ok := true
	if !s.Saved.Task(r.Name, t.Index, t.AttemptStatus.ID) {
		s.ArchiveTasks = append(s.ArchiveTasks, Task{r.Name, t.Index})
		ok = false
	}
	if p := s.pod(t); p != nil {
		s.remove(r, s.logOf(r.Name, t), p)
		ok = false
	}
	return ok
}

func (s *step) logOf(role string, t *v1.TaskStatus) *LogOf {
	return &LogOf{Task{role, t.Index}, s.status.AttemptStatus.ID, t.AttemptStatus.ID}
}

func (s *step) completeTask(t *v1.TaskStatus) {
	t.RetryPolicyStatus.RetryDelaySec = nil
	t.CompletionTime = t.AttemptStatus.CompletionTime
	s.moveTask(t, v1.Completed)
}

func (s *step) taskPolicy(role string) v1.RetryPolicy {
	if r := s.roles[role]; r != nil {
		return r.Task.RetryPolicy
	}
	return v1.RetryPolicy{}
}

func (s *step) newTask(role string, index int32) *v1.TaskStatus {
	now := metav1.NewTime(s.Now)
	return &v1.TaskStatus{
		Index: index, InstanceUID: s.instance(role, index), StartTime: now, TransitionTime: now,
		State: v1.AttemptCreationPending, AttemptStatus: s.newTaskAttempt(role, index, 0),
	}
}

func (s *step) newTaskAttempt(role string, index, id int32) v1.TaskAttemptStatus {
	return v1.TaskAttemptStatus{ID: id, StartTime: metav1.NewTime(s.Now), PodName: v1.PodName(s.Framework.Name, role, index)}
}
