package protocol

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// References look like <% $parameters.steps %>. They are replaced in one pass: references in an inserted value aren't replaced, and the value
// isn't escaped.
const (
	tagOpen  = "<%"
	tagClose = "%>"
	// maxFilled is the maximum size in bytes of all commands together after their references are replaced, because a small file can contain many
	// references to a long value.
	maxFilled = 640 << 10
)

// scope contains the values that the references of one role may use.
type scope struct {
	roots map[string]*value // by name, such as $parameters; nil if the file doesn't have it
	role  string            // for messages
}

var indexStep = regexp.MustCompile(`\[(\d+)\]`)

// fill returns the text of a value with its references replaced. Mistakes are reported with the line and column of the reference.
func (p place) fill(s scope) string { return p.fillIn(p.v.text(), s) }

// fillIn is like fill, but uses the given text, such as the value's text without surrounding spaces.
func (p place) fillIn(text string, s scope) string {
	if !strings.Contains(text, tagOpen) {
		p.spend(len(text))
		return text
	}
	var b strings.Builder
	for count := 0; ; count++ {
		before, rest, found := strings.Cut(text, tagOpen)
		b.WriteString(before)
		if !found {
			p.spend(len(before))
			break
		}
		inside, after, closed := strings.Cut(rest, tagClose)
		if !closed {
			p.reportTag(count, "a reference begins with <% and doesn't end", "end it with %>; if the text itself needs <%, put it into a parameter")
			return b.String()
		}
		b.WriteString(p.resolve(inside, count, s))
		if !p.spend(len(before)) {
			return ""
		}
		text = after
		count += strings.Count(inside, tagOpen)
	}
	return b.String()
}

// spend counts inserted bytes, and reports whether their total is still within the limit.
func (p place) spend(n int) bool {
	before := p.r.filled
	p.r.filled += n
	if before <= maxFilled && p.r.filled > maxFilled {
		p.report("job/size", fmt.Sprintf("the commands and plugins have more than %d kB once references are filled in", maxFilled>>10),
			"put programs and data on storage, into the image, or into a folder that is sent with the job (--code)")
	}
	return p.r.filled <= maxFilled
}

// resolve returns the text that replaces one reference.
func (p place) resolve(inside string, count int, s scope) string {
	name := strings.TrimSpace(inside)
	switch {
	case name == "":
		p.reportTag(count, "a reference is empty", "write its name, such as <% $parameters.name %>")
		return ""
	case name[0] == '!': // a comment
		return ""
	case strings.ContainsAny(name[:1], "#^/>&={"):
		p.reportTag(count, fmt.Sprintf("<%% %s %%> is not a known reference", shorten(name)), "only references such as <% $parameters.name %> are filled in")
		return ""
	}
	v, message, remedy := s.lookup(name)
	if message == "" {
		var text string
		if text, message = v.fillText(); message == "" {
			if !p.spend(len(text)) {
				return ""
			}
			p.nested(v, name, count)
			return text
		}
		message = fmt.Sprintf("<%% %s %%> is %s", name, message)
		remedy = "write a value for it"
		if part := v.firstPart(); part != "" {
			remedy = "name one of its parts, such as <% " + name + part + " %>"
		}
	}
	p.reportTag(count, message, remedy)
	return ""
}

// nested warns if the value of a reference itself contains references, because they aren't replaced.
func (p place) nested(v *value, name string, count int) {
	if v.kind == kindText && strings.Contains(v.text(), tagOpen+" $") {
		p.atTag(strictyaml.Warning, count, fmt.Sprintf("the value of <%% %s %%> contains a reference itself, which is not filled in", name), "write that reference into the command")
	}
}

// lookup returns the value that a reference names, or a message and a remedy if there is no such value.
func (s scope) lookup(name string) (v *value, message, remedy string) {
	steps := strings.Split(indexStep.ReplaceAllString(name, ".$1"), ".")
	v, known := s.roots[steps[0]]
	switch {
	case !known:
		roots := make([]string, 0, len(s.roots))
		for r := range s.roots {
			roots = append(roots, r)
		}
		return nil, fmt.Sprintf("<%% %s %%> is not defined: there is no %s", shorten(name), shorten(steps[0])), oneOf(steps[0], "references begin with ", roots)
	case v == nil:
		return nil, fmt.Sprintf("<%% %s %%> is not defined: %s", shorten(name), s.missing(steps[0])), s.remedy(steps[0])
	}
	for i, step := range steps[1:] {
		next := v.field(step)
		if n, err := strconv.Atoi(step); err == nil && v.kind == kindList && n >= 0 && n < len(v.items) {
			next = v.items[n]
		}
		if next == nil {
			owner := strings.Join(steps[:i+1], ".")
			return nil, fmt.Sprintf("<%% %s %%> is not defined: %s has no %s", shorten(name), owner, shorten(step)), v.candidates(step)
		}
		v = next
	}
	return v, "", ""
}

