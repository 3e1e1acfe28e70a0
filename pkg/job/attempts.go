package job

import (
	"cmp"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/report"
)

// TasksIn returns the tasks of an attempt of the job, each with its last attempt. ok is false if the job has no such attempt.
func (d *Detail) TasksIn(attempt int32) (list []Task, ok bool) {
	at := d.indexOf(attempt)
	switch {
	case at < 0:
		return nil, false
	case at == 0:
		return d.Tasks, true
	}
	return lastTasks(d.Attempts[at].Tasks), true
}

// TaskAttempts returns all attempts of a task within an attempt of the job, latest first. role is the user's name of the role, or its name in the
// Framework.
func (d *Detail) TaskAttempts(attempt int32, role string, index int32) []Task {
	at := d.indexOf(attempt)
	if at < 0 {
		return nil
	}
	is := func(t *api.TaskAttempt) bool {
		return t.Index == index && (t.Role == role || t.RoleObject == role || d.job != nil && t.RoleObject == d.job.RoleObject(role))
	}
	known := map[int32]api.TaskAttempt{}
	all := d.Attempts[at].Tasks
	if at == 0 {
		all = slices.Concat(d.earlier, all)
	}
	for i := range all {
		if is(&all[i]) {
			known[all[i].ID] = all[i]
		}
	}
	var out []Task
	for _, a := range known {
		out = append(out, pastTask(a))
	}
	slices.SortFunc(out, func(a, b Task) int { return cmp.Compare(b.ID, a.ID) })
	if len(out) == 0 {
		return nil
	}
	out[0] = sum(out)
	if at > 0 {
		return out
	}
	for i := range d.Tasks {
		if t := &d.Tasks[i]; is(&t.TaskAttempt) && t.ID == out[0].ID {
			out[0] = *t // the live status has more details than the history
		}
	}
	return out
}

func (d *Detail) indexOf(attempt int32) int {
	return slices.IndexFunc(d.Attempts, func(a api.Attempt) bool { return a.ID == attempt })
}

// Report returns the report that the job runtime wrote when the task finished. ok is false if there is no report.
func (t *Task) Report() (r report.Report, ok bool) { return exitReport(&t.TaskAttempt) }

// Culprit returns the task whose end completed an attempt of the job. It returns nil if none of the tasks completed the attempt.
func Culprit(c *v1.FrameworkAttemptCompletionStatus, tasks []Task) *Task {
	if c == nil || c.Trigger == nil || c.Trigger.TaskIndex == nil {
		return nil
	}
	for i := range tasks {
		if t := &tasks[i]; (t.RoleObject == c.Trigger.TaskRoleName || t.Role == c.Trigger.TaskRoleName) && t.Index == *c.Trigger.TaskIndex {
			return t
		}
	}
	return nil
}

// lastTasks returns the last attempt of each task.
func lastTasks(all []api.TaskAttempt) []Task {
	type key struct {
		role  string
		index int32
	}
	at := map[key]int{}
	var each [][]Task
	for i := range all {
		k := key{all[i].RoleObject, all[i].Index}
		n, known := at[k]
		if !known {
			n = len(each)
			at[k] = n
			each = append(each, nil)
		}
		each[n] = append(each[n], pastTask(all[i]))
	}
	var out []Task
	for _, list := range each {
		slices.SortFunc(list, func(a, b Task) int { return cmp.Compare(b.ID, a.ID) })
		out = append(out, sum(list))
	}
	return out
}

// pastTask converts an attempt of a task from the history to a Task.
func pastTask(a api.TaskAttempt) Task {
	t := Task{TaskAttempt: a, Retries: a.ID, Phase: Deleted, Begun: a.Started, Ran: a.Run, Ended: a.Completed}
	if code, ok := t.Code(); ok {
		t.Phase = EndPhase(code)
	}
	return t
}

// sum returns the last attempt of a task, with the fields that describe all attempts of the task. attempts begins with the latest.
func sum(attempts []Task) Task {
	out := attempts[0]
	for i := range attempts {
		t := &attempts[i]
		out.Begun = earlier(out.Begun, t.Started)
		if t.Run != nil {
			out.Ran = t.Run // of the first that ran
		}
		if i > 0 && accountable(t) {
			out.Accountable++
		}
	}
	return out
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// accountable reports whether the end of an attempt counts as a retry of its task.
func accountable(t *Task) bool {
	c := t.Completion
	return c != nil && c.CompletionStatus != nil && !slices.Contains(c.Type.Attributes, v1.Transient)
}

// TaskOfPod finds the task attempt that ran in a pod, within an attempt of the job. It returns nil if it finds no such task. It searches the tasks
// only once, because a job may have thousands of tasks and the UID may be invalid.
func (d *Detail) TaskOfPod(attempt int32, uid string) *Task {
	at := d.indexOf(attempt)
	if at < 0 || uid == "" {
		return nil
	}
	found := ofPod(d.Attempts[at].Tasks, uid)
	if at == 0 && found == nil {
		found = ofPod(d.earlier, uid)
	}
	if found == nil {
		return nil
	}
	all := d.TaskAttempts(attempt, found.RoleObject, found.Index)
	if i := slices.IndexFunc(all, func(t Task) bool { return t.PodUID == uid }); i >= 0 {
		return &all[i]
	}
	return nil
}

func ofPod(all []api.TaskAttempt, uid string) *api.TaskAttempt {
	if i := slices.IndexFunc(all, func(a api.TaskAttempt) bool { return a.PodUID == uid }); i >= 0 {
		return &all[i]
	}
	return nil
}
