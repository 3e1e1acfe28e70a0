package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// releases applies the events of a run on services to a board.
type releases struct{ *board }

func newReleases() releases { return releases{newBoard(states{}, "service")} }

func (b releases) picture() *board { return b.board }

// apply updates the board with one event.
func (b releases) apply(e services.Event) {
	switch e.Kind {
	case services.EventRunStarted:
		b.title, b.started = line(e.Message), e.Time
		for _, s := range e.Services {
			b.service(s)
		}
	case services.EventRunDone:
		b.ending, b.ended = servicesEnding(e.Summary), e.Time
	case services.EventWarning:
		b.note(skipped, "warning: "+e.Message+arrow(e.Hint))
	case services.EventChanged:
		b.changes++
		b.note(done, e.Message)
	default:
		if e.Service != "" {
			b.applyTo(b.service(e.Service), e)
		}
	}
}

// service returns the row of a service. If the service has no row, it adds one in the state waiting.
func (b releases) service(name string) *row {
	r := b.row(name)
	if r.word == "" {
		r.word = "waiting"
	}
	return r
}

func (b releases) applyTo(r *row, e services.Event) {
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
		r.end(done, "planned", 0, planned(e.Plan))
	case services.EventProgress:
		r.progress(e)
	case services.EventProblem:
		if e.Problem != nil {
			r.reason = problemText(*e.Problem)
			b.note(skipped, e.Service+": "+r.reason+arrow(e.Problem.Hint), e.Problem.Log...)
		}
	case services.EventReady:
		r.end(done, "ready", e.Elapsed, readyReason(e))
	case services.EventStopped:
		r.end(done, line(e.Action), e.Elapsed, "") // the run no longer waits for it
		b.changes++
	case services.EventFailed:
		r.end(failed, "failed", e.Elapsed, line(e.Error))
		b.failed = append(b.failed, failure{name: e.Service, err: e.Error, hint: e.Hint})
		b.note(failed, e.Service+": "+e.Error+arrow(e.Hint))
	case services.EventNotStarted:
		r.end(skipped, "waiting", 0, line(e.Message))
	case services.EventReverted:
		b.note(skipped, e.Service+": "+e.Message+arrow(e.Hint))
	}
}

