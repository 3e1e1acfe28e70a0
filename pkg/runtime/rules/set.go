package rules

import (
	_ "embed"
	"regexp"
	"sync"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Limits of a set. The ConfigMap with the set may contain 1 MiB. OpenPAI's own set has 60 rules.
const (
	MaxBytes    = 512 << 10
	MaxRules    = 500
	maxPatterns = 100
	maxRegex    = 1000
	maxTexts    = 20
	maxText     = 2000
)

// Key is the key of the rules in a ConfigMap. File is the name that findings show for rules without a file.
const (
	Key  = "rules.yaml"
	File = "built-in rules"
)

//go:embed builtin.yaml
var builtinText []byte

// Set is an ordered list of rules. The first rule that matches counts.
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

// Builtin returns the set that is part of this build. The caller must not change it.
func Builtin() *Set { return builtin() }

// BuiltinText returns the content of the file with the built-in set.
func BuiltinText() []byte { return append([]byte(nil), builtinText...) }

// Parse parses a set in OpenPAI's format, which is a list of rules, or a map with the list below "spec". The set is nil if the findings contain
// errors.
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
	// Check the parts that can be decoded even if other parts can't, so that all mistakes are reported at once.
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

// ByCode returns the rule for a code from the set, or else from the built-in set. For an undefined code, it returns the rule for all undefined codes
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
