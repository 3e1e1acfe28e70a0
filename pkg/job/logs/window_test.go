package logs

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/node/logstore/agents"
	"github.com/openpai/paictl/pkg/node/logstoretest"
)

// serveView responds like the job controller, which forwards the request to the agent. If agent is nil, it responds like an agent of an earlier
// release.
func (f *fake) serveView(w http.ResponseWriter, r *http.Request, uid string) {
	err := fmt.Errorf("%w: view=window: there is no such parameter", agents.ErrBadQuery)
	var resp *http.Response
	if f.agent != nil {
		resp, err = f.agent.Get(r.Context(), "n1", uid, "app", r.URL.Query())
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case errors.Is(err, agents.ErrBadQuery):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"code":"BadRequest","message":%q}`, err)
	case err != nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"code":"NotFound","message":%q}`, err)
	default:
		_, _ = io.Copy(w, resp.Body)
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func place(t *testing.T, text string) At {
	t.Helper()
	at, err := ReadAt(text)
	require.NoError(t, err)
	return at
}

func windowAt(t *testing.T, text string) WindowQuery {
	t.Helper()
	at := place(t, text)
	return WindowQuery{At: at, Before: at.Before(), Lines: MaxLines, Longest: LineBytes}
}

func said(w *Window) []string {
	out := []string{}
	for i := range w.Lines {
		out = append(out, string(w.Lines[i].Text))
	}
	return out
}

var first = Selection{Role: "worker", Task: 0, Attempt: All}

func TestAWindowHasPositionsThatLeadToTheSameLines(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 2})
	f.agent = logstoretest.New(t)
	uid := f.pod("worker", 0, 0, "running")
	f.keep(uid)
	f.agent.Print(string(uid), noon, "one", "two", "three", "four")
	j := resolve(t, c)
	w, err := ReadWindow(t.Context(), c, j, first, windowAt(t, "end"))
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "three", "four"}, said(w))
	assert.Equal(t, "worker[0]", w.Task)
	assert.True(t, w.Live, "it gets more lines")
	assert.False(t, w.Before)
	assert.False(t, w.After)
	assert.Equal(t, w.Start, w.From)
	assert.Equal(t, w.End, w.To)
	assert.Positive(t, w.Bytes)

	two := w.Lines[1].At
	q := windowAt(t, two)
	q.Lines = 2
	w, err = ReadWindow(t.Context(), c, j, first, q)
	require.NoError(t, err)
	assert.Equal(t, []string{"two", "three"}, said(w))
	assert.Equal(t, two, w.From)
	assert.True(t, w.Before)
	assert.True(t, w.After)
	q.Before = true
	w, err = ReadWindow(t.Context(), c, j, first, q)
	require.NoError(t, err)
	assert.Equal(t, []string{"one"}, said(w))

	m, err := Search(t.Context(), c, j, first, MatchQuery{From: place(t, "start"), Match: regexp.MustCompile("t.o"), Limit: 10})
	require.NoError(t, err)
	require.Len(t, m.Items, 1)
	assert.Equal(t, two, m.Items[0].At)
	assert.Equal(t, "two", string(m.Items[0].Text[m.Items[0].From:m.Items[0].To]))
	assert.False(t, m.After)
	assert.Equal(t, m.Bytes, m.Searched)

	f.keep(f.pod("worker", 0, 0, "ended"))
	w, err = ReadWindow(t.Context(), c, resolve(t, c), first, windowAt(t, "end"))
	require.NoError(t, err)
	assert.False(t, w.Live)
}

