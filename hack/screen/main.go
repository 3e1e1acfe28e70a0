// screen draws the contents of a terminal as an SVG picture.
// In: the text of a screen with its colors, as "tmux capture-pane -pe" prints it, on standard input. Out: the picture, on standard output.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// These are the size of a terminal cell in pixels, and the default colors.
const (
	cellWidth, cellHeight = 8.4, 17
	margin                = 12
	foreground            = "#d8d8d8"
	background            = "#1b1d23"
)

func main() {
	if err := draw(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "screen:", err)
		os.Exit(1)
	}
}

// style is the style of a text. Colors are SVG colors, or "" for the default of the terminal.
type style struct {
	fg, bg               string
	bold, faint, reverse bool
}

// piece is a text with one style that begins at a column.
type piece struct {
	column int
	text   string
	style  style
}

func draw(in io.Reader, out io.Writer) error {
	var rows [][]piece
	width := 0
	lines := bufio.NewScanner(in)
	var now style
	for lines.Scan() {
		var row []piece
		var columns int
		row, columns, now = pieces(lines.Text(), now)
		rows, width = append(rows, row), max(width, columns)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">`+"\n",
		float64(width)*cellWidth+2*margin, len(rows)*cellHeight+2*margin)
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", background)
	for i, row := range rows {
		for _, p := range row {
			p.write(w, margin+i*cellHeight)
		}
	}
	fmt.Fprintln(w, "</svg>")
	return w.Flush()
}

// write draws a piece in the row whose upper edge is at y.
func (p piece) write(w io.Writer, y int) {
	fg, bg := p.style.fg, p.style.bg
	if fg == "" {
		fg = foreground
	}
	if p.style.reverse {
		if bg == "" {
			bg = background
		}
		fg, bg = bg, fg
	}
	x, columns := margin+float64(p.column)*cellWidth, ansi.StringWidth(p.text)
	if bg != "" {
		fmt.Fprintf(w, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, float64(columns)*cellWidth, cellHeight, bg)
	}
	if strings.TrimSpace(p.text) == "" {
		return
	}
	more := ""
	if p.style.bold {
		more += ` font-weight="bold"`
	}
	if p.style.faint {
		more += ` opacity="0.6"`
	}
	// textLength keeps the columns aligned with any font.
	fmt.Fprintf(w, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="%s"%s>%s</text>`+"\n",
		x, y+cellHeight-4, float64(columns)*cellWidth, fg, more, html.EscapeString(p.text))
}

// pieces splits a line into pieces. It also returns the number of columns, and the style after the line.
func pieces(line string, now style) (out []piece, columns int, after style) {
	var state byte
	for len(line) > 0 {
		text, width, n, next := ansi.DecodeSequence(line, state, nil)
		state, line = next, line[n:]
		if width == 0 {
			if strings.HasPrefix(text, "\x1b[") && strings.HasSuffix(text, "m") {
				now = now.with(strings.Split(text[2:len(text)-1], ";"))
			}
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].style == now {
			out[last].text += text
		} else {
			out = append(out, piece{columns, text, now})
		}
		columns += width
	}
	return out, columns, now
}

// with returns the style after an escape sequence with the given parameters. It ignores unknown parameters.
func (s style) with(parameters []string) style {
	for i := 0; i < len(parameters); i++ {
		n, _ := strconv.Atoi(parameters[i])
		switch {
		case n == 0:
			s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.faint = true
		case n == 7:
			s.reverse = true
		case n == 22:
			s.bold, s.faint = false, false
		case n == 27:
			s.reverse = false
		case n == 39:
			s.fg = ""
		case n == 49:
			s.bg = ""
		case n == 38, n == 48:
			colour, used := extended(parameters[i+1:])
			if n == 38 {
				s.fg = colour
			} else {
				s.bg = colour
			}
			i += used
		case n >= 30 && n < 38:
			s.fg = indexed(n - 30)
		case n >= 90 && n < 98:
			s.fg = indexed(n - 90 + 8)
		case n >= 40 && n < 48:
			s.bg = indexed(n - 40)
		}
	}
	return s
}

// extended returns a color that is given by its number among the 256 colors, or by its components. It also returns the number of parameters that
// specify the color.
func extended(p []string) (colour string, used int) {
	number := func(i int) int { n, _ := strconv.Atoi(p[i]); return n }
	switch {
	case len(p) >= 2 && p[0] == "5":
		return indexed(number(1)), 2
	case len(p) >= 4 && p[0] == "2":
		return fmt.Sprintf("#%02x%02x%02x", number(1), number(2), number(3)), 4
	}
	return "", len(p)
}

// indexed returns one of the 256 colors of xterm, or "" if the number is invalid.
func indexed(n int) string {
	basic := []string{"#1b1d23", "#d55e00", "#009e73", "#e69f00", "#0072b2", "#cc79a7", "#56b4e9", "#d8d8d8", "#6b6f78", "#ff8a4c", "#3fd0a0", "#f0e442", "#56b4e9", "#e8a0c8", "#9fd8ff", "#ffffff"}
	switch {
	case n < 0 || n > 255:
		return ""
	case n < len(basic):
		return basic[n]
	case n >= 232:
		v := 8 + (n-232)*10
		return fmt.Sprintf("#%02x%02x%02x", v, v, v)
	}
	level := func(v int) int {
		if v == 0 {
			return 0
		}
		return 55 + 40*v
	}
	n -= 16
	return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
}
