package ready

import (
	"regexp"
	"strings"
	"unicode"
)

const (
	// messageLimit is the maximum length of a message, in characters. lineLimit is the maximum length of a log line.
	messageLimit = 300
	lineLimit    = 600 // a Go program's line has its error at the end
	// logLines is the number of printed log lines of a crashed container.
	logLines = 5
)

// escape matches control sequences for terminals, such as colors.
var escape = regexp.MustCompile(`\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)`)

// clean converts the output of another program to one line of limited length without control characters.
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

// lastLines returns the last nonempty lines of a log. Lines keep their indentation.
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

// afterQuote matches a container runtime's error up to the last quoted name. The text after the quoted name is the cause.
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
