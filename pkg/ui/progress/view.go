package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/ui/tui"
)

const (
	nameMax  = 24 // columns of a host's or service's name
	notesMin = 3  // the number of lines of recent changes if there are many rows
	notesMax = 8
	finalMax = 40 // rows in the table that stays on the screen
)

// screen draws a board for a given size and time. It holds no state of the run.
type screen struct {
	width, height int
	now           time.Time
	p             tui.Palette
}

// frame returns the display during the run: at most height-1 lines of at most width columns.
func (s screen) frame(b *board, footer string) string {
	if b.title == "" && len(b.rows) == 0 {
		return ""
	}
	rows, notes := s.share(len(b.rows), len(b.notes))
	out := []string{s.title(b), ""}
	out = append(out, b.kind.table(s, b, pick(b.rows, rows))...)
	if n := len(b.notes); notes > 0 && n > 0 {
		out = append(out, "")
		for _, l := range b.notes[n-min(n, notes):] {
			out = append(out, s.note(l))
		}
	}
	if footer != "" {
		out = append(out, "", s.p.Faint.Text(footer))
	}
	s.cut(out)
	return strings.Join(out[:min(len(out), max(s.height-1, 1))], "\n")
}

func (s screen) cut(lines []string) {
	for i, l := range lines {
		lines[i] = tui.Cut(l, s.width)
	}
}

// share divides the height among the rows of the table and the recent lines below it. Rows have priority, but if not all rows fit, a few recent
// lines are kept to show that the run makes progress.
func (s screen) share(count, notes int) (rows, recent int) {
	room := s.height - 1 - 5 // lines for the title, two blanks, the header and the footer
	if room < 1 {
		return 1, 0
	}
	if count+1 <= room {
		return count, min(notesMax, room-count-1)
	}
	if notes > 0 && room >= 3*notesMin {
		return room - notesMin - 2, notesMin // a blank line, and the line that counts the remaining rows
	}
	return max(room-1, 1), 0
}

func (s screen) title(b *board) string {
	end := s.now
	if !b.ended.IsZero() {
		end = b.ended
	}
	parts := b.kind.figures(b)
	if n := tallyRows(b.rows)[failed]; n > 0 {
		parts = append(parts, s.p.Bad.Text(fmt.Sprintf("%d failed", n)))
	}
	if !b.started.IsZero() {
		parts = append(parts, tui.Clock(end.Sub(b.started)))
	}
	return s.p.Bold.Text(b.title) + "  " + strings.Join(parts, " · ")
}

// names returns the width of the first column, which contains the names.
func (s screen) names(title string, rows []*row) int {
	w := tui.Width(title)
	for _, r := range rows {
		w = max(w, min(tui.Width(r.name), nameMax))
	}
	return w
}

func (s screen) sign(state cellState) string {
	switch state {
	case running:
		return s.p.Busy.Text(tui.Spin(s.now))
	case done:
		return s.p.Good.Text(tui.SignGood)
	case skipped:
		return s.p.Faint.Text(tui.SignSkipped)
	case failed:
		return s.p.Bad.Text(tui.SignBad)
	default:
		return s.p.Faint.Text(tui.SignNone)
	}
}

func (s screen) note(n note) string {
	switch n.state {
	case failed:
		return s.p.Bad.Text(n.text)
	case skipped:
		return s.p.Warn.Text(n.text)
	default:
		return s.p.Faint.Text(n.text)
	}
}

// final returns the output that stays on the screen after the run.
func (s screen) final(b *board) string {
	if b.title == "" && len(b.rows) == 0 {
		return ""
	}
	out := append([]string{s.title(b), ""}, b.kind.table(s, b, pick(b.rows, finalMax))...)
	s.cut(out)
	if len(b.warned) > 0 {
		out = append(out, "")
	}
	for _, n := range b.warned {
		out = append(out, s.note(n)) // not truncated: the terminal wraps long warnings
		for _, l := range n.log {
			out = append(out, "    | "+line(l))
		}
	}
	var text strings.Builder
	text.WriteString(strings.Join(out, "\n") + "\n\n")
	writeFailed(&text, b.untold(), s.p.Bad)
	writeEnding(&text, b.ending, s.p)
	return text.String()
}
