package tui_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/ui/tui"
)

func TestWidthsCountColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "训练": 4, "\x1b[1mab\x1b[0m": 2, "é": 1, "▶": 1} {
		assert.Equal(t, want, tui.Width(text), text)
	}
	for _, w := range []int{1, 2, 3, 5, 9} {
		for _, text := range []string{"", "abcdefgh", "训练训练训练", "\x1b[31mabcdefgh\x1b[0m"} {
			assert.Equal(t, w, tui.Width(tui.Pad(text, w)), "%q in %d", text, w)
			assert.Equal(t, w, tui.Width(tui.PadLeft(text, w)), "%q in %d", text, w)
			assert.LessOrEqual(t, tui.Width(tui.Cut(text, w)), w)
		}
	}
	assert.Empty(t, tui.Cut("abc", 0))
	assert.Equal(t, "abc…", tui.Cut("abcdef", 4))
	assert.Equal(t, "  ab", tui.PadLeft("ab", 4))
	assert.Equal(t, "left   right", tui.Beside("left", "right", 12))
	assert.Equal(t, "lef…", tui.Beside("left side", "right", 4), "what stands left matters more")
	assert.Len(t, tui.Spaces(200), 200)
}

func TestTimesReadShort(t *testing.T) {
	for d, want := range map[time.Duration]string{-1: "0s", 59 * time.Second: "59s", 65 * time.Second: "1m05s", 3*time.Hour + 2*time.Minute: "3h02m", 240 * time.Hour: "10d"} {
		assert.Equal(t, want, tui.Clock(d))
	}
	for d, want := range map[time.Duration]string{0: "0s", 90 * time.Second: "1m", 47 * time.Hour: "47h", 49 * time.Hour: "2d"} {
		assert.Equal(t, want, tui.Age(d))
	}
}

func TestNarrowTablesLeaveOutWhatMattersLeast(t *testing.T) {
	cols := []tui.Column{{Title: "name", Min: 6, Ideal: 10}, {Title: "state", Min: 5, Priority: 1}, {Title: "note", Min: 8, Priority: 2, Grows: true}, {Title: "rest", Min: 4, Priority: 9, Right: true}}
	for _, tc := range []struct {
		width int
		want  []int
	}{
		{80, []int{10, 5, 55, 4}},
		{29, []int{6, 5, 8, 4}},
		{28, []int{10, 5, 9, 0}},
		{20, []int{10, 5, 0, 0}},
		{8, []int{8, 0, 0, 0}},
		{3, []int{6, 0, 0, 0}}, // Frame cuts it
	} {
		assert.Equal(t, tc.want, tui.Layout(cols, tc.width), tc.width)
	}
	widths := tui.Layout(cols, 29)
	assert.Equal(t, "abcde…  run    much to…     7", tui.Row(cols, widths, []tui.Cell{{Text: "abcdefghi"}, {Text: "run"}, {Text: "much to tell"}, {Text: "7"}}))
	assert.Equal(t, "name    state  note↓     rest", tui.Titles(cols, widths, 2, true))
}

func TestAWindowShowsItsCursor(t *testing.T) {
	w := tui.Window{Height: 10, Len: 100}
	w.Move(15)
	assert.Equal(t, [3]int{6, 15, 16}, [3]int{w.Top, w.Cursor, w.End()})
	w.Move(8)
	assert.Equal(t, 6, w.Top, "it doesn't scroll further than needed")
	w.Move(1000)
	assert.Equal(t, [2]int{90, 99}, [2]int{w.Top, w.Cursor})
	w.Len = 3
	w.Settle()
	assert.Equal(t, [3]int{0, 2, 3}, [3]int{w.Top, w.Cursor, w.End()})
	w.Len = 0
	w.Move(-5)
	assert.Equal(t, [3]int{0, 0, 0}, [3]int{w.Top, w.Cursor, w.End()})
}

