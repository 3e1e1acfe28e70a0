package progress

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/ui/tui"
)

// reader keeps the current state of a run in a board. The method apply updates the board with an event.
type reader[E any] interface {
	apply(e E)
	picture() *board
}

const (
	footerRunning  = "Ctrl-C stops after the running steps"
	footerStopping = "finishing the running steps… (Ctrl-C again stops at once)"
)

// model is the only tea.Model of a live table. Update does no I/O: events and the time arrive as messages, and Update returns side effects as
// commands.
type model[E any] struct {
	run           reader[E]
	p             tui.Palette
	width, height int
	now           time.Time
	stopping      bool // asked to stop; running steps are finished
	aborted       bool // Ctrl-C was pressed again
	over          bool

	next      tea.Cmd // yields the next frame
	interrupt tea.Cmd // asks the run to stop
}

// frame is a message with the events since the last frame, and the current time.
type frame[E any] struct {
	now    time.Time
	events []E
	closed bool
}

// stoppingMsg reports that the run was asked to stop, but not with the keyboard.
type stoppingMsg struct{}

// Init implements tea.Model.
func (m model[E]) Init() tea.Cmd { return m.next }

// Update implements tea.Model.
func (m model[E]) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case stoppingMsg:
		m.stopping = true
	case tea.KeyMsg:
		return m.key(msg)
	case frame[E]:
		m.now = msg.now
		for _, e := range msg.events {
			m.run.apply(e)
		}
		if msg.closed {
			m.over = true
			return m, tea.Quit
		}
		return m, m.next
	}
	return m, nil
}

func (m model[E]) key(k tea.KeyMsg) (tea.Model, tea.Cmd) {
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

// View implements tea.Model. The last frame is empty. The output that stays on the screen is printed after it, since a frame can't be higher
// than the screen.
func (m model[E]) View() string {
	if m.over {
		return ""
	}
	footer := footerRunning
	switch {
	case m.run.picture().ending != nil:
		footer = ""
	case m.stopping:
		footer = footerStopping
	}
	return m.screen().frame(m.run.picture(), footer)
}

func (m model[E]) screen() screen {
	s := screen{width: m.width, height: m.height, now: m.now, p: m.p}
	if s.width <= 0 || s.height <= 0 {
		s.width, s.height = 80, 24 // until the terminal has reported its size
	}
	return s
}
