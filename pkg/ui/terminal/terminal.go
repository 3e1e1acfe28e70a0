// Package terminal makes untrusted text safe for a user's terminal: annotations and messages of objects, output of hosts and tasks, logs.
// In: text that isn't trusted. Out: the same text without characters that move the cursor, forge lines or send commands to the terminal.
package terminal

import (
	"strings"
	"unicode"
)

// Line returns s as one line. It replaces white space with single spaces, and removes control characters.
func Line(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case Hidden(r) || r == unicode.ReplacementChar:
			return -1
		default:
			return r
		}
	}, s)), " ")
}

// Lines splits s into lines. It keeps their indentation, and removes control characters.
func Lines(s string) []string {
	var out []string
	for l := range strings.Lines(s) {
		l = strings.TrimRight(l, "\r\n")
		out = append(out, strings.Map(func(r rune) rune {
			if r != '\t' && Hidden(r) {
				return -1
			}
			return r
		}, l))
	}
	return out
}

// Text returns s with its lines, each made safe for a terminal.
func Text(s string) string { return strings.Join(Lines(s), "\n") }

// Word returns s as one word. Programs that split lists at white space can read it.
func Word(s string) string { return strings.ReplaceAll(Line(s), " ", "_") }

// Hidden reports whether a character is a control character or changes the direction of text.
func Hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
