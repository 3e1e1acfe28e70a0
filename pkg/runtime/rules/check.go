package rules

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// ruleFile is a file with rules. The rules are a list, or a map in OpenPAI's format with the list under "spec". The other keys
// of this map are documentation.
type ruleFile struct {
	rules []Rule
	base  strictyaml.Path
}

// DecodeNode decodes a list or a map.
func (f *ruleFile) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	if n.Kind == yaml.SequenceNode {
		d.Value(n, path, &f.rules)
		return
	}
	var whole struct {
		ServiceType string `yaml:"service_type"`
		Schema      any    `yaml:"schema"`
		Spec        []Rule `yaml:"spec"`
	}
	d.Value(n, path, &whole)
	f.rules, f.base = whole.Spec, strictyaml.Path{"spec"}
}

// KeyHints returns hints for keys that only OpenPAI's runtime reads, and for misspelled keys.
func (Rule) KeyHints() map[string]string {
	return map[string]string{
		"containerExitCode": `write the code as "code", and its patterns below "pattern"`,
		"patterns":          `write "pattern" with "runtimeContainerPatterns" below it`,
		"behaviour":         `did you mean "behavior"?`,
		"solutions":         `did you mean "solution"?`,
	}
}

var enums = map[string][]string{
	"issuer": {"USER_CONTAINER", "PAI_OS", "PAI_RUNTIME", "PAI_DOCKER", "PAI_K8S", "PAI_FC", "PAI_DB_CONTROLLER", unknown},
	"causer": {"USER_SUBMISSION", "USER_CONTAINER", "USER_STOP", "USER_DELETION", "USER_SCALEDOWN", "USER_RETRY", "USER_UPGRADE", "USER_UNKNOWN",
		"RESOURCE_ALLOCATION_TIMEOUT", "PAI_OS", "PAI_DOCKER", "PAI_RUNTIME", "PAI_K8S", "PAI_FC", "PAI_HW", "PAI_UNKNOWN", unknown},
	"type":     {"USER_SUCCESS", "USER_STOP", "USER_FAILURE", "PLATFORM_FAILURE", "RESOURCE_ALLOCATION_TIMEOUT", typeUnknown},
	"stage":    {"SUBMITTING", "ALLOCATING", "LAUNCHING", "RUNNING", "COMPLETING", unknown},
	"behavior": {behaviorTransient, behaviorConflict, behaviorPermanent, behaviorUnknown},
	"reaction": {reactionRetry, reactionBackoff, reactionMax, reactionNever},
}

// reactions maps each behavior to its reaction.
var reactions = map[string]string{behaviorTransient: reactionRetry, behaviorConflict: reactionBackoff,
	behaviorPermanent: reactionNever, behaviorUnknown: reactionMax}

func sizeMessage(n int) string {
	return fmt.Sprintf("%d KiB are more than the limit of %d KiB", n>>10, MaxBytes>>10)
}

// checker finds mistakes in rules, sets defaults, and compiles the rules.
type checker struct {
	doc      *strictyaml.Document
	base     strictyaml.Path
	rules    []Rule
	set      *Set
	findings strictyaml.Findings

	phrases map[string]int // index of the rule
	bare    map[int]int    // exit codes that a rule has without another condition
}

func (c *checker) report(severity strictyaml.Severity, path strictyaml.Path, rule, message, remedy string) {
	line, column, _ := c.doc.Position(path)
	c.findings = append(c.findings, strictyaml.Finding{File: c.doc.File, Line: line, Column: column, Field: path.String(),
		Rule: "rules/" + rule, Severity: severity, Message: message, Remedy: remedy})
}

func (c *checker) fail(path strictyaml.Path, rule, message, remedy string) {
	c.report(strictyaml.Error, path, rule, message, remedy)
}

func (c *checker) check() {
	c.phrases, c.bare = map[string]int{}, map[int]int{}
	switch n := len(c.rules); {
	case n == 0 && c.findings.Err() != nil:
	case n == 0:
		c.fail(c.base, "empty", "there are no rules", `write a list of rules, or remove the file to use the built-in ones (see "paictl rules show --builtin")`)
	case n > MaxRules:
		c.fail(c.base, "many", fmt.Sprintf("%d rules are more than the limit of %d", n, MaxRules), "remove those that you don't need")
		return
	}
	for i := range c.rules {
		path := c.base.With(i)
		c.code(i, path)
		c.words(&c.rules[i], path)
		c.patterns(i, path.With("pattern"))
	}
}

func (c *checker) code(i int, path strictyaml.Path) {
	r := &c.rules[i]
	at := path.With("code")
	switch first, twice := c.set.byCode[r.Code]; {
	case !c.doc.Has(at...):
		c.fail(path, "code", "the rule has no code", "give it one that isn't used: 220 to 248 and 1 to 127 are for containers")
		return
	case r.Code < lowestCode || r.Code > CodeAbnormal:
		c.fail(at, "code", fmt.Sprintf("code %d is not between %d and %d", r.Code, lowestCode, CodeAbnormal), "codes from 220 to 248 are for containers")
		return
	case r.Code >= reservedLow && r.Code <= reservedHigh:
		c.fail(at, "code", fmt.Sprintf("codes from %d to %d are messages of a container to the controller", reservedLow, reservedHigh), "use one from 220 to 248")
		return
	case twice:
		c.fail(at, "duplicate-code", fmt.Sprintf("rule %d has code %d already", first+1, r.Code), "put the patterns of both into one rule, or use another code")
		return
	}
	c.set.byCode[r.Code] = i
}

