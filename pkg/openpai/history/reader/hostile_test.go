package reader

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/postgrestest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/openpai/history/historytest"
)

func TestWhatMakesNoSenseIsLeftOutAndStopsNothing(t *testing.T) {
	good := historytest.Job{User: "alice", Name: "good", VC: "vision", Submitted: epoch}
	named := func(name string) historytest.Job {
		return historytest.Job{User: "alice", Name: name, VC: "vision", Submitted: epoch, GPUs: 1}
	}
	for name, c := range map[string]struct {
		job      historytest.Job
		snapshot func(s map[string]any)
		text     string
		sql      string
		why      error
	}{
		"its object is no JSON":            {text: `{"status": SNAPSHOT-SECRET`, why: errObject},
		"its object is nothing":            {sql: `UPDATE frameworks SET snapshot = NULL WHERE name = $1`, why: errObject},
		"its object is of another kind":    {text: `[1, 2]`, why: errObject},
		"its object is empty":              {text: `{}`, why: errOutcome},
		"its numbers are none":             {text: `{"status": {"attemptStatus": {"id": 99999999999999999999}}}`, why: errObject},
		"its user can't be":                {job: historytest.Job{User: "../alice", Name: "x", VC: "vision", Submitted: epoch}, why: errUser},
		"its user has no name":             {job: historytest.Job{Name: "x", VC: "vision", Submitted: epoch}, why: errUser},
		"its name is of another":           {job: named("bob~x"), why: errName},
		"its name is a path":               {job: named("x/y"), why: errName},
		"its name obeys a terminal":        {job: named("x\x1b[2J"), why: errName},
		"its virtual cluster can't be":     {job: historytest.Job{User: "alice", Name: "x", VC: "a b\n", Submitted: epoch}, why: errVC},
		"it is very old":                   {job: historytest.Job{User: "alice", Name: "x", VC: "vision", Submitted: epoch.AddDate(-50, 0, 0)}, why: errTime},
		"it is of the future":              {job: historytest.Job{User: "alice", Name: "x", VC: "vision", Submitted: epoch.AddDate(50, 0, 0)}, why: errTime},
		"it never was":                     {sql: `UPDATE frameworks SET "submissionTime" = 'infinity' WHERE name = $1`, why: errTime},
		"it ends in the future":            {job: historytest.Job{User: "alice", Name: "x", VC: "vision", Submitted: epoch, Ran: 50 * 365 * 24 * time.Hour}, why: errTime},
		"it has no outcome":                {snapshot: func(s map[string]any) { delete(status(s, "attemptStatus"), "completionStatus") }, why: errOutcome},
		"its outcome is empty":             {snapshot: func(s map[string]any) { status(s, "attemptStatus")["completionStatus"] = map[string]any{} }, why: errOutcome},
		"its attempt is below none":        {snapshot: func(s map[string]any) { status(s, "attemptStatus")["id"] = -1 }, why: errObject},
		"its object is another's":          {snapshot: func(s map[string]any) { s["metadata"].(map[string]any)["uid"] = good.UID() }, why: errTwice},
		"its tasks are packed, and aren't": {snapshot: packed("!"), why: errObject},
		"its tasks are packed without end": {snapshot: packed(bomb()), why: errObject},
		"its object is larger than all":    {sql: `UPDATE frameworks SET snapshot = repeat('x', 33 << 20) WHERE name = $1`, why: errLarge},
		"it has more tasks than there are": {snapshot: func(s map[string]any) {
			s["spec"].(map[string]any)["taskRoles"].([]any)[0].(map[string]any)["taskNumber"] = 20000
		}, why: errObject},
	} {
		t.Run(name, func(t *testing.T) {
			d, to := historytest.New(t), place(t, archive.Options{})
			if c.job.VC == "" {
				c.job = named("zzz")
			}
			d.Add(good)
			d.Add(c.job)
			if c.snapshot != nil {
				s := c.job.Snapshot(0, 0)
				c.snapshot(s)
				text, err := json.Marshal(s)
				require.NoError(t, err)
				c.text = string(text)
			}
			if c.text != "" {
				d.SetSnapshot(c.job, c.text)
			}
			if c.sql != "" {
				d.Exec(c.sql, c.job.Key())
			}
			r := take(t, d, into(to))
			require.Len(t, r.LeftOut, 1)
			assert.Equal(t, c.why.Error(), r.LeftOut[0].Why)
			assert.Equal(t, 1, r.Jobs)
			_, err := to.Job(t.Context(), good.UID())
			if !errors.Is(c.why, errTwice) { // which of the two comes first is the database's order
				require.NoError(t, err)
			}
		})
	}
}

