package progress

import (
	"slices"
	"time"
)

// recentKept limits the number of lines below the table, and the number of warnings that are kept for the end of the run.
const recentKept = 50

type cellState int

const (
	pending cellState = iota
	running
	done
	skipped
	failed
)

// cell is one phase of a row of the table.
type cell struct {
	state       cellState
	changes     int
	started     time.Time
	message     string
	done, total int64
}

// row is one row of the table: a host or a service.
type row struct {
	name    string
	state   cellState
	started time.Time
	took    time.Duration // the duration, set when the row has ended
	word    string        // its current state: starting, ready, stopped ...
	reason  string        // why it failed, isn't ready, or became ready

	pods, ready int

	cells   []cell
	current int // index of the phase that runs or failed, -1 if none
	aside   bool
	over    bool
}

// note is a line below the table. log holds the last lines of a crashed container, which are shown at the end of the run. They are kept because
// the pods may be gone by then: reverting a release removes its pods.
type note struct {
	state cellState // failed for failures, skipped for warnings, done for changes
	text  string
	log   []string
}

// failure is the reason why a row failed. It is printed at the end of the run.
type failure struct{ name, phase, err, hint string }

// outcome is the result of a run: its figures, its failures, the rows that wait for failed rows, and the command that continues the run.
type outcome struct {
	figures string
	blame   string // the line above the failures
	failed  []failure
	waiting []string
	retry   string
}

// drawing is the part of the display that depends on the kind of run: on machines or on services.
type drawing interface {
	// figures returns the counts for the title, such as "3 hosts".
	figures(b *board) []string
	// table draws the given rows, which are all rows of the board or some of them.
	table(s screen, b *board, rows []*row) []string
}

// board is the content of the live table. It is built only from events.
type board struct {
	kind    drawing
	noun    string // the noun for a row: host, service
	title   string
	started time.Time
	ended   time.Time
	phases  []string // the columns, in runs that have phases
	rows    []*row
	byName  map[string]*row
	notes   []note
	warned  []note // warnings, kept for the end
	failed  []failure
	changes int // changes outside of a phase
	planned bool
	ending  *outcome // nil while the run is active
}

func newBoard(kind drawing, noun string) *board {
	return &board{kind: kind, noun: noun, byName: map[string]*row{}}
}

// note adds a line below the table. Warnings are also kept, and shown again at the end of the run.
func (b *board) note(s cellState, text string, log ...string) {
	n := note{s, line(text), log}
	b.notes = append(b.notes, n)
	if len(b.notes) > recentKept {
		b.notes = slices.Delete(b.notes, 0, len(b.notes)-recentKept)
	}
	if s == skipped && len(b.warned) < recentKept {
		b.warned = append(b.warned, n)
	}
}

// row returns the row of a host or service. It adds the row if the event that started the run didn't contain the name.
func (b *board) row(name string) *row {
	if r, ok := b.byName[name]; ok {
		return r
	}
	r := &row{name: line(name), cells: make([]cell, len(b.phases)), current: -1}
	b.byName[name] = r
	b.rows = append(b.rows, r)
	return r
}

// phase returns the index of the column of a phase. It adds the column if needed.
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

// allChanges returns the number of changes of all rows. In a dry run, these are planned changes.
func (b *board) allChanges() int {
	n := b.changes
	for _, r := range b.rows {
		for _, c := range r.cells {
			n += c.changes
		}
	}
	return n
}

// untold returns the failures that are not in the summary, for example failures that prevented a run from beginning.
func (b *board) untold() []failure {
	if b.ending == nil {
		return b.failed
	}
	type cause struct{ name, err string }
	told := map[cause]bool{}
	for _, f := range b.ending.failed {
		told[cause{f.name, f.err}] = true
	}
	return slices.DeleteFunc(slices.Clone(b.failed), func(f failure) bool { return told[cause{f.name, f.err}] })
}

// tallyRows counts the rows by state.
func tallyRows(rows []*row) map[cellState]int {
	n := map[cellState]int{}
	for _, r := range rows {
		n[r.state]++
	}
	return n
}

// pick returns at most n rows. If there are more than n rows, it prefers rows that need attention.
func pick(rows []*row, n int) []*row {
	if len(rows) <= n {
		return rows
	}
	rank := map[cellState]int{failed: 0, running: 1, skipped: 2, pending: 3, done: 4}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b *row) int { return rank[a.state] - rank[b.state] })
	return sorted[:n]
}

func arrow(hint string) string {
	if hint == "" {
		return ""
	}
	return " -> " + hint
}
