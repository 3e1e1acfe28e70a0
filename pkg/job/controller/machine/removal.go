package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// await updates a task whose pod is being removed, and completes the task's attempt when the pod has ended.
func (s *step) await(r *v1.TaskRoleStatus, t *v1.TaskStatus) {
	switch t.State {
	case v1.AttemptDeletionPending, v1.AttemptDeletionRequested, v1.AttemptDeleting:
	default:
		return
	}
	p := s.pod(t)
	if p == nil || terminal(p) {
		s.attemptCompleted(t, s.Now)
		return
	}
	if p.DeletionTimestamp != nil {
		s.moveTask(t, v1.AttemptDeleting)
	} else if s.Pods.Deleted[p.UID] {
		s.moveTask(t, v1.AttemptDeletionRequested)
	}
	s.remove(r, s.logOf(r.Name, t), p)
}

// remove requests the deletion of a pod. If the deletion takes longer than the role allows, remove requests a deletion by force.
func (s *step) remove(r *v1.TaskRoleStatus, log *LogOf, p *corev1.Pod) {
	if p.DeletionTimestamp == nil {
		if !s.Pods.Deleted[p.UID] {
			s.Delete = append(s.Delete, Deletion{Name: p.Name, UID: p.UID, Log: log})
		}
		return
	}
	limit := r.PodGracefulDeletionTimeoutSec
	if limit == nil {
		return
	}
	due := deletionAsked(p).Add(time.Duration(*limit) * time.Second)
	if s.Now.Before(due) {
		s.wake(due)
		return
	}
	if s.Pods.Forced[p.UID] {
		return
	}
	s.note(true, "ForcedDeletion", "Pod "+p.Name+" on "+p.Spec.NodeName+" did not stop in time and is deleted by force; if its machine has only lost its connection, the pod may still run there.")
	s.Delete = append(s.Delete, Deletion{Name: p.Name, UID: p.UID, Force: true})
}
