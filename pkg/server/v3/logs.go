package v3

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

const (
	// windowTime limits a request for a part of a log, including the wait for lines and the response.
	windowTime = logs.MaxWait + 25*time.Second
	// windows and searches limit the simultaneous requests of a person. Further requests wait.
	windows  = 16
	searches = 2
)

// logRoutes returns the routes that read parts of a task's log by position.
func logRoutes() []server.Route {
	errs := server.Errors("NoJobError", app.CodeNoLog, app.CodeNoPositions, app.CodeLogGone)
	return []server.Route{
		server.JSON("GET", oneTask+"/log", "job.logs", "Returns lines of a task's log from a position on, or those before it", taskLog, errs, server.Each(windows), server.Within(windowTime)),
		server.JSON("GET", oneTask+"/log/matches", "job.logs", "Searches a part of a task's log, and returns the positions of lines that match", logMatches, errs, server.Each(searches)),
		{Method: "GET", Path: oneTask + "/log/text", Rule: "job.logs", Summary: "Returns a task's whole log as a file", Serve: logText, In: reflect.TypeFor[logTextIn](), Media: "text/plain; charset=utf-8",
			Limit: server.Limit{Stream: true}, Errors: []string{"NoJobError", app.CodeNoLog, app.CodeLogGone}},
	}
}

type taskLogIn struct {
	User        string `path:"user"`
	Name        string `path:"name"`
	Role        string `path:"role"`
	Index       string `path:"index"`
	Attempt     *int32 `query:"attempt"`
	TaskAttempt *int32 `query:"taskAttempt"`
	Previous    bool   `query:"previous"`
	At          string `query:"at"`
	Before      *bool  `query:"before"`
	Lines       *int   `query:"lines"`
	Longest     *int   `query:"longest"`
	Wait        string `query:"wait"`
}

// defaultLines is the default number of lines in a response.
const defaultLines = 500

func taskLog(ctx context.Context, d *app.Actions, in *taskLogIn) (*logs.Window, error) {
	j, sel, at, err := placed(ctx, d, &placedIn{in.User, in.Name, in.Role, in.Index, in.Attempt, in.TaskAttempt, in.Previous, in.At}, "end")
	if err != nil {
		return nil, err
	}
	q := logs.WindowQuery{At: at, Before: at.Before()}
	if in.Before != nil {
		q.Before = *in.Before
	}
	if q.Lines, err = between("lines", in.Lines, defaultLines, logs.MaxLines); err != nil {
		return nil, err
	}
	if q.Longest, err = between("longest", in.Longest, logs.LineBytes, logs.MaxLineBytes); err != nil {
		return nil, err
	}
	if q.Longest > logs.ManyLineBytes && q.Lines > 1 {
		return nil, wire.Bad(fmt.Sprintf(`"longest" may be more than %d only with lines=1`, logs.ManyLineBytes))
	}
	if in.Wait != "" {
		if q.Wait, err = time.ParseDuration(in.Wait); err != nil || q.Wait < 0 || q.Wait > logs.MaxWait {
			return nil, wire.Bad(fmt.Sprintf(`"wait" must be a time span up to %s`, logs.MaxWait))
		}
	}
	return j.LogWindow(ctx, sel, q)
}

type logMatchesIn struct {
	User        string `path:"user"`
	Name        string `path:"name"`
	Role        string `path:"role"`
	Index       string `path:"index"`
	Attempt     *int32 `query:"attempt"`
	TaskAttempt *int32 `query:"taskAttempt"`
	Previous    bool   `query:"previous"`
	From        string `query:"from"`
	Match       string `query:"match"`
	Limit       *int   `query:"limit"`
}

