package machine

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// rescale makes the tasks match the spec. It adds tasks to the status before their pods are created. It removes surplus tasks at the end of a
// role after they have ended.
func (s *step) rescale() {
	a := &s.status.AttemptStatus
	for i := range s.Framework.Spec.TaskRoles {
		spec := &s.Framework.Spec.TaskRoles[i]
		r := s.role(spec.Name)
		if r == nil {
			r = &v1.TaskRoleStatus{Name: spec.Name, InstanceUID: s.instance(spec.Name, -1), TaskStatuses: []*v1.TaskStatus{}}
			a.TaskRoleStatuses = append(a.TaskRoleStatuses, r)
		}
		if d := spec.Task.PodGracefulDeletionTimeoutSec; cmp.Compare(deref(d), deref(r.PodGracefulDeletionTimeoutSec)) != 0 ||
			(d == nil) != (r.PodGracefulDeletionTimeoutSec == nil) {
			r.PodGracefulDeletionTimeoutSec = clone(d)
		}
		s.resize(r, spec.TaskNumber)
	}
	a.TaskRoleStatuses = slices.DeleteFunc(a.TaskRoleStatuses, func(r *v1.TaskRoleStatus) bool {
		if s.roles[r.Name] != nil {
			return false
		}
		s.resize(r, 0)
		return len(r.TaskStatuses) == 0
	})
}

func deref(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

func (s *step) role(name string) *v1.TaskRoleStatus {
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// resize changes the number of tasks of a role to n.
func (s *step) resize(r *v1.TaskRoleStatus, n int32) {
	for i, t := range r.TaskStatuses {
		switch {
		case t.Index >= n && !t.DeletionPending:
			t.DeletionPending, s.Decisive = true, true
			s.touch(r.Name, t.Index)
		case t.Index < n && t.DeletionPending && s.leaves(r, t):
			// A task that was being removed is needed again. The decision to remove it is final, so a new task replaces it.
			r.TaskStatuses[i] = s.newTask(r.Name, t.Index)
			s.added(r.Name, t.Index)
		}
	}
	for last := len(r.TaskStatuses) - 1; last >= 0; last-- {
		t := r.TaskStatuses[last]
		if t.Index < n || !s.leaves(r, t) {
			break
		}
		r.TaskStatuses = r.TaskStatuses[:last]
		s.touch(r.Name, t.Index)
	}
	// Gaps between tasks are also filled. They exist if a process was killed while it wrote the first tasks of an attempt.
	for i := range n {
		if int(i) < len(r.TaskStatuses) && r.TaskStatuses[i].Index == i {
			continue
		}
		r.TaskStatuses = slices.Insert(r.TaskStatuses, int(i), s.newTask(r.Name, i))
		s.added(r.Name, i)
	}
}

// leaves reports whether a task that is being removed has ended, so that it can be dropped from the status.
func (s *step) leaves(r *v1.TaskRoleStatus, t *v1.TaskStatus) bool {
	return t.DeletionPending && t.State == v1.Completed && s.forgettable(r, t)
}

func (s *step) added(role string, index int32) {
	s.Decisive = true
	s.touch(role, index)
	s.status.AttemptStatus.PeersTime = nil
}

// instance returns a name in the form of a UID that differs from those of all other tasks and roles. The name is derived from the fields that
// identify the instance, so that a repeated step results in the same name.
func (s *step) instance(role string, index int32) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s/%d/%d", s.Framework.UID, s.status.AttemptStatus.ID, role, index, s.Now.UnixNano()))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
