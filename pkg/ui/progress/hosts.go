package progress

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// hosts applies the events of a run on machines to a board, whose table has a row per host and a column per phase.
type hosts struct{ *board }

func newHosts() hosts { return hosts{newBoard(grid{}, "host")} }

func (b hosts) picture() *board { return b.board }

// apply updates the board with one event.
func (b hosts) apply(e engine.Event) {
	switch e.Kind {
	case engine.EventRunStarted:
		b.start(e)
		return
	case engine.EventRunDone:
		b.ending, b.ended = hostsEnding(e.Summary), e.Time
		return
	case engine.EventWarning:
		b.tell(skipped, e, "warning: "+e.Message+arrow(e.Hint))
	case engine.EventNote:
		b.tell(done, e, e.Message)
	}
	if e.Host == "" {
		if e.Kind == engine.EventPhaseFailed {
			b.blame(e) // it concerns all hosts
		}
		return
	}
	r := b.row(e.Host)
	switch {
	case e.Kind == engine.EventHostDone:
		r.over, r.current = true, -1
	case e.Kind == engine.EventHostSetAside:
		b.setAside(r, e)
	case e.Phase != "" && e.Kind != engine.EventWarning:
		b.applyPhase(r, b.phase(e.Phase), e)
	}
	r.state = hostState(r)
}

// hostState returns the state of the whole host: failed, running, done or pending.
func hostState(r *row) cellState {
	switch {
	case r.aside:
		return failed
	case r.over:
		return done
	case r.current >= 0:
		return r.cells[r.current].state
	}
	return pending
}

func (b hosts) start(e engine.Event) {
	b.title, b.started = line(e.Message), e.Time
	for _, p := range e.Phases {
		b.phase(p)
	}
	for _, h := range e.Hosts {
		b.row(h)
	}
}

// setAside marks a host as lost, so that its row has the state failed. The phase of the event may have no column in the table, for example the
// phase that connects to the host.
func (b hosts) setAside(r *row, e engine.Event) {
	r.aside = true
	if i := slices.Index(b.phases, e.Phase); i >= 0 {
		r.cells[i].state = failed
	}
	if r.reason == "" {
		r.reason = line(e.Error)
		b.blame(e)
	}
}

// blame adds a failure below the table, and keeps it for the end of the run.
func (b hosts) blame(e engine.Event) {
	b.failed = append(b.failed, failure{e.Host, e.Phase, e.Error, e.Hint})
	b.tell(failed, e, e.Error+arrow(e.Hint))
}

func (b hosts) applyPhase(r *row, i int, e engine.Event) {
	c := &r.cells[i]
	switch e.Kind {
	case engine.EventPhaseStarted:
		*c = cell{state: running, started: e.Time, changes: c.changes}
		r.current = i
	case engine.EventProgress:
		c.message, c.done, c.total = line(e.Message), e.Done, e.Total
	case engine.EventChanged, engine.EventPlanned:
		c.changes++
		b.planned = b.planned || e.Kind == engine.EventPlanned
		if e.Change != nil {
			b.tell(done, e, describe(e.Change))
		}
	case engine.EventPhaseDone:
		c.state, c.changes = done, max(c.changes, e.Changes)
		r.leave(i)
	case engine.EventPhaseSkipped:
		c.state = skipped
		r.leave(i)
	case engine.EventPhaseFailed:
		c.state, r.current = failed, i
		r.reason = line(e.Error)
		b.blame(e)
	}
}

// leave clears the current phase of the row if the current phase is i. Phases may overlap, so that another phase may be current.
func (r *row) leave(i int) {
	if r.current == i {
		r.current = -1
	}
}

// tell adds a line below the table, beginning with the names of the host and the phase.
func (b hosts) tell(s cellState, e engine.Event, text string) {
	where := e.Host
	if e.Phase != "" {
		where += " " + e.Phase
	}
	if where != "" {
		text = where + ": " + text
	}
	b.note(s, text)
}

func hostsEnding(s *engine.Summary) *outcome {
	if s == nil {
		return nil
	}
	end := &outcome{figures: totals(plural.Of(s.Hosts, "host"), s.Changed, s.Changes, s.DryRun, s.Elapsed), retry: s.Retry, blame: plural.Of(len(s.Failed), "host") + " set aside:"}
	if t := s.Traffic; t != nil && t.Passed > 0 {
		end.figures += fmt.Sprintf("; %s sent from here, %s from machine to machine", megabytes(t.Sent), megabytes(t.Passed))
	}
	if len(s.Failed) == 1 {
		end.blame = "1 host failed:"
	}
	for _, f := range s.Failed {
		end.failed = append(end.failed, failure{f.Host, f.Phase, f.Error, f.Hint})
	}
	return end
}

