package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/openpai/paictl/pkg/plural"
)

const (
	hostMax  = 24 // columns of a host name
	cellMin  = 7  // columns of a phase: a sign, a space and "12m05s" without its seconds
	nowMin   = 18 // columns below which the text of the running step is left out
	notesMin = 3  // lines of recent changes that many hosts leave room for
	notesMax = 8
	finalMax = 40 // hosts in the table that stays on the screen
)

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// screen draws a board for one size at one moment. It holds no state.
type screen struct {
	width, height int
	now           time.Time
	p             palette
}

// frame is the picture while the run goes on: at most height-1 lines of width columns.
func (s screen) frame(b *board, footer string) string {
	if b.title == "" && len(b.rows) == 0 {
		return ""
	}
	rows, notes := s.share(len(b.rows), len(b.notes))
	out := []string{s.title(b), ""}
	out = append(out, s.table(b, pick(b.rows, rows))...)
	if n := len(b.notes); notes > 0 && n > 0 {
		out = append(out, "")
		for _, l := range b.notes[n-min(n, notes):] {
			out = append(out, s.note(l))
		}
	}
	if footer != "" {
		out = append(out, "", s.p.faint(footer))
	}
	for i, l := range out {
		out[i] = ansi.Truncate(l, s.width, "…")
	}
	return strings.Join(out[:min(len(out), max(s.height-1, 1))], "\n")
}

// share divides the height between hosts and recent lines. Hosts come first; when they
// don't fit, a few recent lines are kept so that one sees that something moves.
func (s screen) share(hosts, notes int) (rows, recent int) {
	room := s.height - 1 - 5 // title, two blanks, header, footer
	if room < 1 {
		return 1, 0
	}
	if hosts+1 <= room {
		return hosts, min(notesMax, room-hosts-1)
	}
	if notes > 0 && room >= 3*notesMin {
		return room - notesMin - 2, notesMin // a blank, and the line that counts the rest
	}
	return max(room-1, 1), 0
}

// pick returns at most n rows: all in their order, or the ones that need an eye first.
func pick(rows []*row, n int) []*row {
	if len(rows) <= n {
		return rows
	}
	rank := map[cellState]int{failed: 0, running: 1, pending: 2, done: 3}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b *row) int { return rank[a.state()] - rank[b.state()] })
	return sorted[:n]
}

func (s screen) title(b *board) string {
	end := s.now
	if !b.ended.IsZero() {
		end = b.ended
	}
	parts := []string{plural.Of(len(b.rows), "host"), plural.Of(b.changes(), "change")}
	if b.planned {
		parts[1] += " planned"
	}
	if n := tallyRows(b.rows)[failed]; n > 0 {
		parts = append(parts, s.p.bad(fmt.Sprintf("%d failed", n)))
	}
	if !b.started.IsZero() {
		parts = append(parts, clock(end.Sub(b.started)))
	}
	return s.p.bold(b.title) + "  " + strings.Join(parts, " · ")
}

// table draws the chosen rows, and counts those that were not chosen.
func (s screen) table(b *board, rows []*row) []string {
	host := 4
	for _, r := range rows {
		host = max(host, min(width(r.name), hostMax))
	}
	var out []string
	if cols, gap := s.columns(b.phases, host); cols != nil {
		out = s.grid(b, rows, host, cols, gap)
	} else {
		out = s.strips(b, rows, host)
	}
	if len(rows) < len(b.rows) {
		out = append(out, s.p.faint(rest(b.rows, rows)))
	}
	return out
}

// columns returns the width of each phase's column and of the gap between two, or nil
// when a grid doesn't fit. Names are cut, from the last one on, before the grid is given up.
func (s screen) columns(phases []string, host int) (cols []int, gap int) {
	if len(phases) == 0 {
		return nil, 0
	}
	gap = 2
	if wanted(phases, gap) > s.width-host {
		gap = 1
	}
	left := s.width - host - len(phases)*(gap+cellMin)
	if left < 0 {
		return nil, 0
	}
	cols = make([]int, len(phases))
	for i, p := range phases {
		more := min(max(width(line(p))-cellMin, 0), left)
		cols[i] = cellMin + more
		left -= more
	}
	return cols, gap
}

// wanted is the width of all columns with whole names.
func wanted(phases []string, gap int) int {
	n := 0
	for _, p := range phases {
		n += gap + max(width(line(p)), cellMin)
	}
	return n
}

