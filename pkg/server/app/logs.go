package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	exits "github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Log identifies one log of one attempt of a task. Links contain its JSON, so the JSON names are short.
type Log struct {
	User        string `json:"u"`
	Name        string `json:"n"`
	UID         string `json:"i"` // the UID of the job, because another job may have had its name
	Attempt     int32  `json:"a"`
	Role        string `json:"r"` // in the Framework
	Index       int32  `json:"x"`
	TaskAttempt int32  `json:"t"`
	Stream      string `json:"s,omitempty"` // stdout or stderr; "" is both
	Tail        bool   `json:"e,omitempty"` // only the end of the log
	Times       bool   `json:"-"`           // the time before each line
}

const (
	// linkLife is how long a link to a log is valid.
	linkLife = 10 * time.Minute
	// tailBytes is the size of the end of a log that is sent. Clients show this size above the text. tailLines limits the number of lines that are
	// read for the end.
	tailBytes = 16 << 10
	tailLines = 4096
)

// NoLog returns the error for an attempt of a task without a log. why is the message.
func NoLog(why string) error {
	return &wire.Error{Status: http.StatusNotFound, Code: CodeNoLog, Message: why}
}

// TaskLogs returns the logs of an attempt of a task, by the names "all", "stdout" and "stderr". If the streams aren't stored separately, "stdout"
// contains both streams, and "stderr" is missing. t is a task of d, which the caller has read.
func (j *Job) TaskLogs(ctx context.Context, d *job.Detail, attempt int32, t *job.Task) (map[string]Log, error) {
	if err := j.decide("job.logs"); err != nil {
		return nil, err
	}
	if t.Run == nil && t.Completed == nil || t.PodUID == "" {
		return nil, NoLog(fmt.Sprintf("Task %s of job %s~%s has not started: it has no log.", t.Name(), j.User(), j.Name()))
	}
	all := Log{User: j.User(), Name: j.Name(), UID: d.UID, Attempt: attempt, Role: t.RoleObject, Index: t.Index, TaskAttempt: t.ID}
	out := map[string]Log{"all": all, "stdout": all}
	if logs.Apart(ctx, j.actions.app.Jobs, t.Node, t.PodUID) {
		for _, stream := range []string{"stdout", "stderr"} {
			one := all
			one.Stream = stream
			out[stream] = one
		}
	}
	return out, nil
}

// LogLink returns a text that gives access to a log without a token. The access ends after a few minutes. It ends earlier if the token of the request
// becomes invalid or the caller may no longer read the job.
func (j *Job) LogLink(ctx context.Context, l Log) (secret.String, error) {
	if err := j.decide("job.logs"); err != nil {
		return "", err
	}
	return j.actions.app.Tokens.Link(ctx, j.actions.caller.claims, token.UseLog, l, linkLife)
}

// ErrLink is the error for an invalid link, for any reason. Clients request a new link after a response with status 403.
var ErrLink = &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "The link is not valid, or no longer.", Remedy: "list the logs of the task again: the list has new links"}

// Follow returns the caller who requested a link, with the rights of their token. A route accepts only links for its own purpose.
func (s *App) Follow(ctx context.Context, text string) (Caller, error) {
	l := &Log{}
	v, err := s.Tokens.Follow(ctx, token.UseLog, text, l)
	if errors.Is(err, token.ErrInvalid) {
		return Caller{}, ErrLink
	}
	if err != nil {
		return Caller{}, err
	}
	return Caller{Subject: v.Subject, person: v.Person, claims: v.Claims, ended: v.Ended, log: l}, nil
}

// LinkedLog returns the log in the caller's link, and its job.
func (d *Actions) LinkedLog(ctx context.Context) (*Job, *Log, error) {
	l := d.caller.log
	if l == nil {
		return nil, nil, ErrLink
	}
	j, err := d.Job(ctx, "job.logs", l.User, l.Name)
	if err != nil {
		return nil, nil, err
	}
	if j.job.UID != l.UID {
		return nil, nil, NoJob(l.User, l.Name) // another job has its name now
	}
	return j, l, nil
}

