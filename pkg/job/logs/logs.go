package logs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// parallel is the maximum number of logs that are read at the same time.
const parallel = 8

// Options select the lines to read. Timestamps, Prefix and Out control how Write writes them.
type Options struct {
	Selection
	Follow bool
	Since  time.Duration // 0: all
	Tail   int64         // lines of each task; negative: all
	// Match selects the lines that it matches, unless it is nil. Tail then counts only these lines, unless the log is followed.
	Match *regexp.Regexp
	// MatchBytes is how many bytes at the beginning of a line are compared with Match. Zero means the whole line.
	MatchBytes int
	// Stream is stdout or stderr to select the lines of that stream, or "". Only agents of log-manager can separate the streams; see Apart.
	Stream string
	// Timestamps makes Write put the time of a line before the line, if the time is known.
	Timestamps bool
	// Prefix returns the text before each line of a task, if there are several tasks. It may be nil.
	Prefix func(task string) string
	Out    io.Writer
	// Problem is called with an error for each log that can't be read. Note is called when an attempt begins.
	Problem func(error)
	Note    func(string)
	// Patience is how long a finished job waits for a log that sends no lines. Zero means the default, which suits a user at a terminal.
	Patience time.Duration
	// Memory limits the memory for lines. If it is nil, as in paictl itself, there is no limit.
	Memory *Memory
	// Limits for waiting for an agent that is being replaced, before and after the log has begun, and until a message. Zero means the default,
	// which suits a user at a terminal.
	AwayFirst, AwayRest, AwayTold time.Duration
}

// Line is a line from the log of a task.
type Line struct {
	Task string `json:"task"` // role[index]
	logapi.Line
	// Single means that only one log is read, so that lines need no prefix.
	Single bool `json:"single,omitempty"`
}

// Write writes a line to Out, as Timestamps and Prefix specify.
func (o *Options) Write(l Line) error {
	var b []byte
	if o.Prefix != nil && !l.Single {
		b = append(b, o.Prefix(l.Task)...)
	}
	_, err := o.Out.Write(l.Append(b, o.Timestamps && l.Stamp != ""))
	return err
}

// writer writes whole lines from several logs, one line at a time.
type writer struct {
	o    *Options
	give func(Line) error

	steps, writing atomic.Int64

	mu  sync.Mutex
	err error
}

// progress reports whether a line is waiting until it can be written. It also returns a number that changes when a line begins to wait and when
// it has been written.
func (w *writer) progress() (busy bool, steps int64) {
	busy = w.writing.Load() > 0 // first: a line that ends between the two has changed the number
	return busy, w.steps.Load()
}

func (w *writer) write(l Line) error {
	w.steps.Add(1)
	w.writing.Add(1)
	defer func() {
		w.steps.Add(1)
		w.writing.Add(-1)
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = w.give(l)
	}
	return w.err
}

// Lines passes on the lines of the selected logs, one at a time. With Follow, it continues until the job has finished. If the rest of a log is
// lost after its first lines, Lines still passes on the other logs, and returns an error at the end.
func Lines(ctx context.Context, c *job.Client, j *job.Job, o Options, give func(Line) error) error {
	r := newReader(c, j)
	if err := r.check(o.Selection); err != nil {
		return err
	}
	w := &writer{o: &o, give: give}
	r.match, r.stream, r.warn, r.reserved = o.Match, o.Stream, o.Problem, o.Memory.open()
	defer r.reserved.end()
	r.awayFirst, r.awayRest, r.awayTold = cmp.Or(o.AwayFirst, awayFirst), cmp.Or(o.AwayRest, awayRest), cmp.Or(o.AwayTold, awayTold)
	if o.Follow && !j.Ended() && o.TaskAttempt == nil {
		return newFollower(r, w).run(ctx)
	}
	list, err := r.sources(ctx, o.Selection)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return r.nothing(o.Selection)
	}
	if len(list) == 1 && list[0].pod != nil && o.Follow && !j.Ended() {
		return newFollower(r, w).one(ctx, list[0])
	}
	if len(list) == 1 {
		return r.one(ctx, list[0], w)
	}
	return r.several(ctx, list, w)
}

// Tasks returns the number of tasks that a selection includes.
func Tasks(j *job.Job, sel Selection) int {
	n := 0
	for i := range j.Roles {
		r := &j.Roles[i]
		switch {
		case sel.Role != "" && j.RoleObject(sel.Role) != r.Object:
		case sel.Task < 0:
			n += r.Tasks
		case int(sel.Task) < r.Tasks:
			n++
		}
	}
	return n
}

// nothing returns the error for a selection that includes no log.
func (r *reader) nothing(sel Selection) error {
	switch {
	case sel.Previous:
		return hint.Errorf("leave out --previous", "no task of %s had an earlier attempt", r.job.Title())
	case sel.Attempt >= 0:
		return hint.Errorf("see the attempts with: paictl job get "+r.job.Title(), "%s has no attempt %d", r.job.Title(), sel.Attempt)
	}
	return hint.Errorf(r.hint(), "no task of %s has started yet", r.job.Title())
}

func (r *reader) hint() string {
	return "see why with: paictl job why " + r.job.Title()
}

// one passes on the lines of a single log.
func (r *reader) one(ctx context.Context, s *source, w *writer) error {
	if err := r.choose(ctx, s, w.o, func(l logapi.Line) error { return w.write(Line{s.name, l, true}) }); errors.Is(err, errMemory) {
		return err
	} else if err != nil {
		return r.explain(s, err)
	}
	return nil
}

func (r *reader) explain(s *source, err error) error {
	return hint.Wrap(r.about(s, err), r.hint())
}

// several passes on the lines of several logs in the order of their times. Lines from the archive have no times. They come first, sorted by task.
func (r *reader) several(ctx context.Context, list []*source, w *writer) error {
	all := make([][]Line, len(list))
	failed := make([]error, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, s := range list {
		g.Go(func() error {
			failed[i] = r.choose(ctx, s, w.o, func(l logapi.Line) error {
				if err := r.reserved.take(&l); err != nil {
					return err
				}
				all[i] = append(all[i], Line{s.name, l, false})
				return nil
			})
			if errors.Is(failed[i], errMemory) {
				return failed[i]
			}
			return context.Cause(ctx)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	lines := slices.Concat(all...)
	clear(all) // the copies with problems
	slices.SortStableFunc(lines, func(a, b Line) int { return strings.Compare(a.Stamp, b.Stamp) })
	for _, l := range lines {
		if err := w.write(l); err != nil {
			return err
		}
	}
	read, lost := 0, false
	for i, err := range failed {
		if err == nil {
			read++
		} else {
			w.o.Problem(r.about(list[i], err))
			lost = lost || errors.Is(err, errLost)
		}
	}
	if lost {
		return r.incomplete()
	}
	if read == 0 {
		return hint.Errorf(r.hint(), "no task of %s has a log", r.job.Title())
	}
	return nil
}

// incomplete returns the error for logs that lost a part.
func (r *reader) incomplete() error {
	return hint.Errorf("read it later with: paictl job logs "+r.job.Title(), "the logs of %s are not complete: the rest of at least one is missing, as said above", r.job.Title())
}

// fits reports whether a line matches. In the pattern, $ matches the end of the part that is compared.
func (o *Options) fits(text []byte) bool {
	text = bytes.TrimSuffix(text, []byte("\r"))
	if o.MatchBytes > 0 && len(text) > o.MatchBytes {
		text = text[:o.MatchBytes]
	}
	return o.Match.Match(text)
}
