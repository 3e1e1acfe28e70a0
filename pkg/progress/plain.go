package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/plural"
)

// progressEvery limits the lines that tell how far a long step is.
const progressEvery = 10 * time.Second

// Plain writes one line per event that a person wants to read in a log. Steps that found
// nothing to do are left out: a second run prints its header and its summary.
type Plain struct {
	w       *errWriter
	p       palette
	wide    int                     // columns of the longest host name
	wideP   int                     // columns of the longest phase name
	told    map[[2]string]time.Time // host, phase: time of the last line
	causes  map[string]bool         // hosts whose failure has been told
	changes map[string]int          // per host, of the phases that are done
	applied map[[2]string]int       // host, phase: changes so far
	planned map[[2]string]int       // host, phase: changes that a dry run found
}

// NewPlain returns a renderer that writes lines to w.
func NewPlain(w io.Writer, colour bool) *Plain {
	return &Plain{
		w: &errWriter{w: w}, p: newPalette(w, colour),
		told: map[[2]string]time.Time{}, causes: map[string]bool{}, changes: map[string]int{}, applied: map[[2]string]int{}, planned: map[[2]string]int{},
	}
}

// Close returns the first write error.
func (r *Plain) Close() error { return r.w.err }

// Emit implements cluster.Sink.
func (r *Plain) Emit(e cluster.Event) {
	at := [2]string{e.Host, e.Phase}
	switch e.Kind {
	case cluster.EventRunStarted:
		r.start(e)
	case cluster.EventPhaseStarted:
		r.told[at] = e.Time
	case cluster.EventProgress:
		if e.Time.Sub(r.told[at]) >= progressEvery {
			r.say(e, r.p.faint(progressText(e)))
		}
	case cluster.EventChanged:
		r.applied[at]++
		if e.Change != nil {
			r.say(e, describe(e.Change))
		}
	case cluster.EventPlanned:
		r.planned[at]++
	case cluster.EventPhaseDone:
		r.phaseDone(e)
	case cluster.EventPhaseFailed:
		r.failed(e)
	case cluster.EventHostSetAside:
		if !r.causes[e.Host] {
			r.failed(e)
		}
		fmt.Fprintf(r.w, "%s  %s\n", fill(line(e.Host), r.wide), r.p.bad("set aside; the other hosts go on"))
	case cluster.EventHostDone:
		fmt.Fprintf(r.w, "%s  %s\n", fill(line(e.Host), r.wide), r.p.good(hostDone(r.changes[e.Host], len(r.planned) > 0)))
	case cluster.EventWarning:
		r.say(e, r.p.warn("warning: "+line(e.Message)))
		if e.Hint != "" {
			fmt.Fprintf(r.w, "  -> %s\n", line(e.Hint))
		}
	case cluster.EventRunDone:
		if e.Summary != nil {
			writeSummary(r.w, e.Summary, r.p)
		}
	}
}

func (r *Plain) start(e cluster.Event) {
	for _, h := range e.Hosts {
		r.wide = max(r.wide, width(line(h)))
	}
	for _, p := range e.Phases {
		r.wideP = max(r.wideP, width(line(p)))
	}
	fmt.Fprintf(r.w, "%s: %s, %s\n", r.p.bold(line(e.Message)), plural.Of(len(e.Hosts), "host"), plural.Of(len(e.Phases), "phase"))
}

func (r *Plain) phaseDone(e cluster.Event) {
	at := [2]string{e.Host, e.Phase}
	if n := r.planned[at]; n > 0 {
		r.changes[e.Host] += n
		r.say(e, plural.Of(n, "change")+" planned")
		return
	}
	if n := max(e.Changes, r.applied[at]); n > 0 {
		r.changes[e.Host] += n
		r.say(e, r.p.good("done")+", "+plural.Of(n, "change")+" ("+duration(e.Elapsed)+")")
	}
}

func (r *Plain) failed(e cluster.Event) {
	r.causes[e.Host] = true
	took := ""
	if e.Elapsed > 0 {
		took = " after " + duration(e.Elapsed)
	}
	if e.Host == "" {
		e.Host = "all hosts"
	}
	r.say(e, r.p.bad("FAILED")+took+": "+line(e.Error))
	if e.Hint != "" {
		fmt.Fprintf(r.w, "  -> %s\n", line(e.Hint))
	}
}

// say writes one line about a host's phase, or about the run where the event names neither.
func (r *Plain) say(e cluster.Event, text string) {
	r.told[[2]string{e.Host, e.Phase}] = e.Time
	if e.Host != "" {
		fmt.Fprint(r.w, fill(line(e.Host), r.wide), "  ")
	}
	if e.Phase != "" {
		fmt.Fprint(r.w, fill(line(e.Phase), r.wideP), "  ")
	}
	fmt.Fprintln(r.w, text)
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

func progressText(e cluster.Event) string {
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

// errWriter keeps the first error, so that a renderer can go on without checking each
// line: a run doesn't stop because no one listens.
type errWriter struct {
	w   io.Writer
	err error
}

func (w *errWriter) Write(b []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
	return len(b), nil
}
