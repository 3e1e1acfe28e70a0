package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/plural"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/tui"
)

// Options say what the view shows and where.
type Options struct {
	Source  Source
	Actions Actions
	Palette tui.Palette
	Now     func() time.Time // nil is time.Now
}

// mode is what keys mean.
type mode int

const (
	browsing mode = iota
	filtering
	jumping
	asking
	helping
)

// Model is the one tea.Model of the view.
type Model struct {
	desk
	source Source
	clock  func() time.Time
	seen   *status.Cluster

	width, height int
	screen        int // the one that the path begins with
	stack         []page
	kept          [8]page // screens that were left, with their cursors
	mode          mode
	input         textinput.Model
	before        string // the filter before it was edited
	places        []place
	choice        int
	ask           *question
	notice        *notice
	leaving       bool        // asked to quit while something is being done
	works         int         // that are being done
	background    []*textPage // those of them whose page was left
	spinning      bool        // a tick of the spinner is on its way
	over          bool

	foot  int    // lines below the page
	frame string // "" when something has changed since it was drawn
}

// New returns the view. ctx ends with the program; all that runs for the view ends with it.
func New(ctx context.Context, o Options) *Model {
	if o.Now == nil {
		o.Now = time.Now
	}
	in := textinput.New()
	in.Prompt, in.CharLimit = "", 200
	in.Cursor.SetMode(2) // hidden: the view draws the place itself, without a blinking that costs frames
	m := &Model{desk: desk{p: o.Palette, act: o.Actions, ctx: ctx, now: o.Now()}, source: o.Source, clock: o.Now, input: in}
	return m
}

// changedMsg carries a model.
type changedMsg struct{ cluster *status.Cluster }

type secondMsg time.Time

type spinMsg time.Time

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.watch(), m.second()) }

// watch waits for another model than the last.
func (m *Model) watch() tea.Cmd {
	ctx, source, seen := m.ctx, m.source, m.seen
	return func() tea.Msg {
		for {
			changed := source.Changed()
			if c := source.Current(); c != nil && c != seen {
				return changedMsg{c}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// second makes ages grow.
func (m *Model) second() tea.Cmd {
	return tea.Every(time.Second, func(t time.Time) tea.Msg { return secondMsg(t) })
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = m.clock()
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case changedMsg:
		cmd = tea.Batch(m.take(msg.cluster), m.watch())
	case secondMsg:
		cmd = m.second()
		if m.notice != nil && !m.now.Before(m.notice.until) {
			m.notice = nil
		}
	case spinMsg:
		m.spinning = false
	case answer:
		m.pending--
		if r, ok := msg.to.(received); ok && slices.Contains(m.stack, msg.to) {
			cmd = m.apply(r.receive(&m.desk, msg))
		}
	case done:
		m.pending--
		m.finish(msg)
	case news:
		cmd = m.news(msg)
	case tea.KeyMsg:
		cmd = m.key(msg)
	case tea.MouseMsg:
		var moved bool
		if cmd, moved = m.mouse(msg); !moved {
			return m, nil
		}
	case tea.ResumeMsg:
	case tea.QuitMsg:
		m.over = true
		return m, nil
	default:
		return m, nil
	}
	m.frame = ""
	return m, tea.Batch(cmd, m.spin())
}

// spin turns the spinner while something is asked.
func (m *Model) spin() tea.Cmd {
	if m.spinning || m.pending <= 0 && !m.waits() {
		return nil
	}
	m.spinning = true
	return tea.Tick(200*time.Millisecond, func(t time.Time) tea.Msg { return spinMsg(t) })
}

// waits reports whether the page waits for the first line of a text, or the first model.
func (m *Model) waits() bool {
	p, ok := m.page().(*textPage)
	return m.cluster == nil || m.cluster.Loading() || ok && !p.ended && len(p.lines) == 0
}

// take shows a new model.
func (m *Model) take(c *status.Cluster) tea.Cmd {
	first := m.cluster == nil
	m.cluster, m.seen = c, c
	if first && len(m.stack) == 0 {
		m.show(0)
	}
	return m.refresh()
}

// refresh brings the page on top up to date; those below follow when they come back.
func (m *Model) refresh() tea.Cmd {
	if p := m.page(); p != nil && m.cluster != nil {
		return m.apply(p.refresh(&m.desk))
	}
	return nil
}

func (m *Model) page() page {
	if len(m.stack) == 0 {
		return nil
	}
	return m.stack[len(m.stack)-1]
}

// show goes to a screen, as it was left.
func (m *Model) show(i int) tea.Cmd {
	for len(m.stack) > 1 {
		m.drop()
	}
	if m.kept[i] == nil {
		m.kept[i] = screenNames[i].open()
	}
	m.screen, m.stack = i, []page{m.kept[i]}
	return m.refresh()
}

// drop leaves the page on top.
func (m *Model) drop() {
	if c, ok := m.page().(closed); ok {
		c.close()
	}
	m.stack = m.stack[:len(m.stack)-1]
}

// apply does what a page wants.
func (m *Model) apply(e effect) tea.Cmd {
	cmds := []tea.Cmd{e.cmd}
	if e.say != nil {
		m.notice = e.say
	}
	if e.ask != nil {
		m.ask, m.mode = e.ask, asking
	}
	if e.back && len(m.stack) > 1 {
		m.drop()
		cmds = append(cmds, m.refresh())
	}
	if e.push != nil {
		if t, ok := e.push.(*textPage); ok && t.work {
			m.works++
		}
		m.stack = append(m.stack, e.push)
		cmds = append(cmds, m.refresh())
	}
	return tea.Batch(cmds...)
}

// finish tells the end of what was done.
func (m *Model) finish(f done) {
	switch {
	case f.err != nil:
		m.apply(complain(&m.desk, f.err))
	case f.say.text != "":
		n := f.say
		n.until = m.now.Add(noticeFor)
		if n.do != nil {
			n.until = m.now.Add(undoFor)
		}
		m.notice = &n
	}
}

// news hands lines to the page that shows them. A work may have lost its page: its end is told below.
func (m *Model) news(n news) tea.Cmd {
	for _, p := range m.stack {
		t, ok := p.(*textPage)
		if !ok || t.stream != n.of {
			continue
		}
		cmd := t.news(&m.desk, n)
		if n.ended && t.work {
			m.works--
		}
		return cmd
	}
	for _, t := range m.background {
		if t.stream != n.of {
			continue
		}
		cmd := t.news(&m.desk, n)
		if n.ended {
			m.works--
			m.background = slices.DeleteFunc(m.background, func(o *textPage) bool { return o == t })
			if n.err != nil {
				m.apply(complain(&m.desk, fmt.Errorf("%s: %w", t.name, n.err)))
			} else {
				m.apply(say(&m.desk, t.name+": done"))
			}
		}
		return cmd
	}
	return nil // its page was closed, and it is being cancelled
}

// View implements tea.Model. It draws when something has changed, and else says what it said before.
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
		return 80, 24 // until the terminal has answered
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
		body = m.page().draw(&m.desk, w, max(room-len(list), 1))
		for len(body) < room-len(list) {
			body = append(body, "")
		}
		body = append(body[:max(room-len(list), 0)], list...)
	default:
		body = m.page().draw(&m.desk, w, room)
	}
	m.foot = len(foot)
	return tui.Frame(w, h, m.head(w), body, foot)
}

// head is the state of the cluster, the screens, and where one is.
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
	right := fmt.Sprintf("%d/%d machines · %d/%d GPUs · %s ", n.MachinesReady, n.Machines, n.GPUsUsed, n.GPUs, plural.Of(n.Alerts, "alert"))
	return tui.Beside(left, m.p.Faint.Text(right), w)
}

