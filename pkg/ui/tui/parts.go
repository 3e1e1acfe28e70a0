package tui

import (
	"strings"
	"time"
)

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// Spin returns the character of the spinner for a time. It changes ten times a second.
func Spin(now time.Time) string {
	return string(spinner[int(now.UnixMilli()/100%int64(len(spinner)))])
}

// Signs of states. Each is one column wide.
const (
	SignGood    = "✓"
	SignBad     = "✗"
	SignWarn    = "!"
	SignUnknown = "?"
	SignInfo    = "i"
	SignNone    = "·"
	SignSkipped = "-"
)

var eighths = []rune(" ▏▎▍▌▋▊▉█")

// Bar returns a bar, w columns wide, that shows how much of total is used.
func Bar(w int, used, total int64) string {
	if w <= 0 {
		return ""
	}
	if total <= 0 {
		return strings.Repeat("·", w)
	}
	n := int(min(max(used, 0), total) * int64(w) * 8 / total)
	var b strings.Builder
	b.WriteString(strings.Repeat("█", n/8))
	if n%8 > 0 {
		b.WriteRune(eighths[n%8])
	}
	return b.String() + strings.Repeat("░", max(w-(n+7)/8, 0))
}

var levels = []rune("▁▂▃▄▅▆▇█")

// Level returns a block, one column wide, whose height shows a share between 0 and 1 without color.
func Level(share float64) string {
	return string(levels[min(max(int(share*float64(len(levels))), 0), len(levels)-1)])
}

// Frame returns exactly height lines of at most width columns from a head, a body and a foot. If the lines don't fit, it cuts the body first,
// then the foot.
func Frame(width, height int, head, body, foot []string) string {
	height = max(height, 1)
	room := max(height-len(head)-len(foot), 0)
	out := make([]string, 0, height)
	out = append(out, head...)
	out = append(out, body[:min(len(body), room)]...)
	for len(out) < height-len(foot) {
		out = append(out, "")
	}
	out = append(out, foot...)
	out = out[:min(len(out), height)]
	for i, l := range out {
		out[i] = Cut(l, width)
	}
	return strings.Join(out, "\n")
}
