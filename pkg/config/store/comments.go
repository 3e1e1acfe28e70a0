package store

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config"
)

// minSecret is the minimum length of a secret to search for in comments. Shorter secrets occur in almost every text.
const minSecret = 4

// commented matches a comment that looks like an entry that was commented out, such as "# password: x".
var commented = regexp.MustCompile(`^[#\s-]*([A-Za-z0-9_.-]+)[ \t]*:[ \t]+(\S.*?)[ \t\r]*$`)

// commentSpans finds secrets in comments: values of current secrets, and commented-out entries that look secret. It may mistake a "#" inside a
// value for a comment. If that removes a part of the value, verify detects the error.
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

// byBeginning maps the first minSecret bytes of secrets to the secrets. The map makes the search fast, because a layout may contain thousands of
// secrets. Longer secrets come first, because a secret may be a prefix of another secret.
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

// inComment returns the secrets in one comment. The argument at is the offset of the comment in the text.
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

func saysSomething(value string) bool {
	switch value {
	case `""`, "''", "~", "null", "{}", "[]", "|", ">", "true", "false", "...":
		return false
	}
	return !strings.HasPrefix(value, "<") && !strings.HasPrefix(value, "*")
}

// isProse reports whether a comment is a sentence, such as "Secret: kept apart from the values", and not an entry.
func isProse(key, value string) bool {
	return key[0] >= 'A' && key[0] <= 'Z' && len(strings.Fields(value)) > 2
}
