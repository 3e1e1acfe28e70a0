// Package answer parses the output of scripts on hosts: a line protocol in sections.
// In: a script's output. Out: its lines, grouped by their first field.
package answer

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// Answer holds the lines of one section of a script's output. Each line is a list of fields separated by tabs. The first field names the line's
// subject.
type Answer struct {
	Rows [][]string
	// Raw holds the same lines as text.
	Raw []byte
	// Failed is the exit status of the section's command if it failed, otherwise "".
	Failed string
}

// maxLine is the maximum length of a line, in bytes. The longest lines list the cluster's nodes with a few hundred bytes per node.
const maxLine = 1 << 26

// Sections splits the output of a script into its sections. The keys of the result are the names of the sections.
func Sections(out []byte) (map[string]Answer, error) {
	sections := map[string]Answer{}
	name, cur := "", Answer{}
	flush := func() {
		if name != "" {
			sections[name] = cur
		}
		cur = Answer{}
	}
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(make([]byte, 0, 1<<16), maxLine)
	for sc.Scan() {
		line := sc.Text()
		if n, ok := strings.CutPrefix(line, "@@ "); ok {
			flush()
			name = n
			continue
		}
		if code, ok := strings.CutPrefix(line, "@! "); ok {
			cur.Failed = code
			continue
		}
		cur.Rows = append(cur.Rows, strings.Split(line, "\t"))
		cur.Raw = append(append(cur.Raw, line...), '\n')
	}
	flush()
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read the answer, of which the section %q has a line of over %d bytes: %w", name, maxLine, err)
	}
	return sections, nil
}

// Parse parses the output of a script that has no sections.
func Parse(out []byte) (Answer, error) {
	sections, err := Sections(append([]byte("@@ answer\n"), out...))
	return sections["answer"], err
}

// Row returns the first line that begins with the given fields, without these fields. It also reports whether such a line exists.
func (a Answer) Row(prefix ...string) ([]string, bool) {
next:
	for _, r := range a.Rows {
		if len(r) < len(prefix) {
			continue
		}
		for i, p := range prefix {
			if r[i] != p {
				continue next
			}
		}
		return r[len(prefix):], true
	}
	return nil, false
}

// Value returns the first field after the given fields in the first line that begins with these fields, or "" if no line matches.
func (a Answer) Value(prefix ...string) string {
	r, ok := a.Row(prefix...)
	if !ok || len(r) == 0 {
		return ""
	}
	return r[0]
}

// All returns all lines whose first field is kind, without that field.
func (a Answer) All(kind string) [][]string {
	var out [][]string
	for _, r := range a.Rows {
		if r[0] == kind {
			out = append(out, r[1:])
		}
	}
	return out
}
