package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/openpai/paictl/pkg/plural"
)

const (
	stateCols = 12 // a sign, a space and the longest state, "restarted"
	podCols   = 6
	timeCols  = 6
)

// serviceFrame is the picture while the run goes on: at most height-1 lines of width columns.
func (s screen) serviceFrame(b *serviceBoard, footer string) string {
	if b.title == "" && len(b.rows) == 0 {
		return ""
	}
	rows, notes := s.share(len(b.rows), len(b.notes))
	out := []string{s.serviceTitle(b), ""}
	out = append(out, s.serviceTable(b, rows)...)
	if n := len(b.notes); notes > 0 && n > 0 {
		out = append(out, "")
		for _, l := range b.notes[n-min(n, notes):] {
			out = append(out, s.note(l.note))
		}
	}
	if footer != "" {
		out = append(out, "", s.p.faint(footer))
	}
	s.cut(out)
	return strings.Join(out[:min(len(out), max(s.height-1, 1))], "\n")
}

// serviceFinal is what stays on the screen after the run.
func (s screen) serviceFinal(b *serviceBoard) string {
	if b.title == "" && len(b.rows) == 0 {
		return ""
	}
	out := append([]string{s.serviceTitle(b), ""}, s.serviceTable(b, len(b.rows))...)
	s.cut(out)
	// The summary names the failures again. These lines are not cut: the terminal wraps what
	// must be read.
	told := slices.DeleteFunc(slices.Clone(b.notes), func(n serviceNote) bool { return n.state != skipped })
	if len(told) > 0 {
		out = append(out, "")
	}
	for _, n := range told {
		out = append(out, s.note(n.note))
		for _, l := range n.log {
			out = append(out, "    | "+line(l))
		}
	}
	var text strings.Builder
	text.WriteString(strings.Join(out, "\n") + "\n\n")
	if b.summary != nil {
		writeServiceSummary(&text, b.summary, s.p)
	}
	return text.String()
}

func (s screen) cut(lines []string) {
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, s.width, "…")
	}
}

func (s screen) serviceTitle(b *serviceBoard) string {
	end := s.now
	if !b.ended.IsZero() {
		end = b.ended
	}
	n := map[cellState]int{}
	for _, r := range b.rows {
		n[r.state]++
	}
	parts := []string{plural.Of(len(b.rows), "service"), fmt.Sprintf("%d done", n[done]), plural.Of(b.changes, "change")}
	if n[failed] > 0 {
		parts = append(parts, s.p.bad(fmt.Sprintf("%d failed", n[failed])))
	}
	if !b.started.IsZero() {
		parts = append(parts, clock(end.Sub(b.started)))
	}
	return s.p.bold(b.title) + "  " + strings.Join(parts, " · ")
}

// serviceTable draws at most n services: all in their order, or those that need an eye first.
func (s screen) serviceTable(b *serviceBoard, n int) []string {
	rows := b.rows
	if len(rows) > n {
		rank := map[cellState]int{failed: 0, running: 1, skipped: 2, pending: 3, done: 4}
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, func(a, b *serviceRow) int { return rank[a.state] - rank[b.state] })
		rows = rows[:n]
	}
	name := width("service")
	for _, r := range rows {
		name = max(name, min(width(r.name), hostMax))
	}
	head := pad("service", name) + "  " + pad("state", stateCols) + pad("pods", podCols) + "time"
	out := []string{s.p.faint(head)}
	for _, r := range rows {
		out = append(out, s.serviceLine(r, name))
	}
	if rest := len(b.rows) - len(rows); rest > 0 {
		out = append(out, s.p.faint(fmt.Sprintf("… and %s more", plural.Of(rest, "service"))))
	}
	return out
}

func (s screen) serviceLine(r *serviceRow, name int) string {
	pods, took := "", ""
	if r.pods > 0 {
		pods = fmt.Sprintf("%d/%d", r.ready, r.pods)
	}
	switch {
	case r.state == running:
		took = clock(s.now.Sub(r.started))
	case r.took > 0:
		took = clock(r.took.Round(time.Second))
	}
	l := pad(r.name, name) + "  " + s.sign(cell{state: r.state}) + " " + pad(r.word, stateCols-2) + pad(pods, podCols) + pad(took, timeCols)
	reason := r.reason
	if r.state == failed {
		reason = s.p.bad(reason)
	}
	return strings.TrimRight(l+" "+reason, " ")
}
