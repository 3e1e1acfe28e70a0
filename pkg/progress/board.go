package progress

import (
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/cluster"
)

// recentKept bounds the lines below the table.
const recentKept = 50

type cellState int

const (
	pending cellState = iota
	running
	done
	skipped
	failed
)

// cell is one phase on one host.
type cell struct {
	state       cellState
	changes     int
	started     time.Time
	message     string
	done, total int64
}

// row is one host.
type row struct {
	name    string
	cells   []cell
	current int // index of the phase that runs or failed, -1 if none
	aside   bool
	over    bool
	err     string
}

// state sums a row up: failed, running, done or pending.
func (r *row) state() cellState {
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

// note is a line below the table.
type note struct {
	state cellState // failed for failures, skipped for warnings, done for changes
	text  string
}

// board is what the live table shows: the state of every phase on every host, built from
// nothing but events.
type board struct {
	title   string
	started time.Time
	ended   time.Time
	phases  []string
	rows    []*row
	byName  map[string]*row
	notes   []note
	warned  []string // warnings, kept for the end
	failed  []cluster.Failed
	planned bool
	summary *cluster.Summary
}

func newBoard() *board { return &board{byName: map[string]*row{}} }

func (b *board) draw(s screen, footer string) string { return s.frame(b, footer) }
func (b *board) leave(s screen) string               { return s.final(b) }
func (b *board) told() bool                          { return b.summary != nil }

// apply takes one event in.
func (b *board) apply(e cluster.Event) {
	if e.Kind == cluster.EventRunStarted {
		b.start(e)
		return
	}
	if e.Kind == cluster.EventRunDone {
		b.summary, b.ended = e.Summary, e.Time
		return
	}
	var r *row
	if e.Host != "" {
		r = b.row(e.Host)
	}
	if e.Kind == cluster.EventWarning {
		b.warn(e)
	}
	if r == nil {
		if e.Kind == cluster.EventPhaseFailed {
			b.blame(e) // of no host in particular: all of them
		}
		return
	}
	switch {
	case e.Kind == cluster.EventHostDone:
		r.over, r.current = true, -1
	case e.Kind == cluster.EventHostSetAside:
		b.setAside(r, e)
	case e.Phase != "" && e.Kind != cluster.EventWarning:
		b.applyPhase(r, b.phase(e.Phase), e)
	}
}

// setAside marks a host as lost. Its phase may be none of the table, such as the dial.
func (b *board) setAside(r *row, e cluster.Event) {
	r.aside = true
	if i := slices.Index(b.phases, e.Phase); i >= 0 {
		r.cells[i].state = failed
	}
	if r.err == "" {
		b.fail(r, e)
	}
}

// fail keeps why a host failed.
func (b *board) fail(r *row, e cluster.Event) {
	r.err = line(e.Error)
	b.blame(e)
}

// blame tells of a failure below the table, and keeps it for the end.
func (b *board) blame(e cluster.Event) {
	b.failed = append(b.failed, cluster.Failed{Host: e.Host, Phase: e.Phase, Error: e.Error, Hint: e.Hint})
	text := e.Error
	if e.Hint != "" {
		text += " -> " + e.Hint
	}
	b.note(failed, e, text)
}

func (b *board) start(e cluster.Event) {
	b.title, b.started = line(e.Message), e.Time
	for _, p := range e.Phases {
		b.phase(p)
	}
	for _, h := range e.Hosts {
		b.row(h)
	}
}

func (b *board) applyPhase(r *row, i int, e cluster.Event) {
	c := &r.cells[i]
	switch e.Kind {
	case cluster.EventPhaseStarted:
		*c = cell{state: running, started: e.Time, changes: c.changes}
		r.current = i
	case cluster.EventProgress:
		c.message, c.done, c.total = line(e.Message), e.Done, e.Total
	case cluster.EventChanged, cluster.EventPlanned:
		c.changes++
		b.planned = b.planned || e.Kind == cluster.EventPlanned
		if e.Change != nil {
			b.note(done, e, describe(e.Change))
		}
	case cluster.EventPhaseDone:
		c.state, c.changes = done, max(c.changes, e.Changes)
		r.leave(i)
	case cluster.EventPhaseSkipped:
		c.state = skipped
		r.leave(i)
	case cluster.EventPhaseFailed:
		c.state, r.current = failed, i
		b.fail(r, e)
	}
}

// leave forgets the current phase if it is i; another one may run beside it.
func (r *row) leave(i int) {
	if r.current == i {
		r.current = -1
	}
}

func (b *board) warn(e cluster.Event) {
	text := "warning: " + e.Message
	if e.Hint != "" {
		text += " -> " + e.Hint
	}
	b.note(skipped, e, text)
	if len(b.warned) < recentKept {
		b.warned = append(b.warned, b.notes[len(b.notes)-1].text)
	}
}

func (b *board) note(s cellState, e cluster.Event, text string) {
	where := e.Host
	if e.Phase != "" {
		where += " " + e.Phase
	}
	if where != "" {
		text = where + ": " + text
	}
	b.notes = append(b.notes, note{s, line(text)})
	if len(b.notes) > recentKept {
		b.notes = b.notes[len(b.notes)-recentKept:]
	}
}

// row returns the row of a host, made if an event names one that the start did not.
func (b *board) row(host string) *row {
	if r, ok := b.byName[host]; ok {
		return r
	}
	r := &row{name: line(host), cells: make([]cell, len(b.phases)), current: -1}
	b.byName[host] = r
	b.rows = append(b.rows, r)
	return r
}

// phase returns the column of a phase, made if needed.
func (b *board) phase(name string) int {
	if i := slices.Index(b.phases, name); i >= 0 {
		return i
	}
	b.phases = append(b.phases, name)
	for _, r := range b.rows {
		r.cells = append(r.cells, cell{})
	}
	return len(b.phases) - 1
}

// changes counts what was applied, or planned, on all hosts.
func (b *board) changes() int {
	n := 0
	for _, r := range b.rows {
		for _, c := range r.cells {
			n += c.changes
		}
	}
	return n
}

// untold returns the failures that the summary does not name: those that refused a run
// before it began, for one.
func (b *board) untold() []cluster.Failed {
	if b.summary == nil {
		return b.failed
	}
	told := map[string]bool{}
	for _, f := range b.summary.Failed {
		told[f.Host+"\x00"+f.Error] = true
	}
	return slices.DeleteFunc(slices.Clone(b.failed), func(f cluster.Failed) bool { return told[f.Host+"\x00"+f.Error] })
}

// tallyRows counts the rows by state.
func tallyRows(rows []*row) map[cellState]int {
	n := map[cellState]int{}
	for _, r := range rows {
		n[r.state()]++
	}
	return n
}
