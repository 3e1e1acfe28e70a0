package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/secret"
)

// FileChange describes the differences between two versions of a file.
type FileChange struct {
	File string `json:"file"`
	// Diff is a unified diff with masked secrets. It is empty if only secrets differ.
	Diff string `json:"diff,omitempty"`
	// Secrets describes the secrets that differ, without their values.
	Secrets []SecretChange `json:"secrets,omitempty"`
}

// SecretChange describes the change of one secret.
type SecretChange struct {
	Field  string `json:"field"`
	Action string `json:"action"` // added, changed, removed
}

func changes(before, after *Copy, from, to string) []FileChange {
	var out []FileChange
	for _, name := range config.Files() {
		if bytes.Equal(before.Files[name], after.Files[name]) {
			continue
		}
		c := FileChange{File: name, Secrets: secretChanges(before.parts[name], after.parts[name])}
		if a, b := before.shown[name], after.shown[name]; !bytes.Equal(a, b) {
			c.Diff = unified(mask(plain(a)), mask(plain(b)), from+name, to+name)
			if was, is := form(a), form(b); was != is {
				c.Diff += fmt.Sprintf("\\ %s%s has %s, %s%s has %s\n", from, name, was, to, name, is)
			}
		}
		if c.Diff == "" && len(c.Secrets) == 0 {
			c.Secrets = []SecretChange{{"quotes around secrets", "changed"}}
		}
		out = append(out, c)
	}
	return out
}

// plain returns a text with Unix line endings and without a byte order mark, so that a diff shows only visible differences.
func plain(text []byte) []byte {
	return bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
}

// form describes the line endings and the byte order mark of a text.
func form(text []byte) string {
	out := "the line ends of Unix (LF)"
	if bytes.Contains(text, []byte("\r\n")) {
		out = "line ends of Windows (CRLF)"
	}
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		out += " and a byte order mark"
	}
	return out
}

func secretChanges(before, after []part) []SecretChange {
	old, now := values(before), values(after)
	fields := slices.Sorted(maps.Keys(old))
	for f := range now {
		if _, ok := old[f]; !ok {
			fields = append(fields, f)
		}
	}
	slices.Sort(fields)
	var out []SecretChange
	for _, f := range fields {
		a, was := old[f]
		b, is := now[f]
		switch {
		case !was:
			out = append(out, SecretChange{f, "added"})
		case !is:
			out = append(out, SecretChange{f, "removed"})
		case !slices.Equal(a, b):
			out = append(out, SecretChange{f, "changed"})
		}
	}
	return out
}

// values returns the values of secrets by field. A field may have several values, because comments may contain the same field.
func values(parts []part) map[string][]string {
	out := map[string][]string{}
	for _, p := range parts {
		out[p.Field] = append(out[p.Field], valueOf(p.Text))
	}
	return out
}

func valueOf(text string) string {
	var n yaml.Node
	if yaml.Unmarshal([]byte(text), &n) != nil || len(n.Content) != 1 || n.Content[0].Kind != yaml.ScalarNode {
		return text
	}
	return n.Content[0].Value
}

func mask(shown []byte) []byte {
	return bytes.ReplaceAll(shown, []byte(Reference), []byte(secret.Mask))
}

const diffContext = 3

// unified returns the unified diff of two texts. It first skips the common lines at the beginning and at the end. The layout of thousands of
// machines has a hundred thousand lines, but usually only a few lines differ.
func unified(a, b []byte, from, to string) string {
	left, right := lines(a), lines(b)
	head := 0
	for head < len(left) && head < len(right) && left[head] == right[head] {
		head++
	}
	tail := 0
	for tail < len(left)-head && tail < len(right)-head && left[len(left)-1-tail] == right[len(right)-1-tail] {
		tail++
	}
	skip := max(0, head-diffContext)
	cutEnd := max(0, tail-diffContext)
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: left[skip : len(left)-cutEnd], B: right[skip : len(right)-cutEnd], FromFile: from, ToFile: to, Context: diffContext,
	})
	if err != nil {
		return "" // writing to a buffer in memory doesn't fail
	}
	return shiftHunks(text, skip)
}

func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	out := strings.SplitAfter(string(text), "\n")
	if out[len(out)-1] == "" {
		return out[:len(out)-1]
	}
	out[len(out)-1] += "\n\\ No newline at end of file\n"
	return out
}

func shiftHunks(diff string, by int) string {
	if by == 0 {
		return diff
	}
	all := strings.SplitAfter(diff, "\n")
	for i, l := range all {
		if !strings.HasPrefix(l, "@@ -") {
			continue
		}
		f := strings.Fields(l)
		all[i] = f[0] + " " + shiftRange(f[1], by) + " " + shiftRange(f[2], by) + " @@\n"
	}
	return strings.Join(all, "")
}

func shiftRange(r string, by int) string {
	start, rest, counted := strings.Cut(r[1:], ",")
	n, err := strconv.Atoi(start)
	if err != nil {
		return r
	}
	out := r[:1] + strconv.Itoa(n+by)
	if counted {
		out += "," + rest
	}
	return out
}
