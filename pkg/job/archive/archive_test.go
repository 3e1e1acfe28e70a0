package archive_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/postgrestest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		writeUntilKilled(dir)
	}
	code := m.Run()
	postgrestest.Stop()
	os.Exit(code)
}

// epoch is when the first job of the tests is submitted.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// place is a database for tests. It may be open or closed.
type place struct {
	archive.Options
	driver, dsn string // for looks past the store
}

func (p place) open(t testing.TB) archive.Store {
	t.Helper()
	s, err := archive.Open(t.Context(), p.Options)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // it may be closed already
	return s
}

func sqlitePlace(t testing.TB) place {
	path := filepath.Join(t.TempDir(), "archive.db")
	return place{archive.Options{Path: path}, "sqlite", path}
}

func postgresPlace(t testing.TB) place {
	dsn := postgrestest.DSN(t)
	return place{archive.Options{DSN: dsn}, "pgx", dsn}
}

// onBoth runs a test twice, with an empty archive in SQLite and in PostgreSQL.
func onBoth(t *testing.T, f func(t *testing.T, p place)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { f(t, sqlitePlace(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { f(t, postgresPlace(t)) })
}

// content returns all rows of all tables as text.
func (p place) content(t *testing.T) []string {
	t.Helper()
	db, err := sql.Open(p.driver, p.dsn)
	require.NoError(t, err)
	defer db.Close()
	var out []string
	for _, table := range []string{"jobs", "configs", "attempts", "tasks", "events", "logs", "code", "code_chunks", "gpu_holds", "gpu_hours", "gpu_folded", "code_owners", "audit"} {
		rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
		require.NoError(t, err)
		columns, err := rows.Columns()
		require.NoError(t, err)
		for rows.Next() {
			values, pointers := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				pointers[i] = &values[i]
			}
			require.NoError(t, rows.Scan(pointers...))
			out = append(out, table+fmt.Sprintf(" %v", values))
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	slices.Sort(out)
	return out
}

// at returns the time that is a number of seconds after epoch.
func at(seconds int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
}

func ptr[T any](v T) *T { return &v }

// job returns a Framework with one role that the controller hasn't seen yet. It was submitted n seconds after epoch.
func job(user, name string, n int, tasks int32) *v1.Framework {
	f := &v1.Framework{}
	f.Name, f.UID = v1.ObjectName(user, name), types.UID(fmt.Sprintf("uid-%s-%s-%06d", user, name, n))
	f.CreationTimestamp = at(n)
	f.Labels = map[string]string{v1.LabelUser: user, v1.LabelVC: "default"}
	f.Annotations = map[string]string{
		v1.AnnotationJobName: name, v1.AnnotationGPUs: "8", v1.AnnotationPriority: "prod", v1.AnnotationConfig: "name: " + name + "\n",
	}
	role := v1.TaskRole{Name: "worker", TaskNumber: tasks}
	role.Task.Pod.Annotations = map[string]string{v1.AnnotationTaskRole: "Worker_"}
	role.Task.Pod.Spec.Containers = []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "hunter2-in-the-pod"}}}}
	f.Spec = v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{role}}
	return f
}

// run returns a copy of a job in the given attempt, with all tasks running.
func run(f *v1.Framework, attempt int32, second int) *v1.Framework {
	f = f.DeepCopy()
	roles := &v1.TaskRoleStatus{Name: "worker"}
	for i := range f.Spec.TaskRoles[0].TaskNumber {
		roles.TaskStatuses = append(roles.TaskStatuses, &v1.TaskStatus{
			Index: i, State: v1.AttemptRunning, StartTime: at(second),
			AttemptStatus: v1.TaskAttemptStatus{
				StartTime: at(second), RunTime: ptr(at(second + 1)), PodName: v1.PodName(f.Name, "worker", i),
				PodUID: ptr(fmt.Sprintf("pod-%d-%d", attempt, i)), PodNodeName: ptr("node-1"),
			},
		})
	}
	f.Status = &v1.FrameworkStatus{
		State: v1.AttemptRunning, StartTime: f.CreationTimestamp, RunTime: ptr(at(second + 1)),
		RetryPolicyStatus: v1.RetryPolicyStatus{TotalRetriedCount: attempt},
		AttemptStatus: v1.FrameworkAttemptStatus{
			ID: attempt, StartTime: at(second), RunTime: ptr(at(second + 1)), TaskRoleStatuses: []*v1.TaskRoleStatus{roles},
		},
	}
	return f
}

