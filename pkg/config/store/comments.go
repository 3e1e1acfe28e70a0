package store

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config"
)

// minSecret is the minimum length of secrets that are searched for in comments: shorter secrets occur in every text.
const minSecret = 4

// commented is a comment that looks like an entry that was commented out: "# password: x".
var commented = regexp.MustCompile(`^[#\s-]*([A-Za-z0-9_.-]+)[ \t]*:[ \t]+(\S.*?)[ \t\r]*$`)

// commentSpans finds secrets in comments: values that are in use, and entries that were commented out and
// look secret. It may take a "#" inside a value for a comment. If a part of a value is removed by that,
// verify finds it.
func commentSpans(text []byte, taken []span, secrets []found) []span {
	if bytes.IndexByte(text, '#') < 0 {
		return nil
	}
	inside := map[int]int{}
	for _, s := range taken {
		inside[s.start] = s.end
	}
	values := byBeginning(secrets)
	var out []span
	comment := -1 // where the comment on this line begins
	for i := 0; i < len(text); i++ {
		if end, ok := inside[i]; ok && comment < 0 {
			i = end - 1
			continue
		}
		switch {
		case text[i] == '\n':
			comment = -1
		case comment < 0 && text[i] == '#' && (i == 0 || isSpace(text[i-1])):
			comment = i
			stop := lineEnd(text, i)
			out = append(out, inComment(text[i:stop], i, values)...)
			i = stop - 1
		}
	}
	return out
}

// byBeginning indexes secrets by their first minSecret bytes, since a layout may have thousands.
// The longest comes first, because one secret may be the beginning of another.
func byBeginning(secrets []found) map[string][]found {
	out := map[string][]found{}
	for _, s := range secrets {
		if v := s.node.Value; len(v) >= minSecret && !strings.Contains(v, "\n") {
			out[v[:minSecret]] = append(out[v[:minSecret]], s)
		}
	}
	for _, same := range out {
		slices.SortStableFunc(same, func(a, b found) int { return len(b.node.Value) - len(a.node.Value) })
	}
	return out
}

// inComment returns the secrets in one comment that begins at the offset.
func inComment(comment []byte, at int, values map[string][]found) []span {
	if m := commented.FindSubmatchIndex(comment); m != nil {
		key, value := string(comment[m[2]:m[3]]), string(comment[m[4]:m[5]])
		if config.LooksSecret(key) && saysSomething(value) && !isProse(key, value) {
			return []span{{at + m[4], at + m[5], fmt.Sprintf("%s in a comment", key)}}
		}
	}
	var out []span
	for i := 0; i+minSecret <= len(comment); i++ {
		for _, s := range values[string(comment[i:i+minSecret])] {
			if value := s.node.Value; bytes.HasPrefix(comment[i:], []byte(value)) {
				out = append(out, span{at + i, at + i + len(value), s.field + " in a comment"})
				i += len(value) - 1
				break
			}
		}
	}
	return out
}

// saysSomething reports whether a commented value is more than a placeholder.
func saysSomething(value string) bool {
	switch value {
	case `""`, "''", "~", "null", "{}", "[]", "|", ">", "true", "false", "...":
		return false
	}
	return !strings.HasPrefix(value, "<") && !strings.HasPrefix(value, "*")
}

// isProse reports whether a comment is a sentence, "Secret: kept apart from the values", and not an entry.
func isProse(key, value string) bool {
	return key[0] >= 'A' && key[0] <= 'Z' && len(strings.Fields(value)) > 2
}
