package reader

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/postgrestest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/openpai/history"
	"github.com/openpai/paictl/pkg/openpai/history/historytest"
)

func TestMain(m *testing.M) {
	if end, ok := roles[filepath.Base(os.Args[0])]; ok {
		os.Exit(end())
	}
	code := m.Run()
	postgrestest.Stop()
	os.Exit(code)
}

var (
	now   = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func clock() time.Time { return now }

// place returns an empty history that can receive jobs.
func place(t *testing.T, o archive.Options) archive.Store {
	t.Helper()
	o.Now = clock
	if o.Path == "" && o.DSN == "" {
		o.Path = filepath.Join(t.TempDir(), "archive.db")
	}
	s, err := archive.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func source(t *testing.T, d *historytest.Database) *Source {
	t.Helper()
	s, err := Open(t.Context(), d.Address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// into returns Options that add jobs to a history.
func into(to archive.Store) Options {
	return Options{Now: clock, Known: all(false), Store: func(ctx context.Context, part io.Reader, size int64) error {
		_, err := to.Import(ctx, part, size, false)
		return err
	}}
}

// all returns a function that returns the value known for each job.
func all(known bool) func(context.Context, []string) ([]bool, error) {
	return func(_ context.Context, uids []string) ([]bool, error) {
		return slices.Repeat([]bool{known}, len(uids)), nil
	}
}

func take(t *testing.T, d *historytest.Database, o Options) *history.Report {
	t.Helper()
	r, err := source(t, d).Read(t.Context(), o)
	require.NoError(t, err)
	return r
}

func TestJobsComeWithAllThatTheHistoryKeeps(t *testing.T) {
	d := historytest.New(t)
	j := historytest.Job{User: "alice", Name: "train_1", VC: "vision", Priority: "prod", Role: "Big_Worker", Submitted: epoch, Tasks: 2, GPUs: 4, Code: 137, Attempt: 2, TaskAttempt: 1}
	j.Config = "protocolVersion: 2\nname: train_1\ntype: job\n\"secrets\": {key: QUOTED-SECRET}\ntaskRoles: {Big_Worker: {instances: 2, commands: [x]}}\n"
	d.Add(j)
	d.AddTask(j, 2, 1, 0, 1)
	d.AddTask(j, 0, 0, 0, 1)
	d.AddEvent(j, "FailedScheduling", epoch.Add(time.Minute))
	d.AddTag(j, "paper")
	d.AddTag(j, "best")

	for name, o := range map[string]archive.Options{"SQLite": {}, "PostgreSQL": {DSN: postgrestest.DSN(t), Scratch: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			to := place(t, o)
			r := take(t, d, into(to))
			assert.Equal(t, 1, r.Jobs)
			assert.Empty(t, r.LeftOut)

			got, err := to.Job(t.Context(), v1.ObjectName("alice", "train_1"))
			require.NoError(t, err)
			assert.Equal(t, j.UID(), got.UID)
			assert.Equal(t, []any{"alice", "train_1", "vision", "prod", api.Failed, int32(137), 8, 2, int32(2)}, []any{got.User, got.Name, got.VirtualCluster, got.Priority, got.State, *got.Code, got.GPUs, got.Tasks, got.Retries})
			assert.Equal(t, epoch, got.Submitted)
			assert.Equal(t, epoch.Add(time.Minute), *got.Started)
			assert.Equal(t, j.Begun(2).Add(time.Hour), *got.Completed)
			assert.Equal(t, []string{"best", "paper"}, got.Tags)
			assert.Contains(t, got.Config, `"secrets": {key: "******"}`, "OpenPAI looked for the word without quotes")
			assert.NotContains(t, got.Config, "QUOTED-SECRET")

			require.Len(t, got.Attempts, 3)
			last, first := got.Attempts[0], got.Attempts[2]
			require.Len(t, last.Tasks, 3, "two tasks, one of them twice")
			assert.Equal(t, []any{"Big_Worker", "bigworker", int32(0), int32(1), "old-7", int32(137)}, []any{last.Tasks[0].Role, last.Tasks[0].RoleObject, last.Tasks[0].Index, last.Tasks[0].ID, last.Tasks[0].Node, last.Tasks[0].Completion.Code})
			assert.Equal(t, []any{int32(1), int32(0), int32(1)}, []any{last.Tasks[1].Index, last.Tasks[1].ID, last.Tasks[1].Completion.Code})
			require.Len(t, first.Tasks, 3)
			assert.Equal(t, int32(255), first.Completion.Code)
			assert.Equal(t, j.Begun(0).Add(time.Hour), *first.Completed)

			events, err := to.Events(t.Context(), got.UID)
			require.NoError(t, err)
			require.Len(t, events, 1)
			assert.Equal(t, []any{"Warning", "FailedScheduling", "Pod/" + v1.PodName(j.Key(), "bigworker", 0), int32(3), "kubelet"}, []any{events[0].Type, events[0].Reason, events[0].Object, events[0].Count, events[0].Source})

			usage, err := to.Usage(t.Context(), api.UsageQuery{By: []string{api.ByUser, api.ByVC}})
			require.NoError(t, err)
			require.Len(t, usage.Items, 1)
			const hour = 3600
			assert.Equal(t, int64((3*2+2)*4*hour), usage.Total.Guaranteed, "three attempts of two tasks, and two attempts of tasks more")
			assert.Equal(t, usage.Total.Guaranteed, usage.Total.Failed)
		})
	}
}

func TestGPUsOfHiveDAreCells(t *testing.T) {
	d, to := historytest.New(t), place(t, archive.Options{})
	d.Add(historytest.Job{User: "alice", Name: "cells", VC: "vision", Submitted: epoch, Tasks: 3, GPUs: 2, HiveD: "V100"})
	d.Add(historytest.Job{User: "alice", Name: "none", VC: "vision", Submitted: epoch, Tasks: 3, HiveD: "V100"})
	take(t, d, into(to))
	usage, err := to.Usage(t.Context(), api.UsageQuery{By: []string{api.ByType}})
	require.NoError(t, err)
	require.Len(t, usage.Items, 1)
	assert.Equal(t, "V100", usage.Items[0].Type)
	assert.Equal(t, int64(3*2*3600), usage.Total.Guaranteed)
}

func TestASecondRunAddsNothing(t *testing.T) {
	d, to := historytest.New(t), place(t, archive.Options{})
	for _, name := range []string{"a", "b", "c"} {
		d.Add(historytest.Job{User: "alice", Name: name, VC: "vision", Submitted: epoch, GPUs: 1, Attempt: 1})
	}
	take(t, d, into(to))
	before := sums(t, to)
	_, err := to.Prune(t.Context(), time.Time{}, nil) // GPU time is summed up by hours
	require.NoError(t, err)
	o := into(to)
	added := 0
	o.Store = func(ctx context.Context, part io.Reader, size int64) error {
		i, err := to.Import(ctx, part, size, false)
		if err == nil {
			added += i.Jobs
		}
		return err
	}
	o.Known = all(true)
	r := take(t, d, o)
	assert.Equal(t, []int{0, 3, 0}, []int{r.Jobs, r.Known, added})
	assert.Equal(t, before, sums(t, to))
}

// sums returns the texts of all jobs and of all GPU time in a history.
func sums(t *testing.T, s archive.Store) (out []string) {
	t.Helper()
	page, err := s.Jobs(t.Context(), api.JobQuery{Limit: 1000})
	require.NoError(t, err)
	usage, err := s.Usage(t.Context(), api.UsageQuery{By: []string{api.ByUser}})
	require.NoError(t, err)
	for _, v := range []any{page, usage} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		out = append(out, string(text))
	}
	return out
}

func TestARunThatIsCutOffLeavesNothingHereAndTheNextFinishesIt(t *testing.T) {
	d := historytest.New(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		d.Add(historytest.Job{User: "alice", Name: name, VC: "vision", Submitted: epoch, GPUs: 1})
	}
	whole := place(t, archive.Options{})
	take(t, d, into(whole))

	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	to := place(t, archive.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	o := into(to)
	give := o.Store
	o.Store = func(_ context.Context, part io.Reader, size int64) error {
		cancel() // while the first part is being sent
		return errors.Join(give(t.Context(), part, size), context.Canceled)
	}
	r, err := source(t, d).Read(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, r.Jobs, "what no one has confirmed isn't reported")
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left)

	take(t, d, into(to))
	assert.Equal(t, sums(t, whole), sums(t, to))
}

func TestJobsAreGivenInParts(t *testing.T) {
	d, to := historytest.New(t), place(t, archive.Options{})
	for n := range 2*pageJobs + 1 {
		d.Add(historytest.Job{User: "alice", Name: "j" + string(rune('a'+n%26)) + time.Duration(n).String(), VC: "vision", Submitted: epoch})
	}
	o := into(to)
	parts, steps := 0, []int{}
	give := o.Store
	o.Part, o.Progress = pageJobs, func(done, all int) { assert.Equal(t, 2*pageJobs+1, all); steps = append(steps, done) }
	o.Store = func(ctx context.Context, part io.Reader, size int64) error {
		parts++
		return give(ctx, part, size)
	}
	r := take(t, d, o)
	assert.Equal(t, []int{3, 2*pageJobs + 1}, []int{parts, r.Jobs})
	assert.Equal(t, []int{pageJobs, 2 * pageJobs, 2*pageJobs + 1}, steps)
	require.Len(t, r.People, 1)
	assert.Equal(t, history.Person{Name: "alice", Jobs: 2*pageJobs + 1, First: epoch, Last: epoch}, *r.People[0])
}

func TestADryRunGivesNothing(t *testing.T) {
	d := historytest.New(t)
	d.Add(historytest.Job{User: "alice", Name: "a", VC: "vision", Submitted: epoch})
	d.Add(historytest.Job{User: "bob", Name: "b", VC: "vision", Submitted: epoch.Add(time.Hour), Running: true})
	r := take(t, d, Options{Now: clock, Known: all(false)})
	assert.Equal(t, []int{1, 0, 1}, []int{r.Jobs, r.Known, r.LeftOutCount})
	assert.Equal(t, "bob", r.LeftOut[0].User)
	assert.Contains(t, r.LeftOut[0].Why, "hasn't ended")
}

func TestTasksThatAreManyArePacked(t *testing.T) {
	d, to := historytest.New(t), place(t, archive.Options{})
	j := historytest.Job{User: "alice", Name: "large", VC: "vision", Submitted: epoch, Tasks: 300}
	d.Add(j)
	s := j.Snapshot(0, 0)
	roles, err := json.Marshal(status(s, "attemptStatus")["taskRoleStatuses"])
	require.NoError(t, err)
	packed(pack(roles))(s)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	d.SetSnapshot(j, string(text))
	take(t, d, into(to))
	got, err := to.Job(t.Context(), j.UID())
	require.NoError(t, err)
	assert.Len(t, got.Attempts[0].Tasks, 300)
}

func TestAJobThatNeverHadAnObjectIsTheSameAtEachRun(t *testing.T) {
	d, to := historytest.New(t), place(t, archive.Options{})
	j := historytest.Job{User: "alice", Name: "refused", VC: "vision", Submitted: epoch, Code: -1100}
	d.Add(j)
	s := j.Snapshot(0, -1100)
	delete(s["metadata"].(map[string]any), "uid")
	a := status(s, "attemptStatus")
	for _, key := range []string{"startTime", "runTime", "completionTime"} {
		delete(a, key)
	}
	a["taskRoleStatuses"] = []any{}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	d.SetSnapshot(j, string(text))
	take(t, d, into(to))
	take(t, d, into(to))
	page, err := to.Jobs(t.Context(), api.JobQuery{})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	assert.Equal(t, int32(-1100), *page.Items[0].Code)
}

func TestDatabasesOfEarlierReleasesHaveFewerTables(t *testing.T) {
	d, to := historytest.New(t), place(t, archive.Options{})
	j := historytest.Job{User: "alice", Name: "old", VC: "", Submitted: epoch, Attempt: 1}
	d.Add(j)
	d.Exec(`DROP TABLE task_history; DROP TABLE tags; ALTER TABLE framework_events DROP COLUMN reason, DROP COLUMN count; ALTER TABLE frameworks DROP COLUMN "launchTime"`)
	take(t, d, into(to))
	got, err := to.Job(t.Context(), j.UID())
	require.NoError(t, err)
	assert.Len(t, got.Attempts, 2)
}