// end returns a copy of a job whose attempt has completed. Without retry, the job has completed, too.
func end(f *v1.Framework, code int32, second int, retry bool) *v1.Framework {
	f = f.DeepCopy()
	s := &f.Status.AttemptStatus
	completion := &v1.CompletionStatus{Code: code, Phrase: "Ended", Type: v1.CompletionType{Name: v1.Succeeded}, Diagnostics: "because\x00 \xff"}
	if code != 0 {
		completion.Type = v1.CompletionType{Name: v1.Failed, Attributes: []v1.CompletionTypeAttribute{v1.Transient}}
	}
	s.CompletionTime = ptr(at(second))
	s.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{
		CompletionStatus: completion, Trigger: &v1.CompletionTrigger{Message: "task 0", TaskRoleName: "worker", TaskIndex: ptr(int32(0))},
	}
	for _, task := range s.TaskRoleStatuses[0].TaskStatuses {
		task.State, task.CompletionTime = v1.Completed, ptr(at(second))
		task.AttemptStatus.CompletionTime = ptr(at(second))
		task.AttemptStatus.CompletionStatus = &v1.TaskAttemptCompletionStatus{CompletionStatus: completion, Pod: &v1.PodCompletionStatus{Reason: "Error"}}
	}
	f.Status.State = v1.AttemptCompleted
	if !retry {
		f.Status.State, f.Status.CompletionTime = v1.Completed, ptr(at(second))
	}
	return f
}

func TestAJobIsReadAsItWasSaved(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		f := job("alice", "train", 0, 2)
		first := end(run(f, 0, 10), 137, 20, true)
		require.NoError(t, s.SaveAttempt(ctx, first))
		key := api.LogKey{Framework: f.Name, Role: "worker", Task: 1}
		require.NoError(t, s.SaveLog(ctx, key, []byte("line\n\xff\x00"), true))
		last := end(run(f, 1, 30), 0, 40, false)
		require.NoError(t, s.SaveJob(ctx, last))

		d, err := s.Job(ctx, f.Name)
		require.NoError(t, err)
		assert.Equal(t, api.Job{
			Framework: f.Name, UID: string(f.UID), User: "alice", Name: "train", VirtualCluster: "default", Priority: "prod", State: api.Succeeded, Phrase: "Ended", Code: ptr(int32(0)),
			GPUs: 8, Tasks: 2, Retries: 1, Submitted: epoch, Started: ptr(at(31).UTC()), Completed: ptr(at(40).UTC()),
			FrameworkState: "Completed", ExecutionType: "Start", Roles: 1, AccountableRetries: 0, Tags: nil,
		}, d.Job)
		assert.Equal(t, "name: train\n", d.Config)
		require.Len(t, d.Attempts, 2)
		assert.Equal(t, []int32{1, 0}, []int32{d.Attempts[0].ID, d.Attempts[1].ID}, "the latest attempt is the first")
		assert.Equal(t, int32(137), d.Attempts[1].Completion.Code)
		assert.Equal(t, "worker", d.Attempts[1].Completion.Trigger.TaskRoleName)
		tasks := d.Attempts[1].Tasks
		require.Len(t, tasks, 2)
		assert.Equal(t, []bool{false, true}, []bool{tasks[0].HasLog, tasks[1].HasLog})
		task := tasks[1]
		assert.Equal(t, "Error", task.Completion.Pod.Reason)
		assert.Equal(t, "because\x00 \uFFFD", task.Completion.Diagnostics)
		task.Completion = nil
		assert.Equal(t, api.TaskAttempt{
			Role: "Worker_", RoleObject: "worker", Index: 1, State: v1.Completed, Pod: v1.PodName(f.Name, "worker", 1), PodUID: "pod-0-1", Node: "node-1",
			Started: at(10).UTC(), Run: ptr(at(11).UTC()), Completed: ptr(at(20).UTC()), HasLog: true,
		}, task)

		log, truncated, err := s.Log(ctx, key)
		require.NoError(t, err)
		assert.Equal(t, "line\n\xff\x00", string(log))
		assert.True(t, truncated)
	})
}

func TestWhatIsNotThereIsSaidSo(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		_, err := s.Job(ctx, "nobody")
		require.ErrorIs(t, err, archive.ErrNotFound)
		_, err = s.Events(ctx, "nobody")
		require.ErrorIs(t, err, archive.ErrNotFound)
		_, _, err = s.Log(ctx, api.LogKey{Framework: "nobody"})
		require.ErrorIs(t, err, archive.ErrNotFound)
		require.ErrorIs(t, s.SaveLog(ctx, api.LogKey{Framework: "nobody"}, nil, false), archive.ErrNotFound, "a log without a job would never be found")
		require.NoError(t, s.SaveJob(ctx, job("alice", "train", 0, 1)))
		_, _, err = s.Log(ctx, api.LogKey{Framework: v1.ObjectName("alice", "train"), Role: "worker"})
		require.ErrorIs(t, err, archive.ErrNotFound)
		_, _, err = s.Code(ctx, strings.Repeat("0", 64))
		require.ErrorIs(t, err, archive.ErrNotFound)
	})
}

