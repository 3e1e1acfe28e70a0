package tui

import (
	"strings"

	"github.com/muesli/termenv"
)

// Depth is how many colors a terminal can show.
type Depth int

// The depths. Without color the output contains no control sequences, so every meaning also has a sign or a letter.
const (
	NoColour Depth = iota
	Colours16
	Colours256
	TrueColour
)

// Style is the color and weight of a text. The zero style changes nothing.
type Style struct{ on string }

const off = "\x1b[0m"

// Text returns t in this style. t must not contain other styles.
func (s Style) Text(t string) string {
	if s.on == "" || t == "" {
		return t
	}
	return s.on + t + off
}

// With returns a style that combines both styles. If they conflict, more wins.
func (s Style) With(more Style) Style { return Style{s.on + more.on} }

// Over applies the style to a whole line whose parts may have other styles.
func (s Style) Over(line string) string {
	if s.on == "" {
		return line
	}
	return s.on + strings.ReplaceAll(line, off, off+s.on) + off
}

// Palette holds the styles in use. People who confuse red and green can distinguish the colors, which are from Okabe and Ito
// (https://jfly.uni-koeln.de/color/) and lightened or darkened until they can be read on the background.
type Palette struct {
	Depth Depth
	Light bool

	Bold, Faint, Good, Bad, Warn, Busy, Accent, Head Style
	// Selected is the style of the selected line, which keys act on.
	Selected Style
	// Groups holds the styles for groups, such as virtual clusters. Each group also has a letter.
	Groups []Style
	// Heat holds the styles of a scale, from 0 to 100 %.
	Heat []Style
}

// hue is a color in three forms: for a dark background, for a light background, and as one of the sixteen colors of a terminal.
type hue struct{ dark, light, ansi string }

var (
	green      = hue{"#2FC49A", "#00704F", "2"}
	vermillion = hue{"#FF8A4C", "#B03A00", "1"}
	orange     = hue{"#E69F00", "#865A00", "3"}
	sky        = hue{"#56B4E9", "#00639C", "6"}
	blue       = hue{"#7FA8FF", "#0057A8", "4"}
	purple     = hue{"#D990B8", "#9C3F76", "5"}
	yellow     = hue{"#F0E442", "#6B6300", "11"}
	grey       = hue{"#B0B0B0", "#5A5A5A", "7"}
	groupHues  = []hue{sky, orange, green, purple, yellow, blue, vermillion, grey}
	// heatHues are colors of the cividis scale: from dark to light on a dark background, from light to dark on a light background.
	heatHues = []hue{{"#5C6C84", "#8A8564", "4"}, {"#7C8290", "#77745F", "4"}, {"#A59C74", "#5D6470", "6"}, {"#D1BA58", "#3B4E6D", "3"}, {"#FEE838", "#00306F", "11"}}
)

// NewPalette returns the styles for a terminal with the given number of colors. light means that the background is light.
func NewPalette(d Depth, light bool) Palette {
	p := Palette{Depth: d, Light: light}
	for range groupHues {
		p.Groups = append(p.Groups, Style{})
	}
	for range heatHues {
		p.Heat = append(p.Heat, Style{})
	}
	if d == NoColour {
		return p
	}
	p.Bold, p.Faint = Style{"\x1b[1m"}, Style{"\x1b[2m"}
	p.Good, p.Bad, p.Warn, p.Busy = p.style(green), p.style(vermillion), p.style(orange), p.style(sky)
	p.Accent = p.style(sky)
	p.Head = p.Bold
	p.Selected = Style{"\x1b[7m"}
	if d >= Colours256 {
		p.Faint = p.style(grey)
		p.Selected = Style{"\x1b[48;5;238m\x1b[1m"}
		if light {
			p.Selected = Style{"\x1b[48;5;254m\x1b[1m"}
		}
	}
	for i, h := range groupHues {
		p.Groups[i] = p.style(h)
	}
	for i, h := range heatHues {
		p.Heat[i] = p.style(h)
	}
	return p
}

// NewLinePalette returns the styles for lines that stay on the screen. They use the terminal's own sixteen colors, which fit its background.
func NewLinePalette(colour bool) Palette {
	if colour {
		return NewPalette(Colours16, false)
	}
	return NewPalette(NoColour, false)
}

func (p Palette) style(h hue) Style {
	profile, text := termenv.TrueColor, h.dark
	if p.Light {
		text = h.light
	}
	switch p.Depth {
	case Colours16:
		profile, text = termenv.ANSI, h.ansi
	case Colours256:
		profile = termenv.ANSI256
	case NoColour:
		return Style{}
	}
	return Style{"\x1b[" + profile.Color(text).Sequence(false) + "m"}
}

// Group returns the style of the i-th group. Styles repeat if there are more groups than styles.
func (p Palette) Group(i int) Style { return p.Groups[i%len(p.Groups)] }

// Letter returns the letter of the i-th group: A to Z, then a to z, then * for all further groups.
func Letter(i int) string {
	switch {
	case i < 26:
		return string(rune('A' + i))
	case i < 52:
		return string(rune('a' + i - 26))
	}
	return "*"
}
