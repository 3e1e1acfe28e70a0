// Package shell writes POSIX shell for scripts that run on hosts.
// In: any text. Out: words that a shell takes literally.
package shell

import (
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

// Quote quotes s as one word.
func Quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Word quotes s only if it isn't a plain word, for commands that people read.
func Word(s string) string { return hint.Quote(s) }

// QuoteAll quotes each of ss as one word.
func QuoteAll(ss []string) string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = Quote(s)
	}
	return strings.Join(out, " ")
}
