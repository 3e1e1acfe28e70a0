package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// View implements tea.Model. It draws a new frame if something has changed. Otherwise it returns the last frame.
func (m *Model) View() string {
	if m.over {
		return ""
	}
	if m.frame == "" {
		m.frame = m.draw()
	}
	return m.frame
}

func (m *Model) size() (w, h int) {
	if m.width <= 0 || m.height <= 0 {
		return 80, 24 // until the terminal has reported its size
	}
	return m.width, m.height
}

const headLines = 3

func (m *Model) draw() string {
	w, h := m.size()
	foot := append(m.message(w), m.keysLine(w))
	room := max(h-headLines-len(foot), 1)
	var body []string
	switch {
	case m.mode == helping:
		body = m.help(w)
	case m.page() == nil:
		body = []string{"", "  " + m.p.Busy.Text(tui.Spin(m.now)) + " asking the cluster…"}
	case m.mode == jumping:
		list := m.jumpList(w)
		m.listed = len(list)
		body = m.page().draw(&m.env, w, max(room-len(list), 1))
		for len(body) < room-len(list) {
			body = append(body, "")
		}
		body = append(body[:max(room-len(list), 0)], list...)
	default:
		body = m.page().draw(&m.env, w, room)
	}
	m.foot = len(foot)
	return tui.Frame(w, h, m.head(w), body, foot)
}

// head returns the first three lines: the state of the cluster, the screens, and the current path.
func (m *Model) head(w int) []string {
	return []string{m.stateLine(w), m.tabs(w), m.path(w)}
}

func (m *Model) stateLine(w int) string {
	c := m.cluster
	if c == nil {
		return m.p.Bold.Text(" paictl status")
	}
	if l := m.away(w); l != "" {
		return l
	}
	v := m.level(c.Verdict.Level)
	what := map[string]string{status.LevelOK: "healthy", status.LevelWarning: "needs a look", status.LevelCritical: "something is broken", status.LevelUnknown: "not all is known"}[c.Verdict.Level]
	left := " " + m.p.Bold.Text(clean(c.Name)) + "  " + v.Style.Text(v.Text+" "+what)
	if c.Loading() {
		left = " " + m.p.Bold.Text(clean(c.Name)) + "  " + m.p.Busy.Text(tui.Spin(m.now)) + " asking the cluster…"
	}
	n := c.Counts
	alerts := plural.Of(n.Alerts, "alert")
	if !c.Knows(status.SourceAlerts) {
		alerts = "alerts not known"
	}
	right := fmt.Sprintf("%d/%d machines · %d/%d GPUs · %s ", n.MachinesReady, n.Machines, n.GPUsUsed, n.GPUs, alerts)
	return tui.Beside(left, m.p.Faint.Text(right), w)
}

// away returns a warning if the API server doesn't respond, or "".
func (m *Model) away(w int) string {
	for i := range m.cluster.Sources {
		s := &m.cluster.Sources[i]
		if s.Name != status.SourceAPI || s.State != status.StateStale && s.State != status.StateFailed {
			continue
		}
		text := "API server does not answer: " + clean(s.Message)
		if s.State == status.StateStale {
			text = fmt.Sprintf("API server not reachable since %s (%s), showing the last state; reconnecting", s.Since.Local().Format(time.TimeOnly), seconds(m.now.Sub(s.Since)))
		}
		return m.p.Bad.With(m.p.Bold).Text(tui.Cut(" "+tui.SignWarn+" "+text, w))
	}
	return ""
}

func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return tui.Clock(d)
}

func (m *Model) tabs(w int) string {
	var b strings.Builder
	for i, s := range screenNames {
		if i == m.screen {
			b.WriteString(m.p.Accent.With(m.p.Bold).Text(fmt.Sprintf("[%d %s]", i+1, s.short)))
		} else {
			b.WriteString(m.p.Faint.Text(fmt.Sprintf(" %d %s ", i+1, s.short)))
		}
	}
	return tui.Cut(b.String(), w)
}

func (m *Model) path(w int) string {
	if m.page() == nil {
		return ""
	}
	names := make([]string, len(m.stack))
	for i, p := range m.stack {
		names[i] = clean(p.title())
	}
	last := len(names) - 1
	names[last] = m.p.Bold.Text(names[last])
	left := " " + strings.Join(names, " › ")
	right := ""
	if c, ok := m.page().(counted); ok {
		right = c.count()
	}
	if f, ok := m.page().(filtered); ok && f.filter() != "" && m.mode != filtering {
		right = "/" + clean(f.filter()) + " · " + right
	}
	return tui.Beside(left, m.p.Accent.Text(right+" "), w)
}

// message returns the line above the keys: the input, a question or a notice. It never truncates a question.
func (m *Model) message(w int) []string {
	if m.mode != asking {
		return []string{m.line(w)}
	}
	var out []string
	for _, l := range tui.Wrap(clean(m.ask.text), w-2) {
		out = append(out, " "+m.p.Warn.With(m.p.Bold).Text(l))
	}
	return append(out, "   "+m.p.Bold.Text("y")+" yes   "+m.p.Bold.Text("n")+" no")
}

