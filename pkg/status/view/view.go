package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// Options specifies the source, the actions and the colors of the view.
type Options struct {
	Source  Source
	Actions Actions
	Palette tui.Palette
	Now     func() time.Time // nil is time.Now
}

// mode determines the meaning of keys.
type mode int

const (
	browsing mode = iota
	filtering
	jumping
	asking
	helping
)

// Model is the tea.Model of the view.
type Model struct {
	env
	source Source
	clock  func() time.Time
	seen   *status.Cluster

	width, height int
	screen        int // the first page of the path
	stack         []page
	kept          [8]page // screens that were left, with their cursors
	mode          mode
	input         textinput.Model
	before        string // the filter before it was edited
	places        []place
	choice        int
	ask           *question
	notice        *notice
	leaving       bool        // the user wants to quit while an action is running
	works         int         // actions in progress
	background    []*textPage // the pages of running actions that the user left
	spinning      bool        // a tick of the spinner is scheduled
	over          bool

	foot int // lines below the page
	// listed is the number of lines that the list of jump targets covers, including the line above it.
	listed int
	frame  string // "" if something has changed since it was drawn
}

// New returns a view. When ctx ends, the view cancels all actions.
func New(ctx context.Context, o Options) *Model {
	if o.Now == nil {
		o.Now = time.Now
	}
	in := textinput.New()
	in.Prompt, in.CharLimit = "", 200
	in.Cursor.SetMode(2) // hidden: the view draws the cursor itself, because blinking costs frames
	m := &Model{env: env{p: o.Palette, act: o.Actions, ctx: ctx, now: o.Now()}, source: o.Source, clock: o.Now, input: in}
	return m
}

type changedMsg struct{ cluster *status.Cluster }

type secondMsg time.Time

type spinMsg time.Time

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.watch(), m.second()) }

// watch returns a command that waits for a newer model.
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

// second returns a command that updates the displayed ages every second.
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
			cmd = m.apply(r.receive(&m.env, msg))
		}
	case done:
		m.pending--
		m.finish(msg)
		if msg.away {
			cmd = tea.EnableMouseCellMotion
		}
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
		cmd = tea.EnableMouseCellMotion // bubbletea turned it off, and doesn't turn it on again
	case tea.QuitMsg:
		m.over = true
		return m, nil
	default:
		return m, nil
	}
	m.frame = ""
	return m, tea.Batch(cmd, m.spin())
}

// spin schedules the next frame of the spinner while the page is loading.
func (m *Model) spin() tea.Cmd {
	if m.spinning || m.pending <= 0 && !m.waits() {
		return nil
	}
	m.spinning = true
	return tea.Tick(200*time.Millisecond, func(t time.Time) tea.Msg { return spinMsg(t) })
}

// waits reports whether the page waits for the first line of a text, or for a source that hasn't responded.
func (m *Model) waits() bool {
	p, ok := m.page().(*textPage)
	return m.cluster == nil || m.cluster.Loading() || ok && !p.ended && len(p.lines) == 0
}

func (m *Model) take(c *status.Cluster) tea.Cmd {
	first := m.cluster == nil
	m.cluster, m.seen = c, c
	if first && len(m.stack) == 0 {
		m.show(0)
	}
	return m.refresh()
}

// refresh updates only the top page. Other pages are updated when they are shown again.
func (m *Model) refresh() tea.Cmd {
	if p := m.page(); p != nil && m.cluster != nil {
		return m.apply(p.refresh(&m.env))
	}
	return nil
}

func (m *Model) page() page {
	if len(m.stack) == 0 {
		return nil
	}
	return m.stack[len(m.stack)-1]
}

// show opens a screen in its last state and closes all other pages.
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

func (m *Model) drop() {
	if c, ok := m.page().(closed); ok {
		c.close()
	}
	m.stack = m.stack[:len(m.stack)-1]
}

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

// finish shows a notice about the result of an action.
func (m *Model) finish(f done) {
	switch {
	case f.err != nil:
		m.apply(complain(&m.env, f.err))
	case f.say.text != "":
		n := f.say
		n.until = m.now.Add(noticeFor)
		if n.do != nil {
			n.until = m.now.Add(undoFor)
		}
		m.notice = &n
	}
}

// news passes lines to the page of their stream. If that page is closed, a notice reports the end of the action.
func (m *Model) news(n news) tea.Cmd {
	for _, p := range m.stack {
		t, ok := p.(*textPage)
		if !ok || t.stream != n.of {
			continue
		}
		cmd := t.news(&m.env, n)
		if n.ended && t.work {
			m.works--
		}
		return cmd
	}
	for _, t := range m.background {
		if t.stream != n.of {
			continue
		}
		cmd := t.news(&m.env, n)
		if n.ended {
			m.works--
			m.background = slices.DeleteFunc(m.background, func(o *textPage) bool { return o == t })
			if n.err != nil {
				m.apply(complain(&m.env, fmt.Errorf("%s: %w", t.name, n.err)))
			} else {
				m.apply(say(&m.env, t.name+": done"))
			}
		}
		return cmd
	}
	return nil // its page was closed, and it is being cancelled
}