func TestALogMayComeBeforeItsJob(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx, f := p.open(t), t.Context(), job("alice", "train", 0, 1)
		require.NoError(t, s.SaveLog(ctx, api.LogKey{Framework: f.Name, UID: string(f.UID), Role: "worker"}, []byte("said"), false))
		require.NoError(t, s.SaveJob(ctx, f))
		data, _, err := s.Log(ctx, api.LogKey{Framework: f.Name, Role: "worker"})
		require.NoError(t, err)
		assert.Equal(t, "said", string(data))
	})
}

func TestARepeatedWriteChangesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		f := job("alice", "train", 0, 3)
		running := run(f, 0, 10)
		event := api.Event{UID: "e1", Time: epoch.Add(time.Minute), Type: "Normal", Reason: "Pulled", Object: "Pod/x", Count: 2}
		write := func() {
			require.NoError(t, s.SaveJob(t.Context(), running))
			require.NoError(t, s.SaveTaskAttempts(t.Context(), running, []archive.TaskAttempt{{Role: "worker", Status: *running.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]}}))
			require.NoError(t, s.SaveEvents(t.Context(), f.Name, []api.Event{event, event}))
			require.NoError(t, s.PutCode(t.Context(), "ann", sum("code"), 4, strings.NewReader("code")))
		}
		write()
		before := p.content(t)
		write()
		now := p.content(t)
		// The time of the last request for the code must have changed.
		assert.Equal(t, without(before, "code "), without(now, "code "))
		assert.Len(t, now, len(before))
	})
}

func without(lines []string, prefix string) []string {
	var out []string
	for _, l := range lines {
		if !strings.HasPrefix(l, prefix) {
			out = append(out, l)
		}
	}
	return out
}

func TestALateWriteDoesNotUndoARetry(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		f := job("alice", "train", 0, 1)
		require.NoError(t, s.SaveJob(ctx, run(f, 1, 30)))
		require.NoError(t, s.SaveJob(ctx, end(run(f, 0, 10), 137, 20, false)))
		d, err := s.Job(ctx, f.Name)
		require.NoError(t, err)
		assert.Equal(t, api.Running, d.State)
		assert.Equal(t, int32(1), d.Retries)
		assert.Nil(t, d.Completed)
	})
}

func TestALateWriteDoesNotUndoTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		f := run(job("alice", "train", 0, 2), 0, 10)
		require.NoError(t, s.SaveJob(t.Context(), end(f, 1, 20, false)))
		before := p.content(t)
		require.NoError(t, s.SaveJob(t.Context(), f))
		assert.Equal(t, before, p.content(t))
	})
}

func TestTaskAttemptsOfOneAttemptAreKept(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		f := run(job("alice", "train", 0, 2), 0, 10)
		failed := end(f, 1, 20, true).Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[1]
		require.NoError(t, s.SaveTaskAttempts(t.Context(), f, []archive.TaskAttempt{{Role: "worker", Status: *failed}}))
		second := f.DeepCopy()
		second.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[1].AttemptStatus = v1.TaskAttemptStatus{ID: 1, StartTime: at(21), PodUID: ptr("again")}
		require.NoError(t, s.SaveJob(t.Context(), second))
		d, err := s.Job(t.Context(), f.Name)
		require.NoError(t, err)
		require.Len(t, d.Attempts, 1)
		var got []string
		for _, task := range d.Attempts[0].Tasks {
			got = append(got, fmt.Sprint(task.Index, task.ID, task.PodUID))
		}
		assert.Equal(t, []string{"0 0pod-0-0", "1 0pod-0-1", "1 1again"}, got)
	})
}

func TestATaskThatIsAddedAgainTakesThePlaceOfTheOneThatWasTakenAway(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		f := run(job("alice", "train", 0, 1), 0, 10)
		gone := end(f, -230, 20, true)
		require.NoError(t, s.SaveTaskAttempts(t.Context(), f, []archive.TaskAttempt{{Role: "worker", Status: *gone.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]}}))
		require.NoError(t, s.SaveJob(t.Context(), run(f, 0, 30)))
		d, err := s.Job(t.Context(), f.Name)
		require.NoError(t, err)
		require.Len(t, d.Attempts[0].Tasks, 1)
		assert.Nil(t, d.Attempts[0].Tasks[0].Completed)
		assert.Equal(t, at(30).UTC(), d.Attempts[0].Tasks[0].Started)
	})
}

