// Package terminal makes untrusted text safe for a user's terminal: annotations and messages of objects,
// output of hosts and tasks, logs.
// In: text that isn't trusted. Out: the same without characters that move the cursor, forge lines or send
// commands to the terminal.
package terminal

import (
	"strings"
	"unicode"
)

// Line returns s as one line: white space becomes single spaces, control characters are removed.
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

// Lines splits s into lines, keeping indentation.
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

// Text returns s with its lines, each of them safe for a terminal.
func Text(s string) string { return strings.Join(Lines(s), "\n") }

// Word returns s as one word, for lists that programs split at white space.
func Word(s string) string { return strings.ReplaceAll(Line(s), " ", "_") }

// Hidden reports whether a character has an effect other than being visible.
func Hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
