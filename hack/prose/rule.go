package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A rule finds wording that is hard to understand for readers of technical English. rules.txt describes the parts of a rule.
type rule struct {
	name       string
	near       []string
	write      string
	find, but  *regexp.Regexp
	statements bool
	clauses    bool
	documents  []string
}

type rules []rule

// A finding is a sentence, with the part of it that a rule matches.
type finding struct {
	sentence
	rule  string
	found string
	write string
}

//go:embed rules.txt
var rulesFile string

// parseRules parses rules in the format of rules.txt.
func parseRules(text string) (rules, error) {
	var out rules
	lines := map[string][]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		key, value, _ := strings.Cut(line, " ")
		switch {
		case line == "" || key == "#":
		case strings.HasPrefix(line, "["):
			lines = map[string][]string{}
			out = append(out, rule{name: strings.Trim(line, "[]")})
		case len(out) == 0:
			return nil, fmt.Errorf("%q comes before the first rule", line)
		default:
			lines[key] = append(lines[key], value)
			if err := out[len(out)-1].set(lines); err != nil {
				return nil, fmt.Errorf("rule %q: %w", out[len(out)-1].name, err)
			}
		}
	}
	return out, nil
}

// set sets the fields of a rule from its lines. The keys are the first words of the lines.
func (r *rule) set(lines map[string][]string) (err error) {
	for key, values := range lines {
		switch key {
		case "near":
			r.near = strings.Split(values[0], "|")
		case "write":
			r.write = values[0]
		case "find":
			r.find, err = regexp.Compile(strings.Join(values, "|"))
		case "but":
			r.but, err = regexp.Compile(strings.Join(values, "|"))
		case "statements":
			r.statements = true
		case "clauses":
			r.clauses = true
		case "documents":
			r.documents = strings.Fields(values[0])
		default:
			err = fmt.Errorf("%q isn't a part of a rule", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns the findings of all rules in a sentence.
func (rs rules) check(s sentence) []finding {
	var out []finding
	lower := strings.ToLower(s.text)
	for _, r := range rs {
		if r.documents != nil && !slices.Contains(r.documents, s.documents) {
			continue
		}
		for _, m := range r.matches(lower) {
			out = append(out, finding{sentence: s, rule: r.name, found: strings.Trim(lower[m[0]:m[1]], " ,;:.()"), write: r.write})
		}
	}
	return out
}

// matches returns the parts of a sentence in lower case that the rule finds, as pairs of offsets.
func (r rule) matches(text string) [][]int {
	isNear := slices.ContainsFunc(r.near, func(part string) bool { return strings.Contains(text, part) })
	switch {
	case !isNear, r.statements && isQuestion(text):
		return nil
	case r.clauses:
		return whatClauses(text)
	}
	found := r.find.FindAllStringIndex(text, -1)
	if r.but == nil || found == nil {
		return found
	}
	return without(found, r.but.FindAllStringIndex(text, -1))
}

func isQuestion(text string) bool { return strings.HasSuffix(strings.TrimRight(text, `"')`), "?") }

// without returns the spans that don't overlap a hidden span.
func without(spans, hidden [][]int) [][]int {
	return slices.DeleteFunc(spans, func(s []int) bool {
		return slices.ContainsFunc(hidden, func(h []int) bool { return s[0] < h[1] && h[0] < s[1] })
	})
}
