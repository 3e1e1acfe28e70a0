package report

import (
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/runtime/rules"
)

// Limits of the log lines in a report, before the report is shortened to Max.
const (
	maxUserLines     = 15
	maxPlatformLines = 10
	linesBefore      = 3
	maxLine          = 512
	maxMatched       = 1024
)

// excerpt returns up to most lines of a log. They include a few lines before the position at in the cleaned log, and the lines
// after it. If at isn't in the log, excerpt returns the last lines. match is the index of the line at the position, or -1.
func excerpt(log []byte, at, most int) (lines []string, match int) {
	text := rules.Clean(log)
	if at < 0 || at > len(text) {
		return tail(text, most), -1
	}
	// A match of ^\s+ may begin at the end of the previous line.
	for at < len(text) && text[at] == '\n' {
		at++
	}
	head := tail(text[:lineStart(text, at)], linesBefore)
	rest := strings.SplitN(text[lineStart(text, at):], "\n", most-len(head)+1)
	if len(rest) > most-len(head) {
		rest = rest[:most-len(head)]
	}
	out := slices.Concat(head, rest)
	match = len(head)
	for i := range out {
		out[i] = line(out[i])
	}
	for len(out) > match+1 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out, match
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

// tail returns the last n lines. It skips empty lines at the end.
func tail(text string, n int) []string {
	text = strings.TrimRight(text, " \t\n")
	var out []string
	for text != "" && len(out) < n {
		start := lineStart(text, len(text))
		out = append(out, line(text[start:]))
		text = text[:max(start-1, 0)]
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// untag changes the report's tags in quoted text, because a report must not contain the tags.
var untag = strings.NewReplacer("[PAI_RUNTIME_ERROR_", "[PAI-RUNTIME-ERROR-")

// line prepares a line of a log for a YAML block. The result is printable, contains no tags, and doesn't end with spaces.
func line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == '\ufffd' || !printable(r):
			return '?'
		}
		return r
	}, clip(s, maxLine))
	return strings.TrimRight(untag.Replace(s), " ")
}

// printable reports whether YAML allows a character in a block. It excludes characters that parsers treat as line ends.
func printable(r rune) bool {
	switch {
	case r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff:
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return false
	}
	return true
}

// clip shortens a text to at most n bytes without splitting a character. It marks a shortened text.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-3], "") + "..."
}
