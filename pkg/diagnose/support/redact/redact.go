// Package redact removes secrets from a stream of text.
// In: the known secrets, and a stream of bytes. Out: the same stream with a mark in place of each secret. It finds known secrets in every usual
// encoding, and text that looks like a secret.
package redact

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// Kinds of redacted text. Each mark contains the name of a kind.
const (
	Configuration = "configuration"     // a secret of the four files
	Secret        = "kubernetes-secret" // a value of a Secret in the cluster
	Credential    = "credential"        // a credential for the cluster's API of the user who ran paictl
	Environment   = "environment"       // a variable of a job's container
	PrivateKey    = "private-key"
	Authorization = "authorization" // a header
	URLPassword   = "url-password"
	JWT           = "jwt"
	Token         = "token"    // of AWS, GitHub, Hugging Face and others
	Password      = "password" // a value after password, secret, token and the like
)

// kinds returns the names of all kinds. They contain no brackets, so that Builder.Add can compare parts of marks with secrets.
func kinds() []string {
	return []string{Configuration, Secret, Credential, Environment, PrivateKey, Authorization, URLPassword, JWT, Token, Password}
}

const (
	markStart = "[redacted:"
	markEnd   = "]"
)

// Mark returns the mark that replaces secrets of a kind.
func Mark(kind string) string { return markStart + kind + markEnd }

// Shortest is the minimum length in bytes of secrets to search for. Redacting every "ab" would remove other text.
const Shortest = 4

// Builder collects secrets and returns a Set of their patterns.
type Builder struct {
	seen     map[string]bool
	patterns []pattern
}

type pattern struct {
	text []byte
	kind string
	// inside means that a pattern is a piece of base64 whose neighboring characters also contain a few bits of the secret.
	inside bool
}

// Add adds a secret in all of its forms, and each line of the secret. It returns false if the secret is too short for a search or is part of a mark.
func (b *Builder) Add(kind, value string) bool {
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	value = strings.TrimSpace(value)
	if !searchable(value) {
		return false
	}
	b.allForms(kind, value)
	if !strings.Contains(value, "\n") {
		return true
	}
	found := false
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); searchable(line) && !isArmour(line) {
			found = true
			b.allForms(kind, line)
		}
	}
	return found
}

func (b *Builder) allForms(kind, value string) {
	for _, f := range forms(value) {
		b.add(kind, f, false)
	}
	for _, f := range inBase64(value) {
		b.add(kind, f, true)
	}
}

// isArmour reports whether a line is the first or the last line of a key in PEM. Such lines are the same in all keys.
func isArmour(line string) bool {
	return strings.HasPrefix(line, "-----BEGIN ") || strings.HasPrefix(line, "-----END ")
}

func searchable(value string) bool {
	if len(value) < Shortest {
		return false
	}
	for _, k := range kinds() {
		if strings.Contains(Mark(k), value) {
			return false
		}
	}
	return !strings.Contains(value, markStart)
}

// chunk is the length in bytes of the pieces of longer patterns. The last piece may be longer.
const (
	chunk     = 512
	remainder = 16
	longest   = chunk + remainder
)

func (b *Builder) add(kind, text string, inside bool) {
	for len(text) > longest {
		b.one(kind, text[:chunk], inside)
		text = text[chunk:]
	}
	b.one(kind, text, inside)
}

func (b *Builder) one(kind, text string, inside bool) {
	if !searchable(text) || b.seen[text] {
		return
	}
	b.seen[text] = true
	b.patterns = append(b.patterns, pattern{[]byte(text), kind, inside})
	// A mark must not complete a secret in the neighboring text. If a secret ends with the beginning of a mark, also search for the secret without
	// this end. If it begins with the end of a mark, also search for the secret without this beginning.
	for n := 1; n < len(markStart) && n < len(text); n++ {
		if strings.HasSuffix(text, markStart[:n]) {
			b.one(kind, text[:len(text)-n], inside)
		}
	}
	if rest, ok := strings.CutPrefix(text, markEnd); ok {
		b.one(kind, rest, inside)
	}
	for _, k := range kinds() {
		for n := len(markEnd) + 1; n < len(Mark(k)) && n < len(text); n++ {
			if strings.HasPrefix(text, Mark(k)[len(Mark(k))-n:]) {
				b.one(kind, text[n:], inside)
			}
		}
	}
}

// Set is a set of patterns. It is immutable, and safe for concurrent use.
type Set struct {
	// likely has a bit for each hash of the first four bytes of a pattern. One lookup excludes most positions of a text.
	likely  [1 << 10]uint64
	byStart map[uint32][]pattern // the longest first
	count   int
}

// Set returns a Set of all added secrets.
func (b *Builder) Set() *Set {
	s := &Set{byStart: map[uint32][]pattern{}, count: len(b.patterns)}
	for _, p := range b.patterns {
		k := binary.LittleEndian.Uint32(p.text)
		s.byStart[k] = append(s.byStart[k], p)
		h := hash(k)
		s.likely[h>>6] |= 1 << (h & 63)
	}
	for _, list := range s.byStart {
		slices.SortStableFunc(list, func(a, b pattern) int { return len(b.text) - len(a.text) })
	}
	return s
}

func hash(k uint32) uint32 { return k * 2654435761 >> 16 }

// span is a secret in a text. The bytes from cutFrom to cutTo are replaced. The bytes between `from` and `to` are the whole match. For example, the
// match of a password in a URL is the whole URL.
type span struct {
	from, to       int
	cutFrom, cutTo int
	kind           string
	goesOn         bool // it may continue after the text
}

func (s *Set) known(text []byte, spans []span) []span {
	for i := 0; i+Shortest <= len(text); i++ {
		k := binary.LittleEndian.Uint32(text[i:])
		if h := hash(k); s.likely[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, p := range s.byStart[k] {
			if bytes.HasPrefix(text[i:], p.text) {
				from, to := i, i+len(p.text)
				if p.inside && from > 0 && isBase64(text[from-1]) {
					from--
				}
				if p.inside && to < len(text) && isBase64(text[to]) {
					to++
				}
				spans = append(spans, span{from: from, to: to, cutFrom: from, cutTo: to, kind: p.kind})
				break
			}
		}
	}
	return spans
}

// find returns all spans of a text to replace, sorted by position. It merges overlapping spans.
func (s *Set) find(text []byte) []span {
	spans := shapes(text, s.known(text, nil))
	slices.SortStableFunc(spans, func(a, b span) int { return a.cutFrom - b.cutFrom })
	var out []span
	for _, x := range spans {
		if n := len(out); n > 0 && (x.cutFrom < out[n-1].cutTo || x.cutFrom == out[n-1].cutTo && x.kind == out[n-1].kind) {
			last := &out[n-1]
			last.from, last.to = min(last.from, x.from), max(last.to, x.to)
			if x.cutTo > last.cutTo {
				last.cutTo, last.goesOn = x.cutTo, x.goesOn
			}
			continue
		}
		out = append(out, x)
	}
	return out
}

// String returns a text without secrets.
func (s *Set) String(text string) string {
	var b strings.Builder
	w := s.Writer(&b)
	_, _ = w.Write([]byte(text)) // writing to a strings.Builder doesn't fail
	_ = w.Close()
	return b.String()
}
