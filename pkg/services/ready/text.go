package ready

import (
	"regexp"
	"strings"
	"unicode"
)

const (
	// messageLimit is the maximum length of a message, and lineLimit the maximum length of a line of a log, in characters.
	messageLimit = 300
	lineLimit    = 600 // a Go program's line has its error at the end
	// logLines is the number of lines that are shown from the log of a crashed container.
	logLines = 5
)

// escape matches control sequences for terminals, which mostly set colors.
var escape = regexp.MustCompile(`\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)`)

// clean returns a text from another program as one line, without control characters and with a limited length.
func clean(text string, limit int) string {
	text = escape.ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == unicode.ReplacementChar, unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// lastLines returns the last lines of a log that aren't empty, with their indentation.
func lastLines(text string, count int) []string {
	var out []string
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if line = clean(line, lineLimit); line != "" {
			out = append(out, strings.Repeat(" ", min(indent, 8))+line)
		}
	}
	return out[max(0, len(out)-count):]
}

// afterQuote matches the text of a container runtime's error up to the last quoted name. The text after that is the cause.
var afterQuote = regexp.MustCompile(`^.*": `)

func innermost(text string) string {
	return afterQuote.ReplaceAllString(strings.Join(strings.Fields(text), " "), "")
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
