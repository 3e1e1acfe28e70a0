package rules

import (
	_ "embed"
	"regexp"
	"sync"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Limits of a set. The ConfigMap of the set can contain 1 MiB. OpenPAI's own set has 60 rules.
const (
	MaxBytes    = 512 << 10
	MaxRules    = 500
	maxPatterns = 100
	maxRegex    = 1000
	maxTexts    = 20
	maxText     = 2000
)

// Key is the key of the rules in a ConfigMap. File is the name in findings about rules without a file.
const (
	Key  = "rules.yaml"
	File = "built-in rules"
)

//go:embed builtin.yaml
var builtinText []byte

// Set is an ordered list of rules. The first matching rule applies.
type Set struct {
	Rules []Rule

	byCode  map[int]int // index in Rules
	runtime []exitRule
	pod     []podRule
}

var builtin = sync.OnceValue(func() *Set {
	s, findings := Parse(File, builtinText)
	if err := findings.Err(); err != nil {
		panic(err) // a test parses it
	}
	return s
})

// Builtin returns the built-in set. The caller must not change it.
func Builtin() *Set { return builtin() }

// BuiltinText returns the content of the built-in file.
func BuiltinText() []byte { return append([]byte(nil), builtinText...) }

// Parse parses a set in OpenPAI's format: a list of rules, or a map with the list under "spec". The returned set is nil if the
// findings contain errors.
func Parse(file string, data []byte) (*Set, strictyaml.Findings) {
	if len(data) > MaxBytes {
		return nil, strictyaml.Findings{{File: file, Rule: "rules/size", Severity: strictyaml.Error,
			Message: sizeMessage(len(data)), Remedy: "remove rules that you don't need; a ConfigMap holds the file"}}
	}
	doc, findings := strictyaml.Parse(file, data)
	if findings.Err() != nil {
		return nil, findings
	}
	var f ruleFile
	// Check the decoded parts even if other parts are invalid, so that all mistakes are reported at once.
	findings = doc.Decode(&f)
	c := checker{doc: doc, base: f.base, rules: f.rules, set: &Set{byCode: map[int]int{}}, findings: findings}
	c.check()
	c.findings.Sort()
	if c.findings.Err() != nil {
		return nil, c.findings
	}
	c.set.Rules = f.rules
	return c.set, c.findings
}

// ByCode returns the set's rule for a code, or the built-in rule. For an undefined code, it returns the general rule for codes
// with that sign, with OpenPAI's code and phrase.
func (s *Set) ByCode(code int) Rule {
	if r, ok := contract[code]; ok {
		return r
	}
	for _, in := range []*Set{s, Builtin()} {
		if in == nil {
			continue
		}
		if i, ok := in.byCode[code]; ok {
			return in.Rules[i]
		}
	}
	if code < 0 {
		return s.ByCode(CodeUndefinedNegative)
	}
	return s.ByCode(CodeAbnormal)
}

// exitRule is a compiled rule for the runtime.
type exitRule struct {
	rule     int
	patterns []exitPattern
}

type exitPattern struct {
	RuntimePattern
	user, platform *logRegex
}

// podRule is a compiled rule for the controller.
type podRule struct {
	rule     int
	patterns []podPattern
}

type podPattern struct {
	reason, message *regexp.Regexp
	containers      []containerPattern
}

type containerPattern struct {
	name, reason, message *regexp.Regexp
	exitCode              *int
}
