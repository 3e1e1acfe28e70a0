package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// byName selects the last job with a Framework's name, or the job with a UID.
const byName = " FROM jobs WHERE framework = ? OR jobs.uid = ? ORDER BY submitted DESC, jobs.uid DESC LIMIT 1"

// Job implements Store.
func (d *database) Job(ctx context.Context, framework string) (*api.JobDetail, error) {
	out := &api.JobDetail{Attempts: []api.Attempt{}}
	var err error
	row := d.read.QueryRowContext(ctx, d.rebind("SELECT "+jobColumns+", (SELECT config FROM configs WHERE configs.uid = jobs.uid), cloned_from"+byName), framework, framework)
	var config sql.NullString
	var clonedFrom string
	out.Job, err = scanJob(row.Scan, &config, &clonedFrom)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("job %s: %w", framework, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	out.Config, out.ClonedFrom = config.String, v1.ReadClonedFrom(clonedFrom)
	if err := d.readAttempts(ctx, out); err != nil {
		return nil, err
	}
	return out, d.readTasks(ctx, out)
}

func (d *database) readAttempts(ctx context.Context, job *api.JobDetail) error {
	rows, err := d.read.QueryContext(ctx, d.rebind("SELECT id, started, run, completed, completion FROM attempts WHERE uid = ? ORDER BY id DESC"), job.UID)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	return each(rows, func() error {
		var (
			started        int64
			run, completed sql.NullInt64
			completion     sql.NullString
		)
		a := api.Attempt{Tasks: []api.TaskAttempt{}}
		if err := rows.Scan(&a.ID, &started, &run, &completed, &completion); err != nil {
			return err
		}
		a.Started, a.Run, a.Completed = instant(started), instantOf(run), instantOf(completed)
		a.Completion, err = decode[v1.FrameworkAttemptCompletionStatus](completion)
		job.Attempts = append(job.Attempts, a)
		return err
	})
}

// readTasks adds the tasks to all attempts of a job. The archive has the row of an attempt for each row of a task.
func (d *database) readTasks(ctx context.Context, job *api.JobDetail) error {
	at := map[int32]*api.Attempt{}
	for i := range job.Attempts {
		at[job.Attempts[i].ID] = &job.Attempts[i]
	}
	rows, err := d.read.QueryContext(ctx, d.rebind(`SELECT t.attempt, t.role_name, t.role, t.task, t.id, t.state, t.pod, t.pod_uid, t.node,
		t.started, t.run, t.completed, t.completion, l.uid IS NOT NULL
		FROM tasks t LEFT JOIN logs l ON l.uid = t.uid AND l.attempt = t.attempt AND l.role = t.role AND l.task = t.task AND l.task_attempt = t.id
		WHERE t.uid = ? ORDER BY t.attempt DESC, t.role, t.task, t.id`), job.UID)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	return each(rows, func() error {
		var (
			attempt        int32
			started        int64
			run, completed sql.NullInt64
			completion     sql.NullString
			t              api.TaskAttempt
		)
		err := rows.Scan(&attempt, &t.Role, &t.RoleObject, &t.Index, &t.ID, &t.State, &t.Pod, &t.PodUID, &t.Node, &started, &run, &completed, &completion, &t.HasLog)
		if err != nil {
			return err
		}
		t.Started, t.Run, t.Completed = instant(started), instantOf(run), instantOf(completed)
		t.Completion, err = decode[v1.TaskAttemptCompletionStatus](completion)
		if a := at[attempt]; a != nil {
			a.Tasks = append(a.Tasks, t)
		}
		return err
	})
}

// incarnation returns a job's Framework name and UID, and the period from its submission until the submission of the next job with the same name.
func (d *database) incarnation(ctx context.Context, framework string) (name, uid string, from, to int64, err error) {
	err = d.read.QueryRowContext(ctx, d.rebind("SELECT framework, uid, submitted"+byName), framework, framework).Scan(&name, &uid, &from)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", 0, 0, fmt.Errorf("job %s: %w", framework, ErrNotFound)
	}
	var next sql.NullInt64
	if err == nil {
		err = d.read.QueryRowContext(ctx, d.rebind("SELECT MIN(submitted) FROM jobs WHERE framework = ? AND submitted > ?"), name, from).Scan(&next)
	}
	if err != nil {
		return "", "", 0, 0, fmt.Errorf("read the archive: %w", err)
	}
	if to = math.MaxInt64; next.Valid {
		to = next.Int64
	}
	return name, uid, from, to, nil
}

// Events implements Store. It also returns events of a job that isn't in the archive yet, because the events of a running job are stored before
// its row.
func (d *database) Events(ctx context.Context, framework string) ([]api.Event, error) {
	name, _, from, to, unknown := d.incarnation(ctx, framework)
	if errors.Is(unknown, ErrNotFound) {
		name, from, to = framework, math.MinInt64, math.MaxInt64
	} else if unknown != nil {
		return nil, unknown
	}
	rows, err := d.read.QueryContext(ctx, d.rebind(`SELECT uid, time, type, reason, message, object, count, source
		FROM events WHERE framework = ? AND time >= ? AND time < ? ORDER BY time, uid`), name, from, to)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	out := []api.Event{}
	err = each(rows, func() error {
		var e api.Event
		var time int64
		err := rows.Scan(&e.UID, &time, &e.Type, &e.Reason, &e.Message, &e.Object, &e.Count, &e.Source)
		e.Time = instant(time)
		out = append(out, e)
		return err
	})
	if err == nil && len(out) == 0 {
		return out, unknown
	}
	return out, err
}

// owner returns the UID of the job to which a log belongs.
func (d *database) owner(ctx context.Context, key api.LogKey) (string, error) {
	if key.UID != "" {
		return key.UID, nil
	}
	_, uid, _, _, err := d.incarnation(ctx, key.Framework)
	return uid, err
}

// SaveLog implements Store.
func (d *database) SaveLog(ctx context.Context, key api.LogKey, data []byte, truncated bool) error {
	uid, err := d.owner(ctx, key)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("pack a log: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("pack a log: %w", err)
	}
	columns := []string{"uid", "role", "task", "attempt", "task_attempt", "truncated", "stored", "data"}
	// A log that was read later may be longer. If the pod was gone by then, the later log is empty and doesn't replace the earlier log.
	u := &upsert{"logs", columns, replace(columns[:5], columns, "length(excluded.data) >= length(logs.data)")}
	return d.write(ctx, u.rows([][]any{{uid, key.Role, key.Task, key.Attempt, key.TaskAttempt, truncated, d.now().UnixMicro(), packed.Bytes()}})...)
}

// Log implements Store.
func (d *database) Log(ctx context.Context, key api.LogKey) (data []byte, truncated bool, err error) {
	uid, err := d.owner(ctx, key)
	if err != nil {
		return nil, false, err
	}
	var packed []byte
	err = d.read.QueryRowContext(ctx, d.rebind("SELECT data, truncated FROM logs WHERE uid = ? AND attempt = ? AND role = ? AND task = ? AND task_attempt = ?"),
		uid, key.Attempt, key.Role, key.Task, key.TaskAttempt).Scan(&packed, &truncated)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, fmt.Errorf("log of %s %d, attempt %d, in attempt %d of job %s: %w", key.Role, key.Task, key.TaskAttempt, key.Attempt, key.Framework, ErrNotFound)
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the archive: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, false, fmt.Errorf("unpack a log: %w", err)
	}
	if data, err = io.ReadAll(r); err != nil {
		return nil, false, fmt.Errorf("unpack a log: %w", err)
	}
	return data, truncated, nil
}
