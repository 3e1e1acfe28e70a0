package progress

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/tui"
)

const (
	cellMin = 7  // columns of a phase: a sign, a space and "12m05s" without its seconds
	nowMin  = 18 // with fewer columns, the text of the running step is omitted
)

// grid draws a table with a row per host and a column per phase.
type grid struct{}

func (grid) figures(b *board) []string {
	parts := []string{plural.Of(len(b.rows), b.noun), plural.Of(b.allChanges(), "change")}
	if b.planned {
		parts[1] += " planned"
	}
	return parts
}

// table draws the given rows, and adds a line with the number of the other rows.
func (g grid) table(s screen, b *board, rows []*row) []string {
	host := s.names("host", rows)
	var out []string
	if cols, gap := g.columns(s, b.phases, host); cols != nil {
		out = g.cells(s, b, rows, host, cols, gap)
	} else {
		out = g.strips(s, b, rows, host)
	}
	if len(rows) < len(b.rows) {
		out = append(out, s.p.Faint.Text(rest(b, rows)))
	}
	return out
}

// columns returns the width of the column of each phase and of the gap between two columns. If the names of the phases are too long, it shortens
// them, beginning with the last. It returns nil if the columns don't fit even with short names.
func (grid) columns(s screen, phases []string, host int) (cols []int, gap int) {
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
		more := min(max(tui.Width(line(p))-cellMin, 0), left)
		cols[i] = cellMin + more
		left -= more
	}
	return cols, gap
}

// wanted returns the total width of the columns if no name is shortened.
func wanted(phases []string, gap int) int {
	n := 0
	for _, p := range phases {
		n += gap + max(tui.Width(line(p)), cellMin)
	}
	return n
}

func (grid) cells(s screen, b *board, rows []*row, host int, cols []int, gap int) []string {
	sep := tui.Spaces(gap)
	used := host
	head := tui.Pad("host", host)
	for i, p := range b.phases {
		head += sep + tui.Pad(line(p), cols[i])
		used += gap + cols[i]
	}
	now := s.width - used - 2
	out := []string{s.p.Faint.Text(strings.TrimRight(head, " "))}
	for _, r := range rows {
		l := tui.Pad(r.name, host)
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

// strips draws the table for a narrow screen. Each row has one sign per phase, followed by the current step.
func (grid) strips(s screen, b *board, rows []*row, host int) []string {
	out := []string{s.p.Faint.Text(tui.Pad("host", host) + "  phases")}
	for _, r := range rows {
		l := tui.Pad(r.name, host) + "  "
		for _, c := range r.cells {
			l += s.sign(c.state)
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
		text = tui.Clock(s.now.Sub(c.started))
	case c.changes > 0:
		text = fmt.Sprint(c.changes)
	}
	sign := s.sign(c.state)
	if text == "" {
		return sign + tui.Spaces(w-1)
	}
	return sign + " " + tui.Pad(text, w-2)
}

// doing returns the current step of a host with its progress, or the reason why the host failed. If named is set, the text begins with the name
// of the phase; tables without columns for phases need that.
func (s screen) doing(b *board, r *row, w int, named bool) string {
	if r.state == failed {
		return s.p.Bad.Text(ansi.Truncate(r.reason, w, "…"))
	}
	if r.over {
		return s.p.Faint.Text("done")
	}
	if r.current < 0 {
		return ""
	}
	c := r.cells[r.current]
	text := strings.TrimSpace(c.message + " " + amount(c.done, c.total))
	if named {
		text = strings.TrimSpace(line(b.phases[r.current]) + " " + tui.Clock(s.now.Sub(c.started)) + " " + text)
	}
	return ansi.Truncate(text, w, "…")
}

// rest summarizes the rows that are not shown in one line.
func rest(b *board, shown []*row) string {
	n, seen := tallyRows(b.rows), tallyRows(shown)
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
	return "… and " + plural.Of(len(b.rows)-len(shown), b.noun) + " more: " + strings.Join(parts, ", ")
}
