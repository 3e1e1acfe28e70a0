// Package shell quotes text for POSIX shell scripts that run on hosts.
// In: any text. Out: words that a shell doesn't interpret.
package shell

import (
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

// Quote returns s quoted as a single word.
func Quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Word returns s, quoted only if necessary. Use it for commands that people read.
func Word(s string) string { return hint.Quote(s) }

// QuoteAll returns the elements of ss, each quoted as a single word and separated by spaces.
func QuoteAll(ss []string) string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = Quote(s)
	}
	return strings.Join(out, " ")
}