// line returns the user's input. If the user isn't typing, it returns the notice or the spinner.
func (m *Model) line(w int) string {
	switch m.mode {
	case filtering:
		return " /" + m.typed() + m.p.Faint.Text("   all words must match, !word must not; enter keeps the filter, esc clears it")
	case jumping:
		return " :" + m.typed()
	}
	n := m.notice
	if n == nil {
		if m.pending > 0 || m.works > 0 {
			what := "asking…"
			if m.works > 0 {
				what = plural.Of(m.works, "work") + " in progress"
			}
			return " " + m.p.Busy.Text(tui.Spin(m.now)) + " " + m.p.Faint.Text(what)
		}
		return ""
	}
	sign, style := tui.SignGood, m.p.Good
	if n.bad {
		sign, style = tui.SignBad, m.p.Bad
	}
	text := " " + style.Text(sign+" "+clean(n.text))
	if n.do != nil {
		text += "   " + m.p.Bold.Text("u") + fmt.Sprintf(" to %s (%d s)", n.undo, int(n.until.Sub(m.now).Seconds()+0.5))
	}
	return tui.Cut(text, w)
}

// typed returns the input with a marked cursor.
func (m *Model) typed() string {
	v := []rune(m.input.Value())
	at := min(m.input.Position(), len(v))
	return clean(string(v[:at])) + m.p.Accent.Text("▏") + clean(string(v[at:]))
}

// keysLine returns the general keys, and as many keys of the page as fit.
func (m *Model) keysLine(w int) string {
	var all []binding
	if p := m.page(); p != nil {
		all = p.keys(&m.env)
	}
	last := []binding{{":", "go to"}, {"?", "help"}, {"q", "quit"}}
	if len(m.stack) > 1 {
		last = []binding{{"esc", "back"}, {":", "go to"}, {"?", "help"}}
	}
	end := ""
	for _, b := range last {
		end += "  " + m.p.Bold.Text(b.key) + " " + m.p.Faint.Text(b.does)
	}
	l := ""
	for _, b := range all {
		part := " " + m.p.Bold.Text(b.key) + " " + m.p.Faint.Text(b.does) + " "
		if tui.Width(l)+tui.Width(part)+tui.Width(end) > w {
			break
		}
		l += part
	}
	return tui.Cut(tui.Fill(l, w-tui.Width(end)-1)+end, w)
}

func (m *Model) help(w int) []string {
	var all []binding
	if p := m.page(); p != nil {
		all = p.keys(&m.env)
		all = slices.DeleteFunc(all, func(b binding) bool { return b.key == "/" || b.key == "o" || b.key == "O" })
	}
	general := []binding{
		{"1 … 8", "the screens"}, {"↑↓ j k", "move"}, {"pgup pgdn", "a page"}, {"g G", "first, last"}, {"enter", "open"}, {"esc", "back, or show all again"},
		{"/", "only lines with these words"}, {"/ !word", "only lines without it"}, {"o O", "sort by, reverse"}, {":", "go to anything by name"},
		{"u", "undo the last action"}, {"mouse", "click, click again, wheel"}, {"shift", "with the mouse: select text"}, {"ctrl-z", "to the shell; fg returns"}, {"q ctrl-c", "quit"},
	}
	block := func(title string, bs []binding) []string {
		out := []string{m.p.Bold.Text(title)}
		for _, b := range bs {
			out = append(out, m.p.Accent.Text(tui.Pad(b.key, 9))+" "+b.does)
		}
		return out
	}
	left := block("Everywhere", general)
	var right []string
	if len(all) > 0 {
		right = append(block("Here: "+clean(m.page().title()), all), "")
	}
	right = append(right, m.p.Bold.Text("Signs"),
		m.p.Good.Text(tui.SignGood)+" good   "+m.p.Warn.Text(tui.SignWarn)+" needs a look   "+m.p.Bad.Text(tui.SignBad)+" broken",
		m.p.Faint.Text(tui.SignUnknown)+" unknown   "+m.p.Busy.Text("▶")+" runs   "+m.p.Warn.Text("…")+" waits",
		m.p.Faint.Text(tui.SignInfo)+" information   "+m.p.Faint.Text(tui.SignSkipped)+" silenced, cordoned")
	var out []string
	if w < 76 {
		for _, l := range append(right, left...) {
			out = append(out, "  "+l)
		}
		return compactHelp(out)
	}
	for i := range max(len(left), len(right)) {
		l, r := "", ""
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		out = append(out, "  "+tui.Pad(l, min(w/2-2, 50))+r)
	}
	return out
}

// compactHelp returns the help without blank lines.
func compactHelp(lines []string) []string {
	return slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
}

func (m *Model) jumpList(w int) []string {
	out := []string{m.p.Faint.Text("  " + strings.Repeat("─", max(w-4, 0)))}
	if len(m.places) == 0 {
		return append(out, m.p.Faint.Text("  nothing has this name"))
	}
	for i, p := range m.places {
		out = append(out, mark(&m.env, tui.Pad(clean(p.name), 40)+"  "+p.kind, i == m.choice, w))
	}
	return out
}
