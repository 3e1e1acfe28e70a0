package progress

import (
	"fmt"
	"io"
	"strings"

	"github.com/openpai/paictl/pkg/plural"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

// servicePlain writes one line per event that a person wants to read in a log. A second run
// prints its header, one line per service and its summary.
type servicePlain struct {
	w    *errWriter
	p    palette
	wide int // columns of the longest service
}

func newServicePlain(w io.Writer, colour bool) *servicePlain {
	return &servicePlain{w: &errWriter{w: w}, p: newPalette(w, colour)}
}

// Close returns the first write error.
func (r *servicePlain) Close() error { return r.w.err }

// Emit implements services.Sink.
func (r *servicePlain) Emit(e services.Event) {
	switch e.Kind {
	case services.EventRunStarted:
		for _, s := range e.Services {
			r.wide = max(r.wide, width(line(s)))
		}
		fmt.Fprintf(r.w, "%s: %s\n", r.p.bold(line(e.Message)), plural.Of(len(e.Services), "service"))
	case services.EventAdded:
		r.say(e, r.p.faint(line(e.Message)))
	case services.EventChanged:
		r.say(e, line(e.Message))
	case services.EventApplied:
		if e.Action != release.Unchanged {
			r.say(e, fmt.Sprintf("%s, revision %d", line(e.Action), e.Revision))
		}
	case services.EventPlanned:
		r.say(e, planned(e.Plan))
	case services.EventProgress:
		if e.Message != "" {
			r.say(e, r.p.faint(line(e.Message)))
		}
	case services.EventProblem:
		r.problem(e)
	case services.EventReady:
		r.say(e, r.p.good(readyText(e)))
	case services.EventStopped:
		r.say(e, r.p.good(line(e.Action))+" ("+duration(e.Elapsed)+")")
	case services.EventFailed:
		r.say(e, r.p.bad("FAILED")+" after "+duration(e.Elapsed)+": "+line(e.Error))
		r.hint(e.Hint)
	case services.EventNotStarted:
		r.say(e, r.p.bad(line(e.Message)))
	case services.EventReverted:
		r.say(e, r.p.warn(line(e.Message)))
		r.hint(e.Hint)
	case services.EventWarning:
		r.say(e, r.p.warn("warning: "+line(e.Message)))
		r.hint(e.Hint)
	case services.EventRunDone:
		if e.Summary != nil {
			writeServiceSummary(r.w, e.Summary, r.p)
		}
	}
}

// say writes one line about a service, or about the run where the event names none.
func (r *servicePlain) say(e services.Event, text string) {
	if e.Service != "" {
		fmt.Fprint(r.w, fill(line(e.Service), r.wide), "  ")
	}
	fmt.Fprintln(r.w, text)
}

func (r *servicePlain) hint(text string) {
	if text != "" {
		fmt.Fprintf(r.w, "  -> %s\n", line(text))
	}
}

func (r *servicePlain) problem(e services.Event) {
	if e.Problem == nil {
		return
	}
	r.say(e, r.p.warn(problemText(*e.Problem)))
	for _, l := range e.Problem.Log {
		fmt.Fprintf(r.w, "    | %s\n", line(l))
	}
	r.hint(e.Problem.Hint)
}

// problemText is a problem in one line.
func problemText(p ready.Problem) string {
	return line(p.Object + ": " + p.Reason + ": " + p.Message)
}

func planned(p *release.Plan) string {
	if p == nil || len(p.Changes) == 0 {
		return "up to date"
	}
	return plural.Of(len(p.Changes), "change") + " planned"
}

// readyText says how a service became ready.
func readyText(e services.Event) string {
	switch {
	case e.Message != "":
		return line(e.Message)
	case e.Action == release.Unchanged:
		return "up to date"
	}
	return "ready (" + duration(e.Elapsed) + ")"
}

// writeServiceSummary prints how a run ended: the figures, the services that failed with
// their causes, those that wait for them, and the command that goes on.
func writeServiceSummary(w io.Writer, s *services.Summary, p palette) {
	changed, changes := fmt.Sprintf("%d changed", len(s.Changed)), plural.Of(s.Changes, "change")
	if s.DryRun {
		changed, changes = fmt.Sprintf("%d would change", len(s.Changed)), changes+" planned"
	}
	fmt.Fprintln(w, p.bold(fmt.Sprintf("%s, %s, %s, %s", plural.Of(s.Services, "service"), changed, changes, duration(s.Elapsed))))
	if len(s.Failed) == 0 {
		return
	}
	fmt.Fprintln(w, p.bad(plural.Of(len(s.Failed), "service")+" failed:"))
	for _, f := range s.Failed {
		fmt.Fprintf(w, "  %s: %s\n", line(f.Service), line(f.Error))
		if f.Hint != "" {
			fmt.Fprintf(w, "    -> %s\n", line(f.Hint))
		}
	}
	if n := len(s.NotStarted); n > 0 {
		fmt.Fprintf(w, "Waiting for that: %s\n", line(strings.Join(s.NotStarted, ", ")))
	}
	if s.Retry != "" {
		fmt.Fprintf(w, "Once that is mended, go on with:\n  %s\n", line(s.Retry))
	}
}