func TestBarsFillUp(t *testing.T) {
	assert.Equal(t, "░░░░", tui.Bar(4, 0, 10))
	assert.Equal(t, "██░░", tui.Bar(4, 5, 10))
	assert.Equal(t, "████", tui.Bar(4, 50, 10))
	assert.Equal(t, "····", tui.Bar(4, 1, 0), "nothing to compare with")
	for used := range int64(11) {
		assert.Equal(t, 7, tui.Width(tui.Bar(7, used, 10)))
	}
	assert.Equal(t, []string{"▁", "▅", "█", "█"}, []string{tui.Level(0), tui.Level(0.5), tui.Level(1), tui.Level(7)})
}

func TestAFrameIsAsLargeAsTheScreen(t *testing.T) {
	lines := strings.Split(tui.Frame(5, 4, []string{"head line"}, []string{"a", "b", "c"}, []string{"foot"}), "\n")
	assert.Equal(t, []string{"head…", "a", "b", "foot"}, lines)
	assert.Len(t, strings.Split(tui.Frame(5, 9, nil, nil, []string{"foot"}), "\n"), 9)
	assert.Equal(t, "a", tui.Frame(5, 1, []string{"a", "b"}, nil, []string{"c"}))
}

func TestWithoutColourThereAreNoControlSequences(t *testing.T) {
	p := tui.NewPalette(tui.NoColour, false)
	for _, s := range append(append([]tui.Style{p.Bold, p.Faint, p.Good, p.Bad, p.Warn, p.Busy, p.Accent, p.Head, p.Selected}, p.Groups...), p.Heat...) {
		assert.Equal(t, "x", s.Text("x"))
		assert.Equal(t, "x", s.Over("x"))
	}
}

func TestALineInAStyleKeepsItBehindOthers(t *testing.T) {
	p := tui.NewPalette(tui.Colours16, false)
	assert.Equal(t, "\x1b[7ma\x1b[31mb\x1b[0m\x1b[7mc\x1b[0m", p.Selected.Over("a"+p.Bad.Text("b")+"c"))
}

var rgb = regexp.MustCompile(`38;2;(\d+);(\d+);(\d+)`)

// luminance returns the relative luminance of a color as WCAG 2 defines it, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance.
func luminance(r, g, b float64) float64 {
	linear := func(c float64) float64 {
		if c /= 255; c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// All text must be readable. WCAG requires a contrast of 4.5:1 for text, and 3:1 for signs that are as large as the cells of the heat map.
func TestColoursCanBeReadOnDarkAndLight(t *testing.T) {
	for _, light := range []bool{false, true} {
		p := tui.NewPalette(tui.TrueColour, light)
		ground := luminance(30, 30, 30) // a usual dark background; black has more contrast
		if light {
			ground = luminance(253, 246, 227) // Solarized's; white has more
		}
		contrast := func(s tui.Style) float64 {
			m := rgb.FindStringSubmatch(s.Text("x"))
			require.NotNil(t, m)
			var c [3]float64
			for i := range c {
				c[i], _ = strconv.ParseFloat(m[i+1], 64)
			}
			a, b := luminance(c[0], c[1], c[2]), ground
			return (max(a, b) + 0.05) / (min(a, b) + 0.05)
		}
		for i, s := range append([]tui.Style{p.Faint, p.Good, p.Bad, p.Warn, p.Busy, p.Accent}, p.Groups...) {
			assert.GreaterOrEqual(t, contrast(s), 4.5, "light %v, style %d: %q", light, i, s.Text("x"))
		}
		for i, s := range p.Heat {
			assert.GreaterOrEqual(t, contrast(s), 2.6, "light %v, heat %d", light, i)
			if i > 0 {
				assert.Greater(t, contrast(s), contrast(p.Heat[i-1]), "light %v: more heat stands out more", light)
			}
		}
	}
}

func TestGroupsBeyondTheColoursHaveLetters(t *testing.T) {
	p := tui.NewPalette(tui.TrueColour, false)
	assert.Equal(t, p.Group(0), p.Group(len(p.Groups)))
	seen := map[string]bool{}
	for i := range 52 {
		assert.False(t, seen[tui.Letter(i)])
		seen[tui.Letter(i)] = true
	}
	assert.Equal(t, "*", tui.Letter(52))
}
