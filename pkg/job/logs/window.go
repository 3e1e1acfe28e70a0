package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// Of identifies the log for one attempt of a task, and describes which part of it is kept.
type Of struct {
	Task        string `json:"task"`        // role[index]
	Attempt     int32  `json:"attempt"`     // the attempt of the job
	TaskAttempt int32  `json:"taskAttempt"` // the attempt of the task in it
	// Live means that the task's program runs, so that the log may get more lines.
	Live bool `json:"live,omitempty"`
	// Start is the position of the first line that is kept, and End is the position after the last line. Bytes is the size of the log between
	// them, and Limit is the maximum size.
	Start string `json:"start"`
	End   string `json:"end"`
	Bytes int64  `json:"bytes"`
	Limit int64  `json:"limit"`
	// Dropped is how many bytes were dropped between the requested position and the first line that is kept.
	Dropped int64 `json:"dropped,omitempty"`
	// Gaps is the number of places with missing lines.
	Gaps int `json:"gaps,omitempty"`
}

// PlacedLine is a line with its position.
type PlacedLine struct {
	At string `json:"at"`
	logapi.Line
	// Bytes is the size of the line in this window if Text contains only the beginning of the line. Otherwise it is 0.
	Bytes int64 `json:"bytes,omitempty"`
	// Continued means that the line begins before the window. At is then the position of the rest of the line.
	Continued bool `json:"continued,omitempty"`
}

// Window is a part of a log. It contains the lines that begin at From or later, and before To.
type Window struct {
	Of
	Lines []PlacedLine `json:"lines"`
	From  string       `json:"from"`
	To    string       `json:"to"`
	// Before reports whether the log has lines before From. After reports whether it has lines at To or later.
	Before bool `json:"before,omitempty"`
	After  bool `json:"after,omitempty"`
}

// Match is a line that matches a search. Text is the line, or the part of a long line around the match.
type Match struct {
	At    string `json:"at"`
	Stamp string `json:"stamp,omitempty"`
	Text  []byte `json:"text"`
	// From and To are the beginning and the end of the first match in Text, in bytes.
	From int `json:"from"`
	To   int `json:"to"`
}

// Matches contains the matching lines in the part of a log from From up to To. If After is set, the search can continue at To.
type Matches struct {
	Of
	Items []Match `json:"items"`
	From  string  `json:"from"`
	To    string  `json:"to"`
	After bool    `json:"after,omitempty"`
	// Searched is how many bytes of the kept log come before To.
	Searched int64 `json:"searched"`
}

// WindowQuery selects the lines of a window, within the limits of logapi.
type WindowQuery struct {
	At At
	// Before selects the last lines before At, instead of the lines after At.
	Before bool
	Lines  int
	// Longest is the maximum number of bytes that are returned of a line. A query with more than logapi.ManyBytes may request only one line.
	Longest int
	// Wait is how long to wait for lines if there are no lines after At yet.
	Wait time.Duration
}

// MatchQuery selects the lines that match a pattern.
type MatchQuery struct {
	From  At
	Match *regexp.Regexp
	Limit int
}

// maxAnswer is the maximum number of bytes that are read of a response. It is enough for a window in base64 with the other data of its lines.
const maxAnswer = 4 << 20

// ReadWindow reads a part of the log of the selected task, or of the task's attempt that the position names. Its errors wrap ErrUnplaced if no
// agent keeps the log, or ErrGone if the position doesn't belong to a kept log.
func ReadWindow(ctx context.Context, c *job.Client, j *job.Job, sel Selection, q WindowQuery) (*Window, error) {
	v := url.Values{"view": {logapi.ViewWindow}, "at": {q.At.text}, "before": {strconv.FormatBool(q.Before)}, "lines": {strconv.Itoa(q.Lines)}, "longest": {strconv.Itoa(q.Longest)}}
	if q.Wait > 0 {
		v.Set("wait", q.Wait.String())
	}
	w := logapi.Window{}
	s, err := newReader(c, j).ask(ctx, sel, &q.At, v, &w)
	if err != nil {
		return nil, err
	}
	out := &Window{Lines: make([]PlacedLine, len(w.Lines)), From: s.position(w.From), To: s.position(w.To), Before: w.From > w.Start, After: w.To < w.End}
	for i, l := range w.Lines {
		out.Lines[i] = PlacedLine{s.position(l.At), l.Line, l.Bytes, l.Continued}
	}
	out.Of, err = s.of(&q.At, &w.Span)
	if q.Before {
		out.Dropped = 0 // it's normal that these don't exist
	}
	return out, err
}

