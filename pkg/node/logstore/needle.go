package logstore

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// needle is a text that every match of a regular expression contains. Searching a whole frame for this text is many times faster than matching each
// line.
type needle struct {
	text []byte // in lower case if fold is set; empty if no text is known
	fold bool   // whether the case is ignored
}

// needleOf returns the longest literal at the top level of an expression, or an empty needle.
func needleOf(re *regexp.Regexp) (n needle) {
	parsed, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return n
	}
	parts := []*syntax.Regexp{parsed}
	if parsed.Op == syntax.OpConcat {
		parts = parsed.Sub
	}
	for _, part := range parts {
		if part.Op != syntax.OpLiteral || len(string(part.Rune)) <= len(n.text) || slices.Contains(part.Rune, utf8.RuneError) {
			continue // U+FFFD also matches bytes that are not UTF-8
		}
		n = needle{[]byte(string(part.Rune)), part.Flags&syntax.FoldCase != 0}
	}
	if n.fold && strings.ContainsFunc(string(n.text), func(r rune) bool { return r >= 0x80 }) {
		return needle{} // only ASCII is folded below
	}
	if n.fold {
		n.text = bytes.ToLower(n.text)
	}
	return n
}

// missing returns a function that reports whether the data of a frame can't contain a match. missing returns nil if the needle is empty.
func (n needle) missing() func([]byte) bool {
	if len(n.text) == 0 {
		return nil
	}
	var lower []byte
	return func(data []byte) bool {
		if bytes.Contains(data, []byte(" P ")) {
			return false // the needle may be split between two parts of a line
		}
		if !n.fold {
			return !bytes.Contains(data, n.text)
		}
		// The Kelvin sign and the long s are the only non-ASCII letters that fold to ASCII letters.
		if bytes.Contains(data, []byte("\u212a")) || bytes.Contains(data, []byte("\u017f")) {
			return false
		}
		lower = append(lower[:0], data...)
		for i, c := range lower {
			if 'A' <= c && c <= 'Z' {
				lower[i] = c + 'a' - 'A'
			}
		}
		return !bytes.Contains(lower, n.text)
	}
}
