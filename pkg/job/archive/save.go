package archive

import (
	"cmp"
	"context"
	"strings"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// A row that records the job's end isn't replaced with a row without an end. A replica that no longer leads may write the job's state of a minute
// ago after the end was recorded.

func jobRow() *upsert {
	columns := []string{
		"uid", "framework", "user_name", "name", "vc", "priority", "state", "phrase", "code", "gpus", "tasks", "retries",
		"submitted", "started", "completed", "keywords", "code_sha256",
		"tags", "framework_state", "execution_type", "roles", "accountable_retries", "cloned_from",
	}
	return &upsert{"jobs", columns, replace(columns[:1], columns,
		"excluded.retries >= jobs.retries AND (jobs.completed IS NULL OR excluded.completed IS NOT NULL)")}
}

func configRow() *upsert {
	return &upsert{"configs", []string{"uid", "config"}, "(uid) DO NOTHING"}
}

func attemptRow() *upsert {
	columns := []string{"uid", "id", "started", "run", "completed", "completion"}
	return &upsert{"attempts", columns, replace(columns[:2], columns, "attempts.completed IS NULL OR excluded.completed IS NOT NULL")}
}

// taskRow returns the upsert for attempts of tasks. It doesn't write unchanged rows, because few tasks of a large job change at a time. If a task
// was removed and added again, its attempts are counted from the start; the row of the later attempt with the same number is kept.
func taskRow() *upsert {
	columns := []string{
		"uid", "attempt", "role", "task", "id", "role_name", "state", "pod", "pod_uid", "node", "started", "run", "completed", "completion",
	}
	return &upsert{"tasks", columns, replace(columns[:5], columns, `excluded.started > tasks.started
		OR excluded.started = tasks.started AND (tasks.completed IS NULL OR excluded.completed IS NOT NULL)
		AND (excluded.state <> tasks.state OR excluded.pod_uid <> tasks.pod_uid OR excluded.node <> tasks.node
		OR excluded.run IS NOT NULL AND tasks.run IS NULL OR excluded.completed IS NOT NULL AND tasks.completed IS NULL
		OR excluded.completion IS NOT NULL AND tasks.completion IS NULL)`)}
}

func eventRow() *upsert {
	columns := []string{"uid", "framework", "time", "type", "reason", "message", "object", "count", "source"}
	return &upsert{"events", columns, replace(columns[:1], columns, "excluded.time > events.time OR excluded.time = events.time AND excluded.count > events.count")}
}

// SaveJob implements Store.
func (d *database) SaveJob(ctx context.Context, f *v1.Framework) error {
	statements, err := jobStatements(f)
	if err != nil {
		return err
	}
	return d.write(ctx, append(statements, d.holdStatements(f, statusesOf(f))...)...)
}

// SaveAttempt implements Store.
func (d *database) SaveAttempt(ctx context.Context, f *v1.Framework) error { return d.SaveJob(ctx, f) }

// SaveTaskAttempts implements Store.
func (d *database) SaveTaskAttempts(ctx context.Context, f *v1.Framework, tasks []TaskAttempt) error {
	// SaveTaskAttempts writes only the job's own rows and these tasks, because the job's other tasks haven't changed.
	job, err := headStatements(f)
	if err != nil {
		return err
	}
	names := roleNames(f)
	var rows [][]any
	statuses := make([]*v1.TaskStatus, 0, len(tasks))
	for i := range tasks {
		statuses = append(statuses, &tasks[i].Status)
		row, err := taskOf(f, tasks[i].Role, names, &tasks[i].Status)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	return d.write(ctx, append(append(job, taskRow().rows(lastOfEach(rows, 5))...), d.holdStatements(f, statuses)...)...)
}

// jobStatements returns the statements that write the job's row, its latest attempt and the latest attempts of its tasks.
func jobStatements(f *v1.Framework) ([]statement, error) {
	out, err := headStatements(f)
	if err != nil || f.Status == nil {
		return out, err
	}
	names := roleNames(f)
	var rows [][]any
	for _, role := range f.Status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			row, err := taskOf(f, role.Name, names, task)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return append(out, taskRow().rows(lastOfEach(rows, 5))...), nil
}

// headStatements returns the statements that write the rows of a job except its tasks.
func headStatements(f *v1.Framework) ([]statement, error) {
	j := api.Summary(f)
	var code any
	if j.Code != nil {
		code = int64(*j.Code)
	}
	keywords := strings.ToLower(strings.Join([]string{j.User, j.Name, j.VirtualCluster}, "\n"))
	out := jobRow().rows([][]any{{
		j.UID, j.Framework, text(j.User), text(j.Name), text(j.VirtualCluster), text(j.Priority), j.State, text(j.Phrase), code,
		j.GPUs, j.Tasks, j.Retries, j.Submitted.UnixMicro(), micros(j.Started), micros(j.Completed), text(keywords), text(f.Annotations[v1.AnnotationCode]),
		tagsColumn(j.Tags), text(j.FrameworkState), text(j.ExecutionType), j.Roles, j.AccountableRetries, clonedFromColumn(f),
	}})
	out = append(out, configRow().rows([][]any{{j.UID, text(f.Annotations[v1.AnnotationConfig])}})...)
	if f.Status == nil {
		return out, nil
	}
	a := &f.Status.AttemptStatus
	completion, err := encode(a.CompletionStatus)
	if err != nil {
		return nil, err
	}
	return append(out, attemptRow().rows([][]any{{j.UID, a.ID, begin(a.StartTime), microsOf(a.RunTime), microsOf(a.CompletionTime), completion}})...), nil
}

// clonedFromColumn returns the column value for the original of a cloned job. It is empty if the annotation is missing or invalid.
func clonedFromColumn(f *v1.Framework) string {
	column := f.Annotations[v1.AnnotationClonedFrom]
	if v1.ReadClonedFrom(column) == nil {
		return ""
	}
	return text(column)
}

// taskOf returns the row for the latest attempt of a task.
func taskOf(f *v1.Framework, role string, names map[string]string, t *v1.TaskStatus) ([]any, error) {
	a := &t.AttemptStatus
	completion, err := encode(a.CompletionStatus)
	if err != nil {
		return nil, err
	}
	return []any{
		string(f.UID), f.Status.AttemptStatus.ID, role, t.Index, a.ID, text(cmp.Or(names[role], role)), string(t.State), text(a.PodName), deref(a.PodUID), deref(a.PodNodeName),
		begin(a.StartTime), microsOf(a.RunTime), microsOf(a.CompletionTime), completion,
	}, nil
}

// roleNames returns the users' spellings of the roles, by the names that the Framework uses.
func roleNames(f *v1.Framework) map[string]string {
	out := map[string]string{}
	for i := range f.Spec.TaskRoles {
		r := &f.Spec.TaskRoles[i]
		out[r.Name] = r.Task.Pod.Annotations[v1.AnnotationTaskRole]
	}
	return out
}

// lastOfEach keeps only the last row for each key, because a statement of PostgreSQL can't write two rows with the same key.
func lastOfEach(rows [][]any, key int) [][]any {
	seen := make(map[[5]any]int, len(rows))
	out := rows[:0:0]
	for _, row := range rows {
		var k [5]any
		copy(k[:], row[:key])
		if at, ok := seen[k]; ok {
			out[at] = row
			continue
		}
		seen[k] = len(out)
		out = append(out, row)
	}
	return out
}

// SaveEvents implements Store.
func (d *database) SaveEvents(ctx context.Context, framework string, events []api.Event) error {
	u := eventRow()
	rows := make([][]any, 0, len(events))
	for i := range events {
		e := &events[i]
		rows = append(rows, []any{e.UID, framework, e.Time.UnixMicro(), text(e.Type), text(e.Reason), text(e.Message), text(e.Object), e.Count, text(e.Source)})
	}
	if len(rows) == 0 {
		return nil
	}
	return d.write(ctx, u.rows(lastOfEach(rows, 1))...)
}
