package machine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// running moves the Framework to AttemptRunning once a task has run.
func (s *step) running() {
	a := &s.status.AttemptStatus
	if a.RunTime == nil {
		for _, r := range a.TaskRoleStatuses {
			for _, t := range r.TaskStatuses {
				if t.RunTime != nil && !t.DeletionPending && (a.RunTime == nil || t.RunTime.Before(a.RunTime)) {
					a.RunTime = clone(t.RunTime)
				}
			}
		}
	}
	if a.RunTime == nil {
		return
	}
	if s.status.RunTime == nil {
		s.status.RunTime = clone(a.RunTime)
	}
	switch s.status.State {
	case v1.AttemptCreationRequested, v1.AttemptPreparing:
		s.move(v1.AttemptRunning)
	}
}

// summarise fills in the fields of the status that lists show.
func (s *step) summarise() {
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		r.Counts = count(r.TaskStatuses)
	}
	s.status.Message = s.message()
}

func count(tasks []*v1.TaskStatus) v1.TaskCounts {
	var c v1.TaskCounts
	for _, t := range tasks {
		if t.DeletionPending {
			continue
		}
		c.Total++
		switch t.State {
		case v1.AttemptCreationPending, v1.AttemptCreationRequested, v1.AttemptPreparing, v1.AttemptCompleted:
			c.Waiting++
		case v1.Completed:
			if t.AttemptStatus.CompletionStatus.Type.Name == v1.Succeeded {
				c.Succeeded++
			} else {
				c.Failed++
			}
		default:
			c.Running++
		}
	}
	return c
}

// message returns a sentence for a state that needs an explanation. The sentence changes only when the state changes, so it causes no additional
// writes.
func (s *step) message() string {
	a := &s.status.AttemptStatus
	switch {
	case s.status.State == v1.Completed:
		return s.endMessage()
	case s.status.State == v1.AttemptCompleted && s.status.RetryPolicyStatus.RetryDelaySec != nil:
		return s.retryMessage()
	case !s.live():
		return "The attempt has ended (" + rules.Words(a.CompletionStatus.Phrase) + "); its last pods are being stopped."
	case s.Framework.Spec.ExecutionType == v1.ExecutionCreate:
		return "The job waits to be started: its executionType is Create."
	case s.status.State == v1.AttemptCreationPending && len(s.After.Waits) > 0:
		return "The job starts after " + strings.Join(s.After.Waits, ", ") + "."
	case s.Blocked != "":
		return "No pod can be created now; this is retried: " + clip(s.Blocked, maxDiagnostics)
	case s.empty():
		return "The job has no task, so there is nothing to run."
	}
	return s.taskMessage()
}

func (s *step) empty() bool {
	for _, r := range s.Framework.Spec.TaskRoles {
		if r.TaskNumber > 0 {
			return false
		}
	}
	return true
}

// taskMessage returns a sentence about the tasks that wait for a retry.
func (s *step) taskMessage() string {
	waiting, first := 0, ""
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			if t.State != v1.AttemptCompleted || t.RetryPolicyStatus.RetryDelaySec == nil || t.DeletionPending {
				continue
			}
			if waiting++; waiting == 1 {
				due := t.TransitionTime.Add(time.Duration(*t.RetryPolicyStatus.RetryDelaySec) * time.Second)
				first = fmt.Sprintf("Task %s-%d failed (%s) and will be retried at %s", r.Name, t.Index,
					rules.Words(t.AttemptStatus.CompletionStatus.Phrase), clock(due))
			}
		}
	}
	switch waiting {
	case 0:
		return ""
	case 1:
		return first + "."
	}
	verb := "wait"
	if waiting == 2 {
		verb = "waits"
	}
	return fmt.Sprintf("%s, and %s %s likewise.", first, plural.Of(waiting-1, "more task"), verb)
}

func (s *step) retryMessage() string {
	c := s.status.AttemptStatus.CompletionStatus
	text := fmt.Sprintf("Attempt %d ended: %s (code %d)%s", s.status.AttemptStatus.ID, rules.Words(c.Phrase), c.Code, because(c.Trigger))
	if d := *s.status.RetryPolicyStatus.RetryDelaySec; d > 0 {
		text += "; the next starts at " + clock(s.retryTime())
	} else {
		text += "; the next starts as soon as all its pods are gone"
	}
	if avoided := Avoided(s.status, s.Policy, s.status.TransitionTime.Time); len(avoided) > 0 {
		text += "; its pods stay away from " + plural.Of(len(avoided), "node") + " that failed this job"
	}
	return text + "."
}

func (s *step) endMessage() string {
	c := s.status.AttemptStatus.CompletionStatus
	switch {
	case c.Type.Name == v1.Succeeded:
		return ""
	case c.Code == CodeStopped:
		return cmp.Or(c.Diagnostics, ReasonStopped)
	case c.Code == CodeInvalid, c.Code == CodeDependency:
		return c.Diagnostics
	case s.stopping():
		return fmt.Sprintf("The job was stopped while it waited for a retry; its last attempt ended: %s (code %d)%s.", rules.Words(c.Phrase), c.Code, because(c.Trigger))
	}
	return fmt.Sprintf("The job failed: %s (code %d)%s, after %s.", rules.Words(c.Phrase), c.Code, because(c.Trigger), plural.Of(s.status.RetryPolicyStatus.TotalRetriedCount, "retry"))
}

func because(t *v1.CompletionTrigger) string {
	if t == nil || t.TaskIndex == nil {
		return ""
	}
	return fmt.Sprintf(" because of task %s-%d", t.TaskRoleName, *t.TaskIndex)
}

func clock(t time.Time) string { return metav1.NewTime(t).UTC().Format(time.RFC3339) }