func (s scope) missing(root string) string {
	if root == "$parameters" || root == "$secrets" {
		return "the file has no " + root[1:]
	}
	return "the role " + s.role + " has no " + root[1:]
}

func (s scope) remedy(root string) string {
	if root == "$parameters" || root == "$secrets" {
		return "write " + root[1:] + ": with names and values at the top of the file"
	}
	return "write " + root[1:] + ": in the role, and the name of a prerequisite"
}

func (v *value) candidates(step string) string {
	switch {
	case v.kind == kindMap && len(v.fields) > 0:
		return oneOf(step, "it has ", v.names())
	case v.kind == kindList:
		return fmt.Sprintf("it is a list of %d, counted from 0", len(v.items))
	}
	return "it has no parts; remove ." + shorten(step)
}

func (v *value) firstPart() string {
	if v.kind == kindList {
		return "[0]"
	}
	if len(v.fields) > 0 {
		return "." + v.fields[0].name
	}
	return ""
}

// fillText returns the value as text for a command. If the value can't be inserted, problem describes it.
func (v *value) fillText() (text, problem string) {
	switch v.kind {
	case kindText:
		return v.text(), ""
	case kindNumber:
		return formatNumber(v.number), ""
	case kindBool:
		return strconv.FormatBool(v.truth), ""
	case kindMap:
		return "", "a map, and has no text"
	case kindList:
		parts := make([]string, len(v.items))
		for i, item := range v.items {
			if item.kind == kindNull {
				continue
			}
			if parts[i], problem = item.fillText(); problem != "" {
				return "", "a list with maps in it, and has no text"
			}
		}
		return strings.Join(parts, ","), ""
	}
	return "", "empty"
}

func (p place) reportTag(count int, message, remedy string) {
	p.atTag(strictyaml.Error, count, message, remedy)
}

// atTag reports a finding at the reference with the number count in the text.
func (p place) atTag(severity strictyaml.Severity, count int, message, remedy string) {
	if len(p.r.findings) >= maxFindings {
		return
	}
	line, column := p.r.tagPosition(p.v, count)
	p.r.add(severity, line, column, p.path, "job/reference", message, remedy)
}

// tagPosition finds the reference with the number count in a text, and returns its position in the file. Apart from escapes, the file contains
// the characters of the text in the same order, however the text is quoted or folded.
func (r *reader) tagPosition(v *value, count int) (line, column int) {
	line, column = v.node.Line, v.node.Column
	text := string(r.tree.doc.Text())
	offset := 0
	for range line - 1 {
		next := strings.IndexByte(text[offset:], '\n')
		if next < 0 {
			return line, column
		}
		offset += next + 1
	}
	offset = min(offset+column-1, len(text))
	for i := 0; ; i++ {
		next := strings.Index(text[offset:], tagOpen)
		if next < 0 {
			return line, column
		}
		if offset += next; i == count {
			break
		}
		offset += len(tagOpen)
	}
	before := text[:offset]
	return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
}

// any returns the value in a form that encoding/json can encode, with the references in its strings replaced.
func (p place) any(s scope) any {
	switch p.v.kind {
	case kindText:
		return p.fill(s)
	case kindNumber:
		if p.v.whole && max(p.v.number, -p.v.number) < 1<<53 {
			return int64(p.v.number)
		}
		return p.v.number
	case kindBool:
		return p.v.truth
	case kindList:
		out := []any{}
		for i, item := range p.v.items {
			out = append(out, place{p.r, item, p.path.With(i)}.any(s))
		}
		return out
	case kindMap:
		out := map[string]any{}
		for _, f := range p.each() {
			out[f.name()] = f.any(s)
		}
		return out
	}
	return nil
}

func hasTag(text string) bool { return strings.Contains(text, tagOpen) }

// onlyTags reports whether a text consists only of references and spaces.
func onlyTags(text string) bool { return strings.TrimSpace(withoutTags(text)) == "" }

// withoutTags returns a text with its references removed.
func withoutTags(text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, tagOpen)
		_, after, closed := strings.Cut(rest, tagClose)
		if !found || !closed {
			return out.String() + text
		}
		out.WriteString(before)
		text = after
	}
}

// knownPlugins returns the names of the plugins that the runtime supports.
func knownPlugins() []string {
	return slices.Clone([]string{"cmd", "ssh", "tensorboard", "git", "teamwise_storage"})
}