func TestAPositionLeadsToTheAttemptThatHasIt(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.agent = logstoretest.New(t)
	old := f.pod("worker", 0, 0, "running")
	f.keep(old)
	f.agent.Print(string(old), noon, "first attempt")
	w, err := ReadWindow(t.Context(), c, resolve(t, c), first, windowAt(t, "end"))
	require.NoError(t, err)
	link := w.Lines[0].At

	uid := f.pod("worker", 0, 1, "running")
	f.keep(uid)
	f.agent.Print(string(uid), noon, "second attempt", "and more")
	f.history = &api.JobDetail{Job: api.Job{UID: "f"}, Attempts: []api.Attempt{{ID: 0, Tasks: []api.TaskAttempt{{Role: "worker", RoleObject: "worker", Node: "n1", PodUID: string(old)}}}}}
	j := resolve(t, c)
	w, err = ReadWindow(t.Context(), c, j, first, windowAt(t, "start"))
	require.NoError(t, err)
	assert.Equal(t, []string{"second attempt", "and more"}, said(w))
	assert.Equal(t, int32(1), w.Attempt)
	assert.NotEqual(t, strings.Split(link, ".")[0], strings.Split(w.From, ".")[0], "it is another log")
	w, err = ReadWindow(t.Context(), c, j, first, windowAt(t, link))
	require.NoError(t, err)
	assert.Equal(t, []string{"first attempt"}, said(w))
	assert.Equal(t, int32(0), w.Attempt)
	assert.False(t, w.Live)
	attempt, taskAttempt, err := Find(t.Context(), c, j, first, place(t, link))
	require.NoError(t, err)
	assert.Equal(t, [2]int32{0, 0}, [2]int32{attempt, taskAttempt})
	previous := first
	previous.Previous = true
	w, err = ReadWindow(t.Context(), c, j, previous, windowAt(t, "end"))
	require.NoError(t, err)
	assert.Equal(t, []string{"first attempt"}, said(w))
}

func TestAPositionThatLeadsNowhereSaysWhy(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 3})
	f.agent = logstoretest.New(t)
	uid := f.pod("worker", 0, 0, "running")
	f.keep(uid)
	f.agent.Print(string(uid), noon, "one")
	j := resolve(t, c)
	w, err := ReadWindow(t.Context(), c, j, first, windowAt(t, "end"))
	require.NoError(t, err)
	for at, want := range map[string]string{
		"00000000.5": "no attempt of this task that is kept has the log 00000000",
		strings.Split(w.End, ".")[0] + ".9223372036854775807": "has only",
	} {
		for _, before := range []bool{false, true} {
			q := windowAt(t, at)
			q.Before = before
			_, err := ReadWindow(t.Context(), c, j, first, q)
			require.ErrorIs(t, err, ErrGone, at)
			require.ErrorContains(t, err, want)
			assert.NotEmpty(t, hint.Of(err))
		}
	}
	f.change(func() { delete(f.kept, uid) })
	_, err = ReadWindow(t.Context(), c, j, first, windowAt(t, w.End))
	require.ErrorIs(t, err, ErrGone)
	require.ErrorContains(t, err, "no longer has the log of worker[0]")
	_, err = ReadWindow(t.Context(), c, j, first, windowAt(t, "end"))
	require.ErrorIs(t, err, ErrUnplaced, "it may be read as a stream")

	f.pod("worker", 1, 0, "waiting")
	_, err = ReadWindow(t.Context(), c, resolve(t, c), Selection{Role: "worker", Task: 1, Attempt: All}, windowAt(t, "end"))
	require.ErrorContains(t, err, "it hasn't started")
	_, err = ReadWindow(t.Context(), c, j, Selection{Role: "worker", Task: 7, Attempt: All}, windowAt(t, "end"))
	require.ErrorContains(t, err, "has no task 7")

	f.keep(uid)
	f.change(func() { f.agent = nil })
	_, err = ReadWindow(t.Context(), c, j, first, windowAt(t, "end"))
	require.ErrorIs(t, err, ErrUnplaced)
	require.ErrorContains(t, err, "earlier release")
	f.change(func() { f.away = func(int) bool { return true } })
	_, err = ReadWindow(t.Context(), c, j, first, windowAt(t, "end"))
	assert.True(t, job.IsUnavailable(err), "%v", err)
}

func TestTextsThatAreNoPosition(t *testing.T) {
	for _, text := range []string{"", "7", "-1", "0123abcd", "0123abcd.", "0123abcd.-1", "0123abcd.+1", "0123abcd.1.2", "0123abcd.99999999999999999999", "0123ABCD.1", "123abcd.1", "0123abcde.1", "+123abcd.1", "0123abcd.0x1", "END", "yesterday"} {
		_, err := ReadAt(text)
		require.Error(t, err, text)
		assert.NotEmpty(t, hint.Of(err), text)
	}
	for _, text := range []string{"start", "end", "0123abcd.0", "0123abcd.9223372036854775807", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+08:00"} {
		_, err := ReadAt(text)
		require.NoError(t, err, text)
	}
}
