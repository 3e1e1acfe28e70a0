package progress

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/cluster"
)

// picture is what a run has become so far: built from its events, drawn for a screen.
type picture[E any] interface {
	apply(e E)
	// draw is the frame while the run goes on, leave is what stays on the screen after it.
	draw(s screen, footer string) string
	leave(s screen) string
	// told says that the run's summary has come.
	told() bool
}

const (
	footerRunning  = "Ctrl-C stops after the running steps"
	footerStopping = "finishing the running steps… (Ctrl-C again stops at once)"
)

// model is the tea.Model of "cluster ...".
type model = modelOf[cluster.Event]

// modelOf is the one tea.Model of a live table. Update does no I/O: events and the time come
// in as messages, and what must be done goes out as commands.
type modelOf[E any] struct {
	board         picture[E]
	p             palette
	width, height int
	now           time.Time
	stopping      bool // asked to stop; steps that run are finished
	aborted       bool // asked a second time
	over          bool

	next      tea.Cmd // yields the next frameMsg
	interrupt tea.Cmd // asks the run to stop
}

// frameMsg is that of "cluster ...".
type frameMsg = frameOf[cluster.Event]

// frameOf carries the events since the last frame, and the time.
type frameOf[E any] struct {
	now    time.Time
	events []E
	closed bool
}

// stoppingMsg says that the run was asked to stop by other means than the keyboard.
type stoppingMsg struct{}

// Init implements tea.Model.
func (m modelOf[E]) Init() tea.Cmd { return m.next }

// Update implements tea.Model.
func (m modelOf[E]) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case stoppingMsg:
		m.stopping = true
	case tea.KeyMsg:
		return m.key(msg)
	case frameOf[E]:
		m.now = msg.now
		for _, e := range msg.events {
			m.board.apply(e)
		}
		if msg.closed {
			m.over = true
			return m, tea.Quit
		}
		return m, m.next
	}
	return m, nil
}

func (m modelOf[E]) key(k tea.KeyMsg) (tea.Model, tea.Cmd) {
	if k.Type != tea.KeyCtrlC {
		return m, nil
	}
	if m.stopping {
		m.aborted, m.over = true, true
		return m, tea.Quit
	}
	m.stopping = true
	return m, m.interrupt
}

// View implements tea.Model. The last frame is empty: what stays is printed afterwards,
// since a frame can't be higher than the screen.
func (m modelOf[E]) View() string {
	if m.over {
		return ""
	}
	footer := footerRunning
	switch {
	case m.board.told():
		footer = ""
	case m.stopping:
		footer = footerStopping
	}
	return m.board.draw(m.screen(), footer)
}

func (m modelOf[E]) screen() screen {
	s := screen{width: m.width, height: m.height, now: m.now, p: m.p}
	if s.width <= 0 || s.height <= 0 {
		s.width, s.height = 80, 24 // until the terminal has answered
	}
	return s
}
