package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Width returns the number of columns that s takes on the screen.
func Width(s string) int {
	if Plain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// Plain reports whether s is printable ASCII, whose width is its number of bytes. Most strings are, and measuring other strings is most of the
// work of drawing a table.
func Plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// Fill pads s with spaces to at least w columns.
func Fill(s string, w int) string {
	if n := w - Width(s); n > 0 {
		return s + Spaces(n)
	}
	return s
}

// Cut shortens s to at most w columns.
func Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if Plain(s) {
		if len(s) <= w {
			return s
		}
		return s[:w-1] + "…"
	}
	return ansi.Truncate(s, w, "…")
}

// Pad pads or cuts s to exactly w columns.
func Pad(s string, w int) string { return Fill(Cut(s, w), w) }

// PadLeft pads or cuts s to exactly w columns. The text is at the right edge.
func PadLeft(s string, w int) string {
	s = Cut(s, w)
	return Spaces(w-Width(s)) + s
}

const blanks = "                                                                                "

// Spaces returns n blanks.
func Spaces(n int) string {
	switch {
	case n <= 0:
		return ""
	case n <= len(blanks):
		return blanks[:n]
	}
	return strings.Repeat(" ", n)
}

// Wrap breaks s into lines of at most w columns, between words if possible.
func Wrap(s string, w int) []string { return strings.Split(ansi.Wrap(s, max(w, 1), ""), "\n") }

// Beside returns a line of w columns with left at its left edge and right at its right edge. It cuts left if necessary. If there is no room for
// right, it returns only left.
func Beside(left, right string, w int) string {
	n := Width(right)
	if n+2 > w {
		return Cut(left, w)
	}
	return Pad(left, w-n) + right
}

// Clock formats a duration in at most six columns for a cell of a table: "4s", "1m05s", "2h03m", "12d".
func Clock(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 100*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Age formats a duration in its largest unit: "4s", "12m", "5h", "3d".
func Age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