// away says that what is shown is old.
func (m *Model) away(w int) string {
	for i := range m.cluster.Sources {
		s := &m.cluster.Sources[i]
		if s.Name != status.SourceAPI || s.State != status.StateStale && s.State != status.StateFailed {
			continue
		}
		text := "API server does not answer: " + clean(s.Message)
		if s.State == status.StateStale {
			text = fmt.Sprintf("API server away since %s (%s), showing the last state; reconnecting", s.Since.Local().Format(time.TimeOnly), seconds(m.now.Sub(s.Since)))
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

// message is above the keys: what is typed, asked or told. A question is never cut.
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

// line is what is typed or told.
func (m *Model) line(w int) string {
	switch m.mode {
	case filtering:
		return " /" + m.typed() + m.p.Faint.Text("   words must all fit, !word must not; enter keeps it, esc takes it back")
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

// typed is the input with its place marked.
func (m *Model) typed() string {
	v := []rune(m.input.Value())
	at := min(m.input.Position(), len(v))
	return clean(string(v[:at])) + m.p.Accent.Text("▏") + clean(string(v[at:]))
}

// keysLine are the keys that matter here, as many as fit.
func (m *Model) keysLine(w int) string {
	var all []binding
	if p := m.page(); p != nil {
		all = p.keys(&m.desk)
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
		all = p.keys(&m.desk)
		all = slices.DeleteFunc(all, func(b binding) bool { return b.key == "/" || b.key == "o" || b.key == "O" })
	}
	general := []binding{
		{"1 … 8", "the screens"}, {"↑↓ j k", "move"}, {"pgup pgdn", "a page"}, {"g G", "first, last"}, {"enter", "open"}, {"esc", "back, or show all again"},
		{"/", "only what has these words"}, {"/ !word", "only what has it not"}, {"o O", "order by, the other way"}, {":", "go to anything by name"},
		{"u", "take back what was done"}, {"mouse", "click, click again, wheel"}, {"shift", "with the mouse: select text"}, {"ctrl-z", "to the shell; fg returns"}, {"q ctrl-c", "quit"},
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
		m.p.Faint.Text(tui.SignUnknown)+" unknown   "+m.p.Busy.Text("▶")+" runs   "+m.p.Warn.Text("…")+" waits")
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

// compactHelp leaves out blank lines.
func compactHelp(lines []string) []string {
	return slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
}

func (m *Model) jumpList(w int) []string {
	out := []string{m.p.Faint.Text("  " + strings.Repeat("─", max(w-4, 0)))}
	if len(m.places) == 0 {
		return append(out, m.p.Faint.Text("  nothing is called that"))
	}
	for i, p := range m.places {
		out = append(out, mark(&m.desk, tui.Pad(clean(p.name), 40)+"  "+p.kind, i == m.choice, w))
	}
	return out
}