func logMatches(ctx context.Context, d *app.Actions, in *logMatchesIn) (*logs.Matches, error) {
	j, sel, from, err := placed(ctx, d, &placedIn{in.User, in.Name, in.Role, in.Index, in.Attempt, in.TaskAttempt, in.Previous, in.From}, "start")
	if err != nil {
		return nil, err
	}
	q := logs.MatchQuery{From: from}
	if q.Limit, err = between("limit", in.Limit, logs.MaxMatches, logs.MaxMatches); err != nil {
		return nil, err
	}
	if in.Match == "" {
		return nil, wire.Bad(`"match" must be a regular expression`)
	}
	if q.Match, err = logapi.Expression(in.Match); err != nil {
		return nil, badMatch(err)
	}
	return j.SearchLog(ctx, sel, q)
}

func badMatch(err error) error {
	return &wire.Error{Status: http.StatusBadRequest, Code: wire.CodeParameters, Message: `"match": ` + err.Error(), Remedy: hint.Of(err)}
}

type logTextIn struct {
	User        string `path:"user"`
	Name        string `path:"name"`
	Role        string `path:"role"`
	Index       string `path:"index"`
	Attempt     *int32 `query:"attempt"`
	TaskAttempt *int32 `query:"taskAttempt"`
	Previous    bool   `query:"previous"`
	Of          string `query:"of"`
	Times       bool   `query:"times"`
}

// logText responds with the whole log of one attempt. If the request contains a position, the attempt in the position is used, otherwise the selected
// attempt.
func logText(c *server.Call) error {
	in := logTextIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	j, sel, of, err := placed(c.Context(), c.Actions, &placedIn{in.User, in.Name, in.Role, in.Index, in.Attempt, in.TaskAttempt, in.Previous, in.Of}, "start")
	if err != nil {
		return err
	}
	l, err := j.FindLog(c.Context(), sel, of)
	if err != nil {
		return err
	}
	l.Times = in.Times
	name := strings.Join([]string{in.Name, in.Role, in.Index}, "-")
	if l.Attempt > 0 || l.TaskAttempt > 0 {
		name += fmt.Sprintf("-attempt-%d.%d", l.Attempt, l.TaskAttempt)
	}
	c.Writer.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + ".log"}))
	return c.SendLog(j, l, false)
}

// placedIn holds the common parameters of all routes for a task's log.
type placedIn struct {
	user, name, role, index string
	attempt, taskAttempt    *int32
	previous                bool
	at                      string
}

// placed returns the job, the selected attempt of a task, and the position in the log. If the request contains no position, the position is
// otherwise. The errors don't reveal whether a hidden job exists.
func placed(ctx context.Context, d *app.Actions, in *placedIn, otherwise string) (j *app.Job, sel logs.Selection, at logs.At, err error) {
	if j, err = d.Job(ctx, "job.logs", in.user, in.name); err != nil {
		return nil, sel, at, err
	}
	sel = logs.Selection{Role: in.role, Attempt: logs.All, Previous: in.previous, TaskAttempt: in.taskAttempt}
	if sel.Task, err = app.Index(in.index); err != nil {
		return nil, sel, at, err
	}
	if in.attempt != nil {
		sel.Attempt = *in.attempt
	}
	switch {
	case in.attempt != nil && (*in.attempt < 0 || in.previous), in.taskAttempt != nil && (*in.taskAttempt < 0 || in.attempt == nil):
		return nil, sel, at, wire.Bad(`attempts are counted from 0: give "attempt", with or without "taskAttempt", or "previous"`)
	case in.at == "":
		in.at = otherwise
	}
	if at, err = logs.ReadAt(in.at); err != nil {
		return nil, sel, at, &wire.Error{Status: http.StatusBadRequest, Code: wire.CodeParameters, Message: err.Error(), Remedy: hint.Of(err)}
	}
	return j, sel, at, nil
}

// between returns *n, which must be from 1 to most. If n is nil, it returns otherwise.
func between(key string, n *int, otherwise, most int) (int, error) {
	if n == nil {
		return otherwise, nil
	}
	if *n < 1 || *n > most {
		return 0, wire.Bad(fmt.Sprintf("%q must be between 1 and %d", key, most))
	}
	return *n, nil
}
