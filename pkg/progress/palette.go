package progress

import (
	"io"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// palette holds the few colours in use. Without colour each is the identity.
type palette struct{ bold, faint, good, bad, warn, busy func(string) string }

func newPalette(w io.Writer, colour bool) palette {
	r := lipgloss.NewRenderer(w)
	if colour {
		r.SetColorProfile(termenv.ANSI) // the terminal's own sixteen colours
	} else {
		r.SetColorProfile(termenv.Ascii)
	}
	style := func(s lipgloss.Style) func(string) string {
		if !colour {
			return func(t string) string { return t }
		}
		s = s.Inline(true)
		return func(t string) string { return s.Render(t) }
	}
	return palette{
		bold:  style(r.NewStyle().Bold(true)),
		faint: style(r.NewStyle().Faint(true)),
		good:  style(r.NewStyle().Foreground(lipgloss.Color("2"))),
		bad:   style(r.NewStyle().Foreground(lipgloss.Color("1"))),
		warn:  style(r.NewStyle().Foreground(lipgloss.Color("3"))),
		busy:  style(r.NewStyle().Foreground(lipgloss.Color("6"))),
	}
}
