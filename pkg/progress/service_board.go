package progress

import (
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/release"
)

// serviceRow is one service of a run.
type serviceRow struct {
	name        string
	state       cellState
	word        string // starting, ready, stopped ...
	pods, ready int
	started     time.Time
	took        time.Duration // once it is over
	reason      string        // why it is not ready, or how it became so
}

// serviceNote is a line below the table. The last lines of a container that crashed are
// shown at the end: a release that is taken back takes its pods with it.
type serviceNote struct {
	note
	log []string
}

// serviceBoard is what the live table shows of a run on services, built from nothing but
// its events.
type serviceBoard struct {
	title   string
	started time.Time
	ended   time.Time
	rows    []*serviceRow
	byName  map[string]*serviceRow
	notes   []serviceNote
	changes int
	summary *services.Summary
}

func newServiceBoard() *serviceBoard { return &serviceBoard{byName: map[string]*serviceRow{}} }

func (b *serviceBoard) draw(s screen, footer string) string { return s.serviceFrame(b, footer) }
func (b *serviceBoard) leave(s screen) string               { return s.serviceFinal(b) }
func (b *serviceBoard) told() bool                          { return b.summary != nil }

// apply takes one event in.
func (b *serviceBoard) apply(e services.Event) {
	switch e.Kind {
	case services.EventRunStarted:
		b.title, b.started = line(e.Message), e.Time
		for _, s := range e.Services {
			b.row(s)
		}
	case services.EventRunDone:
		b.summary, b.ended = e.Summary, e.Time
	case services.EventWarning:
		b.note(skipped, "warning: "+e.Message+arrow(e.Hint))
	case services.EventChanged:
		b.changes++
		b.note(done, e.Message)
	default:
		if e.Service != "" {
			b.applyTo(b.row(e.Service), e)
		}
	}
}

func (b *serviceBoard) applyTo(r *serviceRow, e services.Event) {
	switch e.Kind {
	case services.EventAdded:
		b.note(done, e.Service+" "+e.Message)
	case services.EventWaiting:
		r.word, r.reason = "waiting", line(e.Message)
	case services.EventStarted:
		r.state, r.word, r.started, r.reason = running, "working", e.Time, ""
	case services.EventApplied:
		if e.Action != release.Unchanged {
			b.changes++
		}
		r.word = "starting"
	case services.EventPlanned:
		r.end(done, "planned", 0)
		r.reason = planned(e.Plan)
	case services.EventProgress:
		b.progress(r, e)
	case services.EventProblem:
		if e.Problem != nil {
			r.reason = problemText(*e.Problem)
			b.note(skipped, e.Service+": "+r.reason+arrow(e.Problem.Hint), e.Problem.Log...)
		}
	case services.EventReady:
		r.end(done, "ready", e.Elapsed)
		r.reason = readyReason(e)
	case services.EventStopped:
		r.end(done, line(e.Action), e.Elapsed)
		r.reason = "" // nothing is waited for any more
		b.changes++
	case services.EventFailed:
		r.end(failed, "failed", e.Elapsed)
		r.reason = line(e.Error)
		b.note(failed, e.Service+": "+e.Error+arrow(e.Hint))
	case services.EventNotStarted:
		r.end(skipped, "waiting", 0)
		r.reason = line(e.Message)
	case services.EventReverted:
		b.note(skipped, e.Service+": "+e.Message+arrow(e.Hint))
	}
}

// progress takes in how many pods are ready, and why others are not.
func (b *serviceBoard) progress(r *serviceRow, e services.Event) {
	if e.Message != "" {
		r.reason = line(e.Message)
	}
	if e.State == nil {
		return
	}
	r.pods, r.ready, r.reason = e.State.Pods, e.State.ReadyPods, ""
	if len(e.State.Problems) > 0 {
		r.reason = problemText(e.State.Problems[0])
	}
}

func (r *serviceRow) end(s cellState, word string, took time.Duration) {
	r.state, r.word, r.took = s, word, took
}

// readyReason says what was done, where that isn't plain from the state.
func readyReason(e services.Event) string {
	switch {
	case e.Message != "":
		return line(e.Message)
	case e.Action == release.Unchanged:
		return "up to date"
	}
	return line(e.Action)
}

func (b *serviceBoard) note(s cellState, text string, log ...string) {
	b.notes = append(b.notes, serviceNote{note{s, line(text)}, log})
	if len(b.notes) > recentKept {
		b.notes = slices.Delete(b.notes, 0, len(b.notes)-recentKept)
	}
}

func (b *serviceBoard) row(name string) *serviceRow {
	if r, ok := b.byName[name]; ok {
		return r
	}
	r := &serviceRow{name: line(name), word: "waiting"}
	b.byName[name] = r
	b.rows = append(b.rows, r)
	return r
}

func arrow(hint string) string {
	if hint == "" {
		return ""
	}
	return " -> " + hint
}
