package cluster

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// facts are what one detect script found on a node: the answers of each phase.
type facts struct {
	sections map[string]answer
	// asked and answered frame the round trip by the operator's clock.
	asked, answered time.Time
}

// answer holds the lines that one section printed: fields separated by tabs, the first
// of which says what the line is about.
type answer struct {
	rows [][]string
	raw  []byte
	// failed is the exit status of the section where it broke off, else "".
	failed string
}

// maxAnswerLine bounds one line of an answer, in bytes. The longest are images' and files'
// content; a node of the cluster takes some hundred bytes.
const maxAnswerLine = 1 << 26

// parseFacts splits the output of a detect script into sections.
func parseFacts(out []byte) (map[string]answer, error) {
	sections := map[string]answer{}
	name, cur := "", answer{}
	flush := func() {
		if name != "" {
			sections[name] = cur
		}
		cur = answer{}
	}
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(make([]byte, 0, 1<<16), maxAnswerLine)
	for sc.Scan() {
		line := sc.Text()
		if n, ok := strings.CutPrefix(line, "@@ "); ok {
			flush()
			name = n
			continue
		}
		if code, ok := strings.CutPrefix(line, "@! "); ok {
			cur.failed = code
			continue
		}
		cur.rows = append(cur.rows, strings.Split(line, "\t"))
		cur.raw = append(append(cur.raw, line...), '\n')
	}
	flush()
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read the answer, of which the section %q has a line of over %d bytes: %w", name, maxAnswerLine, err)
	}
	return sections, nil
}

// parseAnswer reads the lines of a script that has no sections.
func parseAnswer(out []byte) (answer, error) {
	sections, err := parseFacts(append([]byte("@@ answer\n"), out...))
	return sections["answer"], err
}

// row returns the fields after those given of the first line that begins with them, and
// whether there is one.
func (a answer) row(prefix ...string) ([]string, bool) {
next:
	for _, r := range a.rows {
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

// value returns the field after those given, or "".
func (a answer) value(prefix ...string) string {
	r, ok := a.row(prefix...)
	if !ok || len(r) == 0 {
		return ""
	}
	return r[0]
}

// all returns, for each line of that kind, the fields after the kind.
func (a answer) all(kind string) [][]string {
	var out [][]string
	for _, r := range a.rows {
		if r[0] == kind {
			out = append(out, r[1:])
		}
	}
	return out
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// decoded returns a field that travelled as base64.
func decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}
