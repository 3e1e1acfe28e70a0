package protocol

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// maxFindings is the maximum number of findings for one file. If there are more, the file as a whole is probably wrong.
const maxFindings = 200

// place is the place of a field in the file, with the field's value. The field may be missing.
type place struct {
	r    *reader
	v    *value // nil if it doesn't exist
	path strictyaml.Path
}

func (p place) there() bool { return p.v != nil }

// get returns the place of a field of a map.
func (p place) get(name string) place { return place{p.r, p.v.field(name), p.path.With(name)} }

// each returns the places of all fields of a map, in the order of the file.
func (p place) each() []place {
	var out []place
	for _, f := range p.v.fields {
		out = append(out, place{p.r, f.value, p.path.With(f.name)})
	}
	return out
}

// name returns the last key of the path, or "" if the path ends with an index.
func (p place) name() string {
	s, _ := p.path[len(p.path)-1].(string)
	return s
}

func (p place) report(rule, message, remedy string) {
	line, column := 1, 1
	if p.v != nil {
		line, column = p.v.line, p.v.column
	}
	p.r.add(strictyaml.Error, line, column, p.path, rule, message, remedy)
}

func (p place) warn(rule, message, remedy string) {
	if p.v != nil {
		p.r.add(strictyaml.Warning, p.v.line, p.v.column, p.path, rule, message, remedy)
	}
}

func (p place) atKey() (line, column int) {
	if p.v.key != nil {
		return p.v.key.Line, p.v.key.Column
	}
	return p.v.line, p.v.column
}

// is reports whether the field exists and its value has the kind k. If the value has another kind, a finding is reported.
func (p place) is(k kind) bool {
	if !p.there() || p.v.kind == k {
		return p.there()
	}
	remedy := ""
	switch {
	case p.v.kind == kindNull:
		p.report("yaml/type", fmt.Sprintf("expected %s, and the value is empty", k), "write a value, or remove the key")
		return false
	case p.v.kind == kindText && strings.Contains(p.v.node.Value, "<%"):
		p.report("job/reference", fmt.Sprintf("expected %s, found a reference; references can't be used here", k),
			fmt.Sprintf("write %s; references are replaced in commands and in parameters of plugins", k))
		return false
	case k == kindText && (p.v.kind == kindNumber || p.v.kind == kindBool):
		remedy = "put it in quotes"
	case k == kindList && p.v.kind == kindText:
		remedy = `write each entry on a separate line that begins with "- "`
	case p.v.kind == kindText && (k == kindNumber || k == kindBool) && p.v.node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		remedy = "remove the quotes, if that is what you meant"
	case k == kindMap:
		remedy = `write its keys on the lines below, indented, each as "key: value"`
	default:
		remedy = fmt.Sprintf("write %s there", k)
	}
	p.report("yaml/type", fmt.Sprintf("expected %s, found %s", k, p.v.kind), remedy)
	return false
}

// object reports whether the value is a map. It reports a finding for each key that isn't known and for each missing key that is required. If
// known is empty, all keys are allowed.
func (p place) object(known []string, required ...string) bool {
	if !p.is(kindMap) {
		return false
	}
	for _, f := range p.each() {
		if len(known) > 0 && !slices.Contains(known, f.name()) {
			line, column := f.atKey()
			p.r.add(strictyaml.Error, line, column, f.path, "yaml/unknown-key", fmt.Sprintf("there is no key %q here", f.name()), oneOf(f.name(), "the keys here are ", known))
		}
	}
	for _, name := range required {
		p.require(name)
	}
	return true
}

func (p place) require(name string) {
	if p.v.field(name) == nil {
		line, column := p.v.place()
		p.r.add(strictyaml.Error, line, column, p.path.With(name), "job/required", fmt.Sprintf("%q is missing", name), requiredRemedy(name))
	}
}

func requiredRemedy(name string) string {
	switch name {
	case "protocolVersion":
		return "write protocolVersion: 2"
	case "type":
		return "write type: job at the top, and in prerequisites dockerimage, script, output or data"
	case "commands":
		return "write a list of shell commands"
	case "dockerImage":
		return "write the name of a prerequisite whose type is dockerimage"
	case "resourcePerInstance":
		return "write cpu, memoryMB and gpu of one instance"
	case "taskRoles":
		return "write a map with at least one role: instances, dockerImage, resourcePerInstance, commands"
	case "uri":
		return "write the image's name; of data, a list"
	}
	return fmt.Sprintf("write %s: and its value", name)
}

