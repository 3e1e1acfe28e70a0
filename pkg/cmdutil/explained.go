package cmdutil

import (
	"fmt"
	"strings"
)

// Explained formats a list of words and their meanings for a help text. Each word is on an indented line, and the last line has no newline. The
// help uses the list that the program itself uses, so that both agree.
func Explained(words [][2]string) string {
	width := 0
	for _, w := range words {
		width = max(width, len(w[0]))
	}
	var lines []string
	for _, w := range words {
		lines = append(lines, fmt.Sprintf("  %-*s  %s", width, w[0], w[1]))
	}
	return strings.Join(lines, "\n")
}
