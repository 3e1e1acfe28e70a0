package cmdutil

import (
	"fmt"
	"strings"
)

// Explained formats a list for help texts: an indented line for each word with its meaning, without
// a final newline. Help is made from the list that the program itself uses, so that the two agree.
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