// Plain writes lines for a log: one line for each event of a run on machines that is worth a line. It omits steps without changes, so that a
// second run prints only its header and its summary.
type Plain struct {
	*log
	told    map[[2]string]time.Time // host, phase: time of the last line
	causes  map[string]bool         // hosts whose failure was printed
	changes map[string]int          // per host, in completed phases
	applied map[[2]string]int       // host, phase: changes so far
	planned map[[2]string]int       // host, phase: changes in a dry run
}

// NewPlain returns a renderer that writes lines to w.
func NewPlain(w io.Writer, colour bool) *Plain {
	return &Plain{
		log:  newLog(w, colour),
		told: map[[2]string]time.Time{}, causes: map[string]bool{}, changes: map[string]int{}, applied: map[[2]string]int{}, planned: map[[2]string]int{},
	}
}

// Emit implements cluster.Sink.
func (r *Plain) Emit(e engine.Event) {
	at := [2]string{e.Host, e.Phase}
	switch e.Kind {
	case engine.EventRunStarted:
		r.align(e.Hosts, e.Phases)
		r.start(e.Message, plural.Of(len(e.Hosts), "host"), plural.Of(len(e.Phases), "phase"))
	case engine.EventPhaseStarted:
		r.told[at] = e.Time
	case engine.EventProgress:
		if e.Time.Sub(r.told[at]) >= progressEvery {
			r.say(e, r.p.Faint.Text(progressText(e)))
		}
	case engine.EventChanged:
		r.applied[at]++
		if e.Change != nil {
			r.say(e, describe(e.Change))
		}
	case engine.EventPlanned:
		r.planned[at]++
	case engine.EventPhaseDone:
		r.phaseDone(e)
	case engine.EventPhaseFailed:
		r.failed(e)
	case engine.EventHostSetAside:
		if !r.causes[e.Host] {
			r.failed(e)
		}
		r.line(r.p.Bad.Text("failed; the other hosts continue"), e.Host)
	case engine.EventHostDone:
		r.line(r.p.Good.Text(hostDone(r.changes[e.Host], len(r.planned) > 0)), e.Host)
	case engine.EventWarning:
		r.say(e, r.p.Warn.Text("warning: "+line(e.Message)))
		r.hint(e.Hint)
	case engine.EventNote:
		r.say(e, line(e.Message))
	case engine.EventRunDone:
		writeEnding(r.w, hostsEnding(e.Summary), r.p)
	}
}

func (r *Plain) phaseDone(e engine.Event) {
	at := [2]string{e.Host, e.Phase}
	if n := r.planned[at]; n > 0 {
		r.changes[e.Host] += n
		r.say(e, plural.Of(n, "change")+" planned")
		return
	}
	if n := max(e.Changes, r.applied[at]); n > 0 {
		r.changes[e.Host] += n
		r.say(e, r.p.Good.Text("done")+", "+plural.Of(n, "change")+" ("+duration(e.Elapsed)+")")
	}
}

func (r *Plain) failed(e engine.Event) {
	r.causes[e.Host] = true
	took := ""
	if e.Elapsed > 0 {
		took = " after " + duration(e.Elapsed)
	}
	if e.Host == "" {
		e.Host = "all hosts"
	}
	r.say(e, r.p.Bad.Text("FAILED")+took+": "+line(e.Error))
	r.hint(e.Hint)
}

// say writes one line about a phase of a host. If the event contains neither, the line is about the run.
func (r *Plain) say(e engine.Event, text string) {
	r.told[[2]string{e.Host, e.Phase}] = e.Time
	r.line(text, e.Host, e.Phase)
}

func hostDone(changes int, dry bool) string {
	switch {
	case changes == 0:
		return "up to date"
	case dry:
		return plural.Of(changes, "change") + " planned"
	default:
		return "done, " + plural.Of(changes, "change")
	}
}

func progressText(e engine.Event) string {
	s, a := line(e.Message), amount(e.Done, e.Total)
	switch {
	case a == "":
		return s
	case s == "":
		return a
	default:
		return s + " " + a
	}
}

// describe returns a change in one line, without its host and phase.
func describe(c *engine.Change) string {
	s := mark(c.Action) + " " + c.Action + " " + c.Target
	if c.Detail != "" {
		s += " (" + c.Detail + ")"
	}
	return line(s)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// totals returns the figures of a finished run as text.
func totals(of string, changed, changes int, dry bool, took time.Duration) string {
	did, n := fmt.Sprintf("%d changed", changed), plural.Of(changes, "change")
	if dry {
		did, n = fmt.Sprintf("%d would change", changed), n+" planned"
	}
	return fmt.Sprintf("%s, %s, %s, %s", of, did, n, duration(took))
}
