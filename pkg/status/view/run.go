package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/openpai/paictl/pkg/ui/tui"
)

// framesPerSecond is the maximum number of writes to the terminal per second.
const framesPerSecond = 30

// Run shows the view on the terminal until the user quits or ctx ends. Then it cancels running actions and restores the
// terminal, even after a panic.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &guarded{Model: New(ctx, o)}
	program := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithMouseCellMotion(),
		tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler()) // signals end ctx
	m.quit = program.Quit
	// Call Quit instead of passing ctx to the program. With ctx, the program would close the keyboard during a read.
	stopped := context.AfterFunc(ctx, program.Quit)
	defer stopped()
	_, err := program.Run()
	switch {
	case m.broken != nil:
		return m.broken
	case errors.Is(err, tea.ErrProgramPanic): // of a command
		return fmt.Errorf("the view broke: %w", err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("draw on the terminal: %w", err)
	}
	return nil
}

// guarded quits the program properly if the view panics. Otherwise the program would close the keyboard during a read.
type guarded struct {
	*Model
	quit   func()
	broken error
}

// Update implements tea.Model.
func (g *guarded) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	defer g.recovered()
	next = g
	if g.broken == nil {
		_, cmd = g.Model.Update(msg)
	}
	return next, cmd
}

// View implements tea.Model.
func (g *guarded) View() string {
	defer g.recovered()
	if g.broken != nil {
		return ""
	}
	return g.Model.View()
}

func (g *guarded) recovered() {
	if r := recover(); r != nil {
		g.broken = fmt.Errorf("the view broke: %v\n%s", r, debug.Stack())
		go g.quit() // it is handled after this message
	}
}

// PaletteFor queries the terminal for its background color, and reads the number of colors from the environment. Call
// it before Run. It doesn't query tmux and screen. For tmux and screen, COLORFGBG=0;15 in the environment means a light
// background.
func PaletteFor(out io.Writer, colour bool) tui.Palette {
	if !colour {
		return tui.NewPalette(tui.NoColour, false)
	}
	r := lipgloss.NewRenderer(out, termenv.WithTTY(true)) // only for colours of a terminal
	depth := tui.Colours16
	switch r.ColorProfile() {
	case termenv.TrueColor:
		depth = tui.TrueColour
	case termenv.ANSI256:
		depth = tui.Colours256
	case termenv.Ascii:
		return tui.NewPalette(tui.NoColour, false)
	}
	return tui.NewPalette(depth, !r.HasDarkBackground())
}
