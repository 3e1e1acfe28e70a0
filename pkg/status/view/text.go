package view

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// textPage is a scrollable text, such as an explanation or a growing log.
type textPage struct {
	name  string
	lines []string
	// work means that the text is the output of an action that continues after the user has left the page.
	work   bool
	stream *stream
	ended  bool
	err    error

	follow bool // stays at the end
	wrap   bool
	left   int // columns that are scrolled to the left
	search string

	rows  []string // the shown lines: truncated or wrapped
	width int
	win   tui.Window
}

func newText(name string, lines []string) *textPage {
	p := &textPage{name: name, wrap: true, ended: true}
	for _, l := range lines {
		p.lines = append(p.lines, shown(strings.Join(terminal.Lines(l), " ")))
	}
	return p
}

// newStream opens a page that shows the output of an action. If work is set, the action continues after the user has
// left the page.
func newStream(d *env, name string, work bool, f func(ctx context.Context, out io.Writer) error) effect {
	s, cmd := begin(d, f)
	p := &textPage{name: name, stream: s, follow: true, work: work, wrap: work}
	return effect{push: p, cmd: cmd}
}

func (p *textPage) title() string { return p.name }

func (p *textPage) count() string {
	s := plural.Of(len(p.lines), "line")
	if p.search != "" {
		s = fmt.Sprintf("%d of %s", len(p.rows), s)
	}
	switch {
	case p.stream == nil:
	case p.ended && p.err != nil:
		s += " · failed"
	case p.ended:
		s += " · ended"
	case p.follow:
		s += " · follows"
	default:
		s += " · continues below"
	}
	return s
}

func (p *textPage) refresh(*env) effect { return effect{} }

func (p *textPage) close() {
	if p.stream != nil && !p.work {
		p.stream.cancel()
	}
}

func (p *textPage) news(d *env, n news) tea.Cmd {
	for _, l := range n.lines {
		if d.p.Depth == tui.NoColour {
			l = ansi.Strip(l)
		} else if strings.Contains(l, "\x1b") {
			l += "\x1b[0m"
		}
		p.lines = append(p.lines, l)
		p.show(l)
	}
	if n.ended {
		p.ended, p.err = true, n.err
		if n.err != nil {
			width := p.width
			if width <= 0 {
				width = 78 // it hasn't been drawn yet
			}
			for _, l := range tui.Wrap(tui.SignBad+" "+problem(n.err), width) { // the end has the remedy
				p.lines = append(p.lines, l)
				p.show(l)
			}
		}
	}
	if over := len(p.lines) - keptLines; over > keptLines/10 {
		p.lines = append([]string(nil), p.lines[over:]...)
		p.layout(p.width)
	}
	if n.ended {
		return nil
	}
	return p.stream.next
}

// layout computes all rows for a new width or filter.
func (p *textPage) layout(w int) {
	p.width, p.rows = w, nil
	for _, l := range p.lines {
		p.show(l)
	}
}

func (p *textPage) show(l string) {
	if p.width == 0 {
		return // it is laid out when it is first drawn
	}
	if w := parseFilter(p.search); !w.empty() && !w.match(strings.ToLower(ansi.Strip(l))) {
		return
	}
	if p.wrap && tui.Width(l) > p.width {
		p.rows = append(p.rows, tui.Wrap(l, p.width)...)
		return
	}
	p.rows = append(p.rows, l)
}

func (p *textPage) draw(d *env, w, h int) []string {
	if w-2 != p.width {
		p.layout(w - 2)
	}
	p.win.Height, p.win.Len = h, len(p.rows)
	p.settle()
	if len(p.rows) == 0 {
		switch {
		case p.search != "":
			return []string{d.p.Faint.Text("  no line fits")}
		case p.ended:
			return []string{d.p.Faint.Text("  nothing")}
		}
		return []string{"  " + d.p.Busy.Text(tui.Spin(d.now)) + " asking…"}
	}
	var out []string
	for _, l := range p.rows[p.win.Top:p.win.End()] {
		if p.left > 0 {
			l = ansi.TruncateLeft(l, p.left, "")
		}
		out = append(out, "  "+l)
	}
	return out
}

// settle changes the top of the window, because a text has no cursor.
func (p *textPage) settle() {
	most := max(p.win.Len-p.win.Height, 0)
	if p.follow && p.stream != nil {
		p.win.Top = most
	}
	p.win.Top = min(max(p.win.Top, 0), most)
	p.win.Cursor = p.win.Top
}

func (p *textPage) key(_ *env, k string) (effect, bool) {
	page := max(p.win.Height-1, 1)
	switch k {
	case "up", "k":
		p.scroll(-1)
	case "down", "j":
		p.scroll(1)
	case "wheelup":
		p.scroll(-3)
	case "wheeldown":
		p.scroll(3)
	case "pgup", "ctrl+b":
		p.scroll(-page)
	case "pgdown", "ctrl+f", " ":
		p.scroll(page)
	case "home", "g":
		p.scroll(-p.win.Len)
	case "end", "G":
		p.scroll(p.win.Len)
		p.follow = true
	case "f":
		p.follow = !p.follow
	case "z":
		p.wrap, p.left = !p.wrap, 0
		p.layout(p.width)
	case "right":
		p.left += 16
	case "left":
		p.left = max(p.left-16, 0)
	case "X":
		if p.work && !p.ended {
			return effect{ask: &question{text: "Break off " + p.name + "? Completed steps are not undone.", yes: func(*env) effect { p.stream.cancel(); return effect{} }}}, true
		}
		return effect{}, false
	default:
		return effect{}, false
	}
	return effect{}, true
}

func (p *textPage) scroll(by int) {
	p.win.Top += by
	most := max(p.win.Len-p.win.Height, 0)
	p.win.Top = min(max(p.win.Top, 0), most)
	p.follow = p.win.Top == most && (p.follow || by > 0)
}

func (p *textPage) keys(*env) []binding {
	out := []binding{{"/", "only lines with"}, {"z", "wrap"}}
	if p.stream != nil && !p.ended {
		out = append([]binding{{"f", "follow"}}, out...)
		if p.work {
			out = append(out, binding{"X", "break off"})
		}
	}
	if !p.wrap {
		out = append(out, binding{"←→", "sideways"})
	}
	return out
}

func (p *textPage) filter() string { return p.search }

func (p *textPage) setFilter(_ *env, text string) {
	p.search = text
	p.layout(p.width)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