// LogText calls give with each line of a log, unchanged. If a part of the log is missing, it calls note with the reason.
func (j *Job) LogText(ctx context.Context, l *Log, follow bool, note func(string), give func([]byte) error) error {
	begun := false
	var end *tail
	o := logs.Options{Selection: logs.Selection{Role: l.Role, Task: l.Index, Attempt: l.Attempt, TaskAttempt: &l.TaskAttempt}, Stream: l.Stream, Tail: -1, Follow: follow,
		Problem: func(err error) { note(err.Error()) }, Note: func(string) {}}
	if l.Tail {
		o.Tail = tailLines
	}
	if l.Tail && !follow {
		end = &tail{}
	}
	err := j.Logs(ctx, o, func(line logs.Line) error {
		begun = true
		text := line.Append(nil, l.Times && line.Stamp != "")
		if end != nil {
			end.add(text)
			return nil
		}
		return give(text)
	})
	if err == nil && end != nil {
		return give(end.last())
	}
	if err != nil && !begun {
		return missing(ctx, err)
	}
	return err
}

// missing returns the error for the client if no part of a log could be read.
func missing(ctx context.Context, err error) error {
	if _, told := errors.AsType[*wire.Error](err); told || ctx.Err() != nil || job.IsUnavailable(err) || errors.Is(err, rules.ErrForbidden) || errors.Is(err, rules.ErrGuest) {
		return err
	}
	return NoLog("Its log can't be had: " + err.Error())
}

// tail stores the end of a text. last returns at most tailBytes bytes.
type tail struct{ b bytes.Buffer }

func (t *tail) add(text []byte) {
	t.b.Write(text)
	if t.b.Len() > 4*tailBytes {
		t.b.Next(t.b.Len() - tailBytes)
	}
}

func (t *tail) last() []byte {
	t.b.Next(max(0, t.b.Len()-tailBytes))
	return t.b.Bytes()
}

// ExitRules returns the explanations of exit codes, or nil if the caller may not read the job.
func (j *Job) ExitRules(ctx context.Context) *exits.Set {
	if j.decide("job.read") != nil {
		return nil
	}
	return j.actions.app.Jobs.ExitRules(ctx)
}

// Codes of errors about positions in logs.
const (
	CodeNoLog       = "NoTaskLogError"
	CodeNoPositions = "NoPositionsError"
	CodeLogGone     = "LogGoneError"
)

// LogWindow reads a part of a task's log around a position.
func (j *Job) LogWindow(ctx context.Context, sel logs.Selection, q logs.WindowQuery) (*logs.Window, error) {
	if err := j.decide("job.logs"); err != nil {
		return nil, err
	}
	w, err := logs.ReadWindow(ctx, j.actions.app.Jobs, j.job, sel, q)
	return w, placeless(ctx, err)
}

// SearchLog searches a part of a task's log.
func (j *Job) SearchLog(ctx context.Context, sel logs.Selection, q logs.MatchQuery) (*logs.Matches, error) {
	if err := j.decide("job.logs"); err != nil {
		return nil, err
	}
	m, err := logs.Search(ctx, j.actions.app.Jobs, j.job, sel, q)
	return m, placeless(ctx, err)
}

// FindLog returns the log of one attempt of a task. If the position contains no attempt, it uses the selected attempt.
func (j *Job) FindLog(ctx context.Context, sel logs.Selection, at logs.At) (*Log, error) {
	if err := j.decide("job.logs"); err != nil {
		return nil, err
	}
	attempt, taskAttempt, err := logs.Find(ctx, j.actions.app.Jobs, j.job, sel, at)
	if err != nil {
		return nil, placeless(ctx, err)
	}
	return &Log{User: j.User(), Name: j.Name(), UID: j.job.UID, Attempt: attempt, Role: j.job.RoleObject(sel.Role), Index: sel.Task, TaskAttempt: taskAttempt}, nil
}

// placeless converts errors about positions in logs to responses.
func placeless(ctx context.Context, err error) error {
	e := &wire.Error{Message: fmt.Sprint(err), Remedy: hint.Of(err)}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, logs.ErrUnplaced):
		e.Status, e.Code = http.StatusNotFound, CodeNoPositions
	case errors.Is(err, logs.ErrGone):
		e.Status, e.Code = http.StatusGone, CodeLogGone
	default:
		return missing(ctx, err)
	}
	return e
}