// progress updates the number of ready pods, and the reason why other pods are not ready.
func (r *row) progress(e services.Event) {
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

func (r *row) end(s cellState, word string, took time.Duration, reason string) {
	r.state, r.word, r.took, r.reason = s, word, took, reason
}

// readyReason returns a text about the change to a service, or "" if the state of its row already shows the change.
func readyReason(e services.Event) string {
	switch {
	case e.Message != "":
		return line(e.Message)
	case e.Action == release.Unchanged:
		return "up to date"
	}
	return line(e.Action)
}

func servicesEnding(s *services.Summary) *outcome {
	if s == nil {
		return nil
	}
	end := &outcome{
		figures: totals(plural.Of(s.Services, "service"), len(s.Changed), s.Changes, s.DryRun, s.Elapsed),
		blame:   plural.Of(len(s.Failed), "service") + " failed:", waiting: s.NotStarted, retry: s.Retry,
	}
	for _, f := range s.Failed {
		end.failed = append(end.failed, failure{name: f.Service, err: f.Error, hint: f.Hint})
	}
	return end
}

const (
	stateCols = 12 // a sign, a space and the longest state, "restarted"
	podCols   = 6
	timeCols  = 6
)

// states draws each service on one line: its state, pods, time and reason.
type states struct{}

func (states) figures(b *board) []string {
	return []string{plural.Of(len(b.rows), b.noun), fmt.Sprintf("%d done", tallyRows(b.rows)[done]), plural.Of(b.allChanges(), "change")}
}

func (states) table(s screen, b *board, rows []*row) []string {
	name := s.names("service", rows)
	out := []string{s.p.Faint.Text(tui.Pad("service", name) + "  " + tui.Pad("state", stateCols) + tui.Pad("pods", podCols) + "time")}
	for _, r := range rows {
		out = append(out, s.service(r, name))
	}
	if rest := len(b.rows) - len(rows); rest > 0 {
		out = append(out, s.p.Faint.Text("… and "+plural.Of(rest, b.noun)+" more"))
	}
	return out
}

func (s screen) service(r *row, name int) string {
	pods, took := "", ""
	if r.pods > 0 {
		pods = fmt.Sprintf("%d/%d", r.ready, r.pods)
	}
	switch {
	case r.state == running:
		took = tui.Clock(s.now.Sub(r.started))
	case r.took > 0:
		took = tui.Clock(r.took.Round(time.Second))
	}
	l := tui.Pad(r.name, name) + "  " + s.sign(r.state) + " " + tui.Pad(r.word, stateCols-2) + tui.Pad(pods, podCols) + tui.Pad(took, timeCols)
	reason := r.reason
	if r.state == failed {
		reason = s.p.Bad.Text(reason)
	}
	return strings.TrimRight(l+" "+reason, " ")
}

// servicePlain writes lines for a log: one line for each event that is worth a line. A second run prints its header, one line per service and
// its summary.
type servicePlain struct{ *log }

func newServicePlain(w io.Writer, colour bool) servicePlain { return servicePlain{newLog(w, colour)} }

// Emit implements services.Sink.
func (r servicePlain) Emit(e services.Event) {
	switch e.Kind {
	case services.EventRunStarted:
		r.align(e.Services)
		r.start(e.Message, plural.Of(len(e.Services), "service"))
	case services.EventAdded:
		r.line(r.p.Faint.Text(line(e.Message)), e.Service)
	case services.EventChanged:
		r.line(line(e.Message), e.Service)
	case services.EventApplied:
		if e.Action != release.Unchanged {
			r.line(fmt.Sprintf("%s, revision %d", line(e.Action), e.Revision), e.Service)
		}
	case services.EventPlanned:
		r.line(planned(e.Plan), e.Service)
	case services.EventProgress:
		if e.Message != "" {
			r.line(r.p.Faint.Text(line(e.Message)), e.Service)
		}
	case services.EventProblem:
		r.problem(e)
	case services.EventReady:
		r.line(r.p.Good.Text(readyText(e)), e.Service)
	case services.EventStopped:
		r.line(r.p.Good.Text(line(e.Action))+" ("+duration(e.Elapsed)+")", e.Service)
	case services.EventFailed:
		r.line(r.p.Bad.Text("FAILED")+" after "+duration(e.Elapsed)+": "+line(e.Error), e.Service)
		r.hint(e.Hint)
	case services.EventNotStarted:
		r.line(r.p.Bad.Text(line(e.Message)), e.Service)
	case services.EventReverted:
		r.line(r.p.Warn.Text(line(e.Message)), e.Service)
		r.hint(e.Hint)
	case services.EventWarning:
		r.line(r.p.Warn.Text("warning: "+line(e.Message)), e.Service)
		r.hint(e.Hint)
	case services.EventRunDone:
		writeEnding(r.w, servicesEnding(e.Summary), r.p)
	}
}

func (r servicePlain) problem(e services.Event) {
	if e.Problem == nil {
		return
	}
	r.line(r.p.Warn.Text(problemText(*e.Problem)), e.Service)
	for _, l := range e.Problem.Log {
		fmt.Fprintf(r.w, "    | %s\n", line(l))
	}
	r.hint(e.Problem.Hint)
}

// problemText returns a problem in one line.
func problemText(p ready.Problem) string {
	return line(p.Text())
}

func planned(p *release.Plan) string {
	switch {
	case p != nil && len(p.Changes) == 0 && p.Action == release.Upgraded:
		return "a new revision planned, in which no object changes"
	case p == nil || len(p.Changes) == 0:
		return "up to date"
	}
	return plural.Of(len(p.Changes), "change") + " planned"
}

// readyText describes how a service became ready.
func readyText(e services.Event) string {
	switch {
	case e.Message != "":
		return line(e.Message)
	case e.Action == release.Unchanged:
		return "up to date"
	}
	return "ready (" + duration(e.Elapsed) + ")"
}
