package machine

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Rebuild adds the tasks that are missing from a status because the ConfigMap with them was lost. It identifies the tasks by their pods. A task
// without a pod is treated as a task that has not begun. Rebuild returns the tasks that it added. Of the input, it uses only Framework, Status,
// Pods.ByName, Now and Rules.
func Rebuild(in Input) []Task {
	s := &step{Input: in, status: in.Status}
	pods := map[string][]*corev1.Pod{}
	for _, p := range in.Pods.ByName {
		if s.attempts(p) {
			role := p.Labels[v1.LabelTaskRole]
			pods[role] = append(pods[role], p)
		}
	}
	var added []Task
	for _, r := range in.Status.AttemptStatus.TaskRoleStatuses {
		added = append(added, s.rebuildRole(r, pods[r.Name])...)
	}
	return added
}

// attempts reports whether a pod belongs to the attempt in the status.
func (s *step) attempts(p *corev1.Pod) bool {
	return s.owned(p) && p.Annotations[v1.AnnotationFrameworkAttempt] == itoa(s.status.AttemptStatus.ID)
}

func (s *step) rebuildRole(r *v1.TaskRoleStatus, pods []*corev1.Pod) []Task {
	have := make(map[int32]*v1.TaskStatus, len(r.TaskStatuses))
	// There is one task for each index up to the highest known index, because tasks are sorted by their indices.
	n := min(r.Counts.Total, v1.MaxTasks)
	for _, t := range r.TaskStatuses {
		have[t.Index] = t
		n = max(n, t.Index+1)
	}
	running := map[int32]*corev1.Pod{}
	for _, p := range pods {
		i, err := strconv.ParseInt(p.Labels[v1.LabelTaskIndex], 10, 32)
		if err == nil && i >= 0 && i < v1.MaxTasks && p.Name == v1.PodName(s.Framework.Name, r.Name, int32(i)) {
			running[int32(i)] = p
			n = max(n, int32(i)+1)
		}
	}
	var added []Task
	for i := range n {
		if have[i] == nil {
			r.TaskStatuses = append(r.TaskStatuses, s.rebuildTask(r.Name, i, running[i]))
			added = append(added, Task{r.Name, i})
		}
	}
	slices.SortFunc(r.TaskStatuses, func(a, b *v1.TaskStatus) int { return cmp.Compare(a.Index, b.Index) })
	return added
}

// rebuildTask returns a task whose pod is p, or a task without a pod if p is nil. The next step continues with the state of the pod. It is
// unknown how many earlier attempts failed because of the job itself, so none of them count.
func (s *step) rebuildTask(role string, index int32, p *corev1.Pod) *v1.TaskStatus {
	t := s.newTask(role, index)
	if p != nil {
		s.adopt(t, p)
	}
	if s.status.AttemptStatus.CompletionTime != nil { // it has ended with its attempt
		o := s.outcome(CodeAttemptCompletion)
		if p != nil && terminal(p) {
			if how, ok := s.ended(p); ok {
				o = how
			}
		} else {
			p = nil
		}
		s.complete(t, o, "", p)
		s.completeTask(t)
	}
	return t
}

// adopt sets the fields of a task that are known from its pod.
func (s *step) adopt(t *v1.TaskStatus, p *corev1.Pod) {
	if id, err := strconv.ParseInt(p.Annotations[v1.AnnotationTaskAttempt], 10, 32); err == nil && id >= 0 {
		t.AttemptStatus.ID, t.RetryPolicyStatus.TotalRetriedCount = int32(id), int32(id)
	}
	t.InstanceUID = p.Annotations[AnnotationTaskUID]
	t.StartTime, t.AttemptStatus.StartTime = p.CreationTimestamp, p.CreationTimestamp
}