// oneOf returns a remedy for an unknown word: a similar known word, or the list of known words after lead.
func oneOf(word, lead string, known []string) string {
	if near := strictyaml.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	const shown = 24
	sorted := slices.Sorted(slices.Values(known))
	if len(sorted) > shown {
		return lead + strings.Join(sorted[:shown], ", ") + " and " + plural.Of(len(sorted)-shown, "other")
	}
	return lead + strings.Join(sorted, ", ")
}

// text returns the text of the value, or "" if the field is missing or not a text.
func (p place) text() string {
	if !p.is(kindText) {
		return ""
	}
	return p.v.text()
}

// literal returns the text of the value, or "" if the text contains references.
func (p place) literal() string {
	s := p.text()
	if p.refers() {
		return ""
	}
	return s
}

// refers reports whether the value contains a reference, and reports a finding if it does. It is for values that must not contain references.
func (p place) refers() bool {
	if !p.there() || p.v.kind != kindText || !hasTag(p.v.text()) {
		return false
	}
	p.report("job/reference", "references can't be used here", "write the value itself; references are replaced in commands and in parameters of plugins")
	return true
}

// named returns the text of the value. It reports a finding if the text is too long or doesn't match a pattern.
func (p place) named(pattern *regexp.Regexp, limit int, what string) string {
	s := p.text()
	switch {
	case !p.there() || p.v.kind != kindText || p.refers():
	case s == "":
		p.report("job/name", "the name is empty", "write "+what)
	case len(s) > limit:
		p.report("job/name", fmt.Sprintf("the name has %d characters", len(s)), fmt.Sprintf("write %d at most", limit))
	case !pattern.MatchString(s):
		p.report("job/name", fmt.Sprintf("the name %q is not allowed here", shorten(s)), "write "+what)
	}
	return s
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// isNumber reports whether the value is a number. It reports a finding for a number that versions of YAML read in different ways, except in a job
// that was stored.
func (p place) isNumber() bool {
	if !p.is(kindNumber) {
		return false
	}
	if strictyaml.Ambiguous(p.v.node) && !p.r.masked {
		p.report(strictyaml.RuleNumber, strictyaml.AmbiguousMessage, strictyaml.AmbiguousRemedy)
		return false
	}
	return true
}

// number returns the value as a whole number between least and most. If the value is missing or wrong, it returns fallback.
func (p place) number(least, most, fallback int) int {
	if !p.isNumber() {
		return fallback
	}
	if !p.v.whole {
		p.report("yaml/type", "expected a whole number", "write a number without a fraction")
		return fallback
	}
	if p.v.number < float64(least) || p.v.number > float64(most) {
		p.report("job/range", formatNumber(p.v.number)+" is not possible here", fmt.Sprintf("write a number from %d to %d", least, most))
		return fallback
	}
	return int(p.v.number)
}

// thousandths returns a number, which may have up to three decimals, multiplied by 1000.
func (p place) thousandths(most int) int {
	if !p.isNumber() {
		return 0
	}
	n := p.v.number * 1000
	if p.v.number < 0 || p.v.number > float64(most) {
		p.report("job/range", formatNumber(p.v.number)+" is not possible here", fmt.Sprintf("write a number from 0 to %d", most))
		return 0
	}
	if whole := math.Round(n); math.Abs(n-whole) > 1e-6 {
		p.report("job/range", formatNumber(p.v.number)+" has more than three decimals", "write a number such as 0.5 or 0.125")
		return 0
	}
	return int(math.Round(n))
}

// boolean returns true or false, or fallback if the value is missing or wrong.
func (p place) boolean(fallback bool) bool {
	if !p.is(kindBool) {
		return fallback
	}
	return p.v.truth
}

// list returns the places of the entries of the list at this place, or nil if there is no list. It reports a finding if the list has fewer than
// least entries.
func (p place) list(least int) []place {
	if !p.is(kindList) {
		return nil
	}
	if len(p.v.items) < least {
		p.report("job/empty", "the list is empty", "write at least one entry, or remove the key")
	}
	var out []place
	for i, v := range p.v.items {
		out = append(out, place{p.r, v, p.path.With(i)})
	}
	return out
}

// texts returns the texts in a list, and their places. It reports a finding for an entry that isn't a text.
func (p place) texts(least int) ([]string, []place) {
	var out []string
	var places []place
	for _, e := range p.list(least) {
		if e.is(kindText) {
			out, places = append(out, e.v.text()), append(places, e)
		}
	}
	return out, places
}

// formatNumber formats a number as JavaScript does, because OpenPAI fills in numbers in this format: 1.0 becomes 1, 1e-7 stays 1e-7, and 1e21
// becomes 1e+21.
func formatNumber(f float64) string {
	if f == 0 {
		return "0"
	}
	abs := max(f, -f)
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}
