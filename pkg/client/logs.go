package client

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// again is how far before the last received line an interrupted log is resumed, because the clocks of machines may differ.
const again = 10 * time.Second

// last is the last line of a task that was passed to the caller.
type last struct {
	stamp string
	lines int // with that stamp
}

// resumption records which lines of a log were already passed to the caller. When the log is read again, they are skipped.
type resumption struct {
	tasks   map[string]*last
	skipped map[string]int // lines of the last stamp that were read again
	given   bool           // some line was passed on
	bare    bool           // a line without a time: such a log can't be resumed
}

// fresh reports whether a line has not been passed to the caller yet. If so, fresh records the line as passed.
func (r *resumption) fresh(l *logs.Line) bool {
	at := r.tasks[l.Task]
	if at == nil {
		at = &last{}
		r.tasks[l.Task] = at
	}
	n, again := r.skipped[l.Task]
	if again && l.Stamp < at.stamp {
		return false
	}
	if again && l.Stamp == at.stamp && n < at.lines {
		r.skipped[l.Task]++
		return false
	}
	r.given, r.bare = true, r.bare || l.Stamp == ""
	if l.Stamp != at.stamp {
		at.stamp, at.lines = l.Stamp, 0
	}
	at.lines++
	return true
}

// repeat prepares for reading the log again. It returns the time of the earliest line that is still needed.
func (r *resumption) repeat() (since time.Time) {
	r.skipped = map[string]int{}
	for task, at := range r.tasks {
		r.skipped[task] = 0
		if t, err := time.Parse(time.RFC3339Nano, at.stamp); err == nil && (since.IsZero() || t.Before(since)) {
			since = t
		}
	}
	return since
}

// Logs passes the lines of a job's logs to give, as logs.Lines does. After a lost connection, Logs reconnects and continues after the last line.
// If it follows the logs, it tries to reconnect without a time limit, and otherwise only while a server restarts.
func (c *Jobs) Logs(ctx context.Context, j *job.Job, o logs.Options, give func(logs.Line) error) error {
	r := &resumption{tasks: map[string]*last{}}
	query := logQuery(&o)
	var ahead time.Duration // of the server's clock
	pause, told, heard := between, false, time.Now()
	for {
		q := get(one(j, "/logs"), query)
		var taken error
		err := c.frames(ctx, q, func(at time.Time) { ahead = time.Until(at) }, func(f *api.Frame) error {
			switch {
			case f.Problem != "":
				o.Problem(errors.New(f.Problem))
			case f.Note != "":
				o.Note(f.Note)
			case f.Line != nil && r.fresh(f.Line):
				pause, told, heard = between, false, time.Now()
				taken = give(*f.Line)
			}
			return taken
		})
		switch {
		case err == nil:
			return nil
		case taken != nil:
			return taken
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case lasts(err), !o.Follow && time.Since(heard) >= c.patience:
			return about(j, err)
		case r.bare:
			return err
		}
		if !told {
			o.Problem(err)
			told = true
		}
		if pause, err = wait(ctx, pause); err != nil {
			return err
		}
		if since := r.repeat(); !since.IsZero() {
			query.Del("tail")
			query.Set("since", (time.Since(since) + ahead + again).Truncate(time.Second).String())
		}
	}
}

func logQuery(o *logs.Options) url.Values {
	q := url.Values{}
	set := func(name string, there bool, value string) {
		if there {
			q.Set(name, value)
		}
	}
	set("role", o.Role != "", o.Role)
	set("task", o.Task >= 0, strconv.Itoa(int(o.Task)))
	set("attempt", o.Attempt >= 0, strconv.Itoa(int(o.Attempt)))
	set("previous", o.Previous, "true")
	set("follow", o.Follow, "true")
	set("since", o.Since > 0, o.Since.String())
	set("tail", o.Tail >= 0, strconv.FormatInt(o.Tail, 10))
	if o.Match != nil {
		q.Set("match", o.Match.String())
	}
	return q
}
