package machine

import (
	"fmt"
	"slices"
	"time"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// trigger is a condition of the completion policy that is met, and the time when it was met.
type trigger struct {
	at   time.Time
	c    *v1.FrameworkAttemptCompletionStatus
	role string
}

// triggered returns the outcome of the attempt according to the completion policy, or nil while the attempt continues. If several conditions are
// met, the condition that was met first counts. If two were met at the same time, a failure takes precedence over a success.
func (s *step) triggered() *v1.FrameworkAttemptCompletionStatus {
	var first *trigger
	all, done := 0, 0
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		var failed, succeeded []*v1.TaskStatus
		for _, t := range r.TaskStatuses {
			if t.DeletionPending {
				continue
			}
			all++
			if t.State != v1.Completed {
				continue
			}
			done++
			if t.AttemptStatus.CompletionStatus.Type.Name == v1.Failed {
				failed = append(failed, t)
			} else {
				succeeded = append(succeeded, t)
			}
		}
		spec := s.roles[r.Name]
		if spec == nil {
			continue
		}
		p := spec.FrameworkAttemptCompletionPolicy
		for _, t := range []*trigger{
			reached(r.Name, failed, p.MinFailedTaskCount, "FailedTaskCount %d has reached MinFailedTaskCount %d in the TaskRole"),
			reached(r.Name, succeeded, p.MinSucceededTaskCount, "SucceededTaskCount %d has reached MinSucceededTaskCount %d in the TaskRole"),
		} {
			if t != nil && (first == nil || t.before(first)) {
				first = t
			}
		}
	}
	if first != nil {
		return first.c
	}
	if all == 0 || done < all {
		return nil
	}
	c := s.ofFramework(0)
	c.Trigger = &v1.CompletionTrigger{Message: fmt.Sprintf(
		"CompletedTaskCount %d has reached TotalTaskCount %d and no user specified conditions have ever been triggered", done, all)}
	return c
}

func (t *trigger) before(u *trigger) bool {
	if !t.at.Equal(u.at) {
		return t.at.Before(u.at)
	}
	return t.c.Type.Name == v1.Failed && u.c.Type.Name != v1.Failed
}

// reached returns a trigger if at least minimum of the tasks are complete, and otherwise nil. The trigger names the task that completed the
// minimum.
func reached(role string, tasks []*v1.TaskStatus, minimum int32, text string) *trigger {
	if minimum < 1 || len(tasks) < int(minimum) {
		return nil
	}
	slices.SortStableFunc(tasks, func(a, b *v1.TaskStatus) int { return a.CompletionTime.Compare(b.CompletionTime.Time) })
	t := tasks[minimum-1]
	index := t.Index
	status := *t.AttemptStatus.CompletionStatus.CompletionStatus
	return &trigger{at: t.CompletionTime.Time, role: role, c: &v1.FrameworkAttemptCompletionStatus{
		CompletionStatus: &status,
		Trigger: &v1.CompletionTrigger{
			Message: fmt.Sprintf(text, len(tasks), minimum), TaskRoleName: role, TaskIndex: &index,
		},
	}}
}