func status(s map[string]any, part string) map[string]any {
	return s["status"].(map[string]any)[part].(map[string]any)
}

// packed returns a function that replaces the tasks of an object with a text, in the place of compressed tasks.
func packed(text string) func(s map[string]any) {
	return func(s map[string]any) {
		a := status(s, "attemptStatus")
		delete(a, "taskRoleStatuses")
		a["taskRoleStatusesCompressed"] = text
	}
}

func pack(data []byte) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data) // to memory
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// bomb returns compressed data that is larger than an object may be.
func bomb() string { return pack(bytes.Repeat([]byte{' '}, maxObject+1)) }

func TestPartsThatMakeNoSenseAreLeftOutOfTheirJob(t *testing.T) {
	d, to := historytest.New(t), place(t, archive.Options{DSN: postgrestest.DSN(t), Scratch: t.TempDir()})
	j := historytest.Job{User: "alice", Name: "odd", VC: "vision", Submitted: epoch, GPUs: 1, Tasks: 2, Attempt: 1, Config: "{SECRET"}
	d.Add(j)
	s := j.Snapshot(1, 0)
	a := status(s, "attemptStatus")
	role := a["taskRoleStatuses"].([]any)[0].(map[string]any)
	task := role["taskStatuses"].([]any)[1].(map[string]any)
	task["state"], task["attemptStatus"].(map[string]any)["completionTime"] = "\x00", "9999-01-01T00:00:00Z"
	task["attemptStatus"].(map[string]any)["podNodeName"] = "a\x00b"
	role["taskStatuses"] = append(role["taskStatuses"].([]any), nil)
	a["taskRoleStatuses"] = append(a["taskRoleStatuses"].([]any), nil, map[string]any{"name": "a\x00", "taskStatuses": []any{}})
	text, err := json.Marshal(s)
	require.NoError(t, err)
	d.SetSnapshot(j, string(text))
	d.Exec(`UPDATE framework_history SET snapshot = 'no JSON'`)
	d.AddTask(j, 0, 0, 0, 1)
	d.AddTask(j, 1, 0, 0, 1)
	d.Exec(`UPDATE task_history SET snapshot = '{"status": null}' WHERE "attemptIndex" = 1`)
	d.AddEvent(j, "Never", epoch)
	d.Exec(`UPDATE framework_events SET "lastTimestamp" = '-infinity'`)

	r := take(t, d, into(to))
	assert.Equal(t, []int{1, 0, 1}, []int{r.Jobs, r.LeftOutCount, r.WithoutText})
	got, err := to.Job(t.Context(), j.UID())
	require.NoError(t, err)
	assert.Empty(t, got.Config)
	require.Len(t, got.Attempts, 1)
	require.Len(t, got.Attempts[0].Tasks, 2)
	assert.Equal(t, v1.Completed, got.Attempts[0].Tasks[1].State)
	usage, err := to.Usage(t.Context(), api.UsageQuery{})
	require.NoError(t, err)
	assert.Equal(t, int64(3600), usage.Total.Guaranteed, "for how long the other held its GPU no one knows")
}

func FuzzJob(f *testing.F) {
	j := historytest.Job{User: "alice", Name: "a", VC: "vision", Submitted: epoch, GPUs: 1, Attempt: 1}
	for _, o := range []map[string]any{j.Snapshot(0, 1), j.Snapshot(1, 0)} {
		text, err := json.Marshal(o)
		require.NoError(f, err)
		f.Add(string(text), j.Config)
		packed(pack([]byte(`[{"name":"worker","taskStatuses":[null]}]`)))(o)
		text, err = json.Marshal(o)
		require.NoError(f, err)
		f.Add(string(text), "taskRoles: {a: &b {c: *b}}")
	}
	d, err := archive.Open(f.Context(), archive.Options{Path: filepath.Join(f.TempDir(), "a.db"), Now: clock})
	require.NoError(f, err)
	f.Cleanup(func() { _ = d.Close() })
	f.Fuzz(func(t *testing.T, snapshot, config string) {
		r := row{name: "x", user: "alice", job: "a", state: "Completed", snapshot: snapshot, config: config, size: int64(len(snapshot))}
		require.NoError(t, r.submitted.Scan(epoch))
		got, err := r.read(now)
		if err != nil {
			return
		}
		require.NoError(t, d.SaveJob(t.Context(), got.f))
		if before, _ := got.earlier(0, []byte(snapshot)); before != nil {
			require.NoError(t, d.SaveAttempt(t.Context(), before))
		}
	})
}