func TestJobsOfOneNameAreToldApart(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		old, now := job("alice", "train", 0, 1), job("alice", "train", 1000, 1)
		key := api.LogKey{Framework: old.Name, Role: "worker"}
		event := func(uid string, second int) api.Event {
			return api.Event{UID: uid, Time: at(second).Time, Object: "Pod/x"}
		}
		require.NoError(t, s.SaveJob(ctx, end(run(old, 0, 10), 1, 20, false)))
		require.NoError(t, s.SaveLog(ctx, key, []byte("old"), false))
		require.NoError(t, s.SaveEvents(ctx, old.Name, []api.Event{event("a", 10), event("b", 1010)}))
		require.NoError(t, s.SaveJob(ctx, run(now, 0, 1010)))
		require.NoError(t, s.SaveLog(ctx, key, []byte("new"), false))
		for _, c := range []struct{ asked, uid, log, event string }{
			{old.Name, string(now.UID), "new", "b"}, {string(now.UID), string(now.UID), "new", "b"}, {string(old.UID), string(old.UID), "old", "a"},
		} {
			d, err := s.Job(ctx, c.asked)
			require.NoError(t, err)
			assert.Equal(t, c.uid, d.UID)
			log, _, err := s.Log(ctx, api.LogKey{Framework: c.asked, Role: "worker"})
			require.NoError(t, err)
			assert.Equal(t, c.log, string(log))
			events, err := s.Events(ctx, c.asked)
			require.NoError(t, err)
			require.Len(t, events, 1)
			assert.Equal(t, c.event, events[0].UID)
		}
	})
}

func TestEventsOfAJobThatRunsAreToldBeforeItIsArchived(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		f := job("alice", "train", 0, 1)
		require.NoError(t, s.SaveEvents(t.Context(), f.Name, []api.Event{{UID: "e", Time: at(10).UTC()}}))
		got, err := s.Events(t.Context(), f.Name)
		require.NoError(t, err)
		assert.Len(t, got, 1)
		require.NoError(t, s.SaveJob(t.Context(), job("alice", "other", 0, 1)))
		got, err = s.Events(t.Context(), v1.ObjectName("alice", "other"))
		require.NoError(t, err)
		assert.Empty(t, got, "a job may have none")
	})
}

func TestEventsAreKeptAsTheyWereLast(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		f := job("alice", "train", 0, 1)
		require.NoError(t, s.SaveJob(t.Context(), f))
		e := api.Event{UID: "e", Time: at(10).UTC(), Type: "Warning", Reason: "Failed", Message: "no image\x00", Object: "Pod/x", Count: 1, Source: "kubelet"}
		later := e
		later.Time, later.Count = at(20).UTC(), 3
		require.NoError(t, s.SaveEvents(t.Context(), f.Name, []api.Event{later}))
		require.NoError(t, s.SaveEvents(t.Context(), f.Name, []api.Event{e}))
		require.NoError(t, s.SaveEvents(t.Context(), f.Name, nil))
		got, err := s.Events(t.Context(), f.Name)
		require.NoError(t, err)
		later.Message = "no image"
		assert.Equal(t, []api.Event{later}, got)
	})
}

func TestNoSecretOfAPodIsStored(t *testing.T) {
	p := sqlitePlace(t)
	s := p.open(t)
	require.NoError(t, s.SaveJob(t.Context(), end(run(job("alice", "train", 0, 1), 0, 10), 1, 20, false)))
	require.NoError(t, s.Close())
	files, err := filepath.Glob(p.Path + "*")
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(data), "hunter2")
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, "others may read %s", file)
	}
}

func TestAnArchiveOfANewerVersionIsLeftAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		require.NoError(t, p.open(t).Close())
		db, err := sql.Open(p.driver, p.dsn)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)")
		require.NoError(t, err)
		_, err = archive.Open(t.Context(), p.Options)
		require.ErrorContains(t, err, "the archive has version 99, but this program supports only")
	})
}

func TestADSNThatCannotBeReadIsNotShown(t *testing.T) {
	_, err := archive.Open(t.Context(), archive.Options{DSN: "postgres://user:hunter2@host:badport/db"})
	require.ErrorContains(t, err, "is not valid")
	assert.NotContains(t, err.Error(), "hunter2")
	_, err = archive.Open(t.Context(), archive.Options{DSN: "postgres://user:hunter2@127.0.0.1:1/db?connect_timeout=1"})
	require.ErrorContains(t, err, "127.0.0.1")
	assert.NotContains(t, err.Error(), "hunter2")
}