func (c *checker) words(r *Rule, path strictyaml.Path) {
	switch first, twice := c.phrases[r.Phrase]; {
	case r.Phrase == "":
		c.fail(path, "phrase", "the rule has no phrase", "give it a short name of one word, such as ContainerCudaOOMKilled")
	case !phrase.MatchString(r.Phrase):
		c.fail(path.With("phrase"), "phrase", "a phrase is one word of letters and digits, at most 100", "such as ContainerCudaOOMKilled")
	case twice:
		c.fail(path.With("phrase"), "duplicate-phrase", fmt.Sprintf("the phrase of code %d is the same", c.rules[first].Code), "take another")
	}
	c.phrases[r.Phrase] = c.set.byCode[r.Code]
	for _, f := range []struct {
		key   string
		value *string
		none  string
	}{{"issuer", &r.Issuer, unknown}, {"causer", &r.Causer, unknown}, {"type", &r.Type, typeUnknown}, {"stage", &r.Stage, unknown},
		{"behavior", &r.Behavior, behaviorUnknown}, {"reaction", &r.Reaction, ""}} {
		switch {
		case *f.value == "":
			*f.value = f.none
		case !slices.Contains(enums[f.key], *f.value):
			remedy := "one of " + strings.Join(enums[f.key], ", ")
			if near := strictyaml.Nearest(*f.value, enums[f.key]); near != "" {
				remedy = fmt.Sprintf("did you mean %s?", near)
			}
			c.fail(path.With(f.key), "enum", fmt.Sprintf("there is no %s %q", f.key, clip(*f.value, 60)), remedy)
		}
	}
	want := reactions[r.Behavior]
	if r.Reaction == "" {
		r.Reaction = want
	} else if want != "" && r.Reaction != want && r.Code != CodeSucceeded {
		c.report(strictyaml.Warning, path.With("reaction"), "reaction", fmt.Sprintf("%s contradicts the behavior %s, which is what decides", r.Reaction, r.Behavior),
			fmt.Sprintf("write %s, or change the behavior", want))
	}
	c.texts(path.With("reason"), []string{r.Reason})
	c.texts(path.With("repro"), r.Repro)
	c.texts(path.With("solution"), r.Solution)
}

var phrase = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,99}$`)

func (c *checker) texts(path strictyaml.Path, list []string) {
	if len(list) > maxTexts {
		c.fail(path, "many", fmt.Sprintf("%d entries are more than the limit of %d", len(list), maxTexts), "shorten the list")
	}
	for _, t := range list {
		if len(t) > maxText {
			c.fail(path, "long", fmt.Sprintf("a text of %d bytes is longer than the limit of %d", len(t), maxText), "shorten it; give the address of a page instead")
		}
	}
}

// regex compiles a regex for a log or a pod. It returns nil for an empty or invalid regex.
func (c *checker) regex(path strictyaml.Path, expr string, log bool) *logRegex {
	if expr == "" {
		if c.doc.Has(path...) {
			c.fail(path, "regex", "the regex is empty and matches everything", "remove the field")
		}
		return nil
	}
	if len(expr) > maxRegex {
		c.fail(path, "regex", fmt.Sprintf("a regex of %d bytes is longer than the limit of %d", len(expr), maxRegex), "write several patterns; any of them may match")
		return nil
	}
	re, err := newLogRegex(expr)
	if err != nil {
		c.fail(path, "regex", regexMessage(err), regexRemedy(expr, err))
		return nil
	}
	if log && re.MatchString("") {
		c.fail(path, "regex", "the regex matches an empty text, so it matches every log", "write the text that must be in the log")
		return nil
	}
	if log && emptyGroup.MatchString(expr) {
		c.report(strictyaml.Warning, path, "regex-parens", "() is an empty group and matches no parentheses", `to match them write \(\)`)
	} else if m := plainGroup.FindString(expr); log && m != "" {
		c.report(strictyaml.Warning, path, "regex-parens", fmt.Sprintf("%s is a group and matches no parentheses", m),
			fmt.Sprintf(`to look for them write \%s\)`, strings.TrimSuffix(m, ")")))
	}
	if m := errno.FindString(expr); log && m != "" {
		c.report(strictyaml.Warning, path, "regex-brackets", fmt.Sprintf("%s is one character of those in the brackets", m),
			fmt.Sprintf(`to look for the brackets write \%s\]`, strings.TrimSuffix(m, "]")))
	}
	return re
}

// Frequent mistakes in regexes: parentheses and brackets without a backslash. OpenPAI's own rules contain such mistakes.
var (
	emptyGroup = regexp.MustCompile(`(?:^|[^\\(])\(\)`)
	plainGroup = regexp.MustCompile(`\(\d+\)`)
	errno      = regexp.MustCompile(`\[(?i:errno) \d+\]`)
)

func regexMessage(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return fmt.Sprintf("not a regular expression: %s: %s", e.Code, clip(e.Expr, 60))
	}
	return "not a regular expression"
}

func regexRemedy(expr string, err error) string {
	e, _ := errors.AsType[*syntax.Error](err)
	switch {
	case strings.Contains(expr, "(?=") || strings.Contains(expr, "(?!") || strings.Contains(expr, "(?<"):
		return "the syntax is RE2, which has no lookahead and no lookbehind; say what must be there instead"
	case e != nil && e.Code == syntax.ErrInvalidRepeatSize:
		return "repeat at most 1000 times in all"
	case e != nil && (e.Code == syntax.ErrMissingParen || e.Code == syntax.ErrUnexpectedParen || e.Code == syntax.ErrMissingBracket):
		return `write \( \) \[ \] for parentheses and brackets of the log`
	}
	return "the syntax is RE2 (github.com/google/re2/wiki/Syntax); put a backslash before special characters"
}
