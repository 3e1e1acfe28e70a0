// Package shell writes POSIX shell for scripts that run on hosts.
// In: any text. Out: words that a shell takes as they are.
package shell

import "strings"

// Quote makes s one word.
func Quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// QuoteAll makes each of ss one word.
func QuoteAll(ss []string) string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = Quote(s)
	}
	return strings.Join(out, " ")
}