func (s screen) grid(b *board, rows []*row, host int, cols []int, gap int) []string {
	sep := strings.Repeat(" ", gap)
	used := host
	head := pad("host", host)
	for i, p := range b.phases {
		head += sep + pad(line(p), cols[i])
		used += gap + cols[i]
	}
	now := s.width - used - 2
	out := []string{s.p.faint(strings.TrimRight(head, " "))}
	for _, r := range rows {
		l := pad(r.name, host)
		for i, c := range r.cells {
			l += sep + s.cell(c, cols[i])
		}
		if now >= nowMin {
			l += "  " + s.doing(b, r, now, false)
		}
		out = append(out, strings.TrimRight(l, " "))
	}
	return out
}

// strips is the table for a narrow screen: one sign per phase, then the current step.
func (s screen) strips(b *board, rows []*row, host int) []string {
	out := []string{s.p.faint(pad("host", host) + "  phases")}
	for _, r := range rows {
		l := pad(r.name, host) + "  "
		for _, c := range r.cells {
			l += s.sign(c)
		}
		if left := s.width - host - 4 - len(r.cells); left > 0 {
			l += "  " + s.doing(b, r, left, true)
		}
		out = append(out, strings.TrimRight(l, " "))
	}
	return out
}

func (s screen) cell(c cell, w int) string {
	text := ""
	switch {
	case c.state == running && c.total > 0:
		text = percent(c.done, c.total)
	case c.state == running:
		text = clock(s.now.Sub(c.started))
	case c.changes > 0:
		text = fmt.Sprint(c.changes)
	}
	sign := s.sign(c)
	if text == "" {
		return sign + strings.Repeat(" ", w-1)
	}
	return sign + " " + pad(text, w-2)
}

func (s screen) sign(c cell) string {
	switch c.state {
	case running:
		return s.p.busy(s.spin())
	case done:
		return s.p.good("✓")
	case skipped:
		return s.p.faint("-")
	case failed:
		return s.p.bad("✗")
	default:
		return s.p.faint("·")
	}
}

func (s screen) spin() string {
	return string(spinner[int(s.now.UnixMilli()/100%int64(len(spinner)))])
}

// doing is what a host is at: the running step with its amount, or why it failed. With
// named set the phase comes first, for tables that have no column per phase.
func (s screen) doing(b *board, r *row, w int, named bool) string {
	if r.state() == failed {
		return s.p.bad(ansi.Truncate(r.err, w, "…"))
	}
	if r.over {
		return s.p.faint("done")
	}
	if r.current < 0 {
		return ""
	}
	c := r.cells[r.current]
	text := strings.TrimSpace(c.message + " " + amount(c.done, c.total))
	if named {
		text = strings.TrimSpace(line(b.phases[r.current]) + " " + clock(s.now.Sub(c.started)) + " " + text)
	}
	return ansi.Truncate(text, w, "…")
}

func (s screen) note(n note) string {
	switch n.state {
	case failed:
		return s.p.bad(n.text)
	case skipped:
		return s.p.warn(n.text)
	default:
		return s.p.faint(n.text)
	}
}

// final is what stays on the screen after the run.
func (s screen) final(b *board) string {
	if b.title == "" && len(b.rows) == 0 {
		return ""
	}
	out := append([]string{s.title(b), ""}, s.table(b, pick(b.rows, finalMax))...)
	for i, l := range out {
		out[i] = ansi.Truncate(l, s.width, "…")
	}
	if len(b.warned) > 0 {
		out = append(out, "")
		for _, w := range b.warned {
			out = append(out, s.p.warn(w)) // not cut: the terminal wraps what must be read
		}
	}
	var text strings.Builder
	text.WriteString(strings.Join(out, "\n") + "\n\n")
	writeFailed(&text, b.untold(), s.p.bad)
	if b.summary != nil {
		writeSummary(&text, b.summary, s.p)
	}
	return text.String()
}

// rest says in one line what the rows are that are not shown.
func rest(all, shown []*row) string {
	n, seen := tallyRows(all), tallyRows(shown)
	names := []struct {
		state cellState
		name  string
	}{{failed, "failed"}, {running, "running"}, {pending, "waiting"}, {done, "done"}}
	var parts []string
	for _, s := range names {
		if k := n[s.state] - seen[s.state]; k > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k, s.name))
		}
	}
	return "… and " + plural.Of(len(all)-len(shown), "host") + " more: " + strings.Join(parts, ", ")
}

func width(s string) int { return lipgloss.Width(s) }

// fill makes s at least w columns wide.
func fill(s string, w int) string { return s + strings.Repeat(" ", max(w-width(s), 0)) }

// pad makes s exactly w columns wide.
func pad(s string, w int) string {
	return fill(ansi.Truncate(s, w, "…"), w)
}
