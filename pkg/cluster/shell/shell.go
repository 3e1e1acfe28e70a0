// Package shell quotes text for POSIX shell scripts that run on hosts.
// In: any text. Out: words that a shell takes literally.
package shell

import (
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

// Quote quotes s as a single word.
func Quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Word quotes s only if it isn't a plain word. It is meant for commands that people read.
func Word(s string) string { return hint.Quote(s) }

// QuoteAll quotes each of ss as one word.
func QuoteAll(ss []string) string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = Quote(s)
	}
	return strings.Join(out, " ")
}