// Search searches a part of the log of the selected task, or of the task's attempt that the position names. It returns the same errors as
// ReadWindow.
func Search(ctx context.Context, c *job.Client, j *job.Job, sel Selection, q MatchQuery) (*Matches, error) {
	m := logapi.Matches{}
	v := url.Values{"view": {logapi.ViewMatches}, "at": {q.From.text}, "match": {q.Match.String()}, "limit": {strconv.Itoa(q.Limit)}}
	s, err := newReader(c, j).ask(ctx, sel, &q.From, v, &m)
	if err != nil {
		return nil, err
	}
	out := &Matches{Items: make([]Match, len(m.Items)), From: s.position(m.From), To: s.position(m.To), After: m.To < m.End, Searched: m.To - m.Start}
	for i, x := range m.Items {
		out.Items[i] = Match{s.position(x.At), x.Stamp, x.Text, x.From, x.To}
	}
	out.Of, err = s.of(&q.From, &m.Span)
	return out, err
}

// Find returns the attempt of a task that a position names, or the selected attempt if at isn't a position.
func Find(ctx context.Context, c *job.Client, j *job.Job, sel Selection, at At) (attempt, taskAttempt int32, err error) {
	s, err := newReader(c, j).placed(ctx, sel, &at)
	if err != nil {
		return 0, 0, err
	}
	return s.attempt, s.taskAttempt, nil
}

// of returns the description of a source's log. It returns an error if the log doesn't reach the position at.
func (s *source) of(at *At, kept *logapi.Span) (Of, error) {
	if at.log != "" && at.offset > kept.End {
		return Of{}, hint.Wrap(fmt.Errorf("%w: the log of %s has only %d bytes", ErrGone, s.name, kept.End), remedyGone)
	}
	out := Of{Task: s.name, Attempt: s.attempt, TaskAttempt: s.taskAttempt, Live: s.pod != nil && running(s.pod), Start: s.position(kept.Start), End: s.position(kept.End),
		Bytes: kept.End - kept.Start, Limit: kept.Limit, Gaps: kept.Gaps}
	if at.log != "" {
		out.Dropped = max(kept.Start-at.offset, 0)
	}
	return out, nil
}

const (
	remedyGone     = `read the log from "start" or "end"`
	remedyUnplaced = "read its lines as a stream: GET /api/v3/jobs/{user}/{name}/logs; log-manager keeps logs with positions (an operator: paictl service start -n log-manager)"
)

// placed returns the source that a position names, among all attempts of the selected task. If at isn't a position, placed returns the selected
// source.
func (r *reader) placed(ctx context.Context, sel Selection, at *At) (*source, error) {
	if err := r.check(sel); err != nil {
		return nil, err
	}
	if at.log == "" {
		list, err := r.sources(ctx, sel)
		if err == nil && len(list) == 0 {
			err = r.nothing(sel)
		}
		if err != nil {
			return nil, err
		}
		return list[0], nil
	}
	sel.Attempt, sel.TaskAttempt, sel.Previous = All, nil, false
	var found *source
	look := func(known map[task][]*source) bool {
		for _, list := range known {
			if i := slices.IndexFunc(list, func(s *source) bool { return s.uid != "" && s.logName() == at.log }); i >= 0 {
				found = list[i]
			}
		}
		return found != nil
	}
	known, err := r.known(ctx, sel, look)
	if err != nil {
		return nil, err
	}
	if !look(known) {
		return nil, hint.Wrap(fmt.Errorf("%w: no attempt of this task that is kept has the log %s", ErrGone, at.log), remedyGone)
	}
	return found, nil
}

// ask sends a request to the agent that keeps a log, and decodes the response into out.
func (r *reader) ask(ctx context.Context, sel Selection, at *At, v url.Values, out any) (*source, error) {
	s, err := r.placed(ctx, sel, at)
	switch {
	case err != nil:
		return nil, err
	case s.pod != nil && !begun(s.pod):
		return nil, r.explain(s, errNotStarted)
	case s.node == "" || s.uid == "":
		return nil, s.unplaced("its machine isn't known")
	}
	resp, err := r.client.History.Page(ctx, s.node, s.uid, s.container(), v)
	_, refused := errors.AsType[*job.RefusedError](err)
	switch {
	case apierrors.IsNotFound(err) && at.log != "":
		return nil, hint.Wrap(fmt.Errorf("%w: %s no longer has the log of %s", ErrGone, s.node, s.name), remedyGone)
	case apierrors.IsNotFound(err):
		return nil, s.unplaced("no agent keeps it")
	case refused:
		return nil, s.unplaced("the agent that keeps it has an earlier release")
	case errors.Is(err, job.ErrNoController) && !errors.Is(err, job.ErrAway):
		return nil, s.unplaced(err.Error())
	case err != nil:
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", s.name, errors.Join(job.ErrAway, err))
	}
	return s, nil
}

func (s *source) unplaced(why string) error {
	return hint.Wrap(fmt.Errorf("%w: %s: %s", ErrUnplaced, s.name, why), remedyUnplaced)
}

// Limits of a window, and of the matches in a response. Package logapi documents them.
const (
	MaxLines      = logapi.WindowLines
	MaxLineBytes  = logapi.WindowBytes
	ManyLineBytes = logapi.ManyBytes
	LineBytes     = logapi.LineBytes
	MaxWait       = logapi.WindowWait
	MaxMatches    = logapi.MatchesLimit
)
