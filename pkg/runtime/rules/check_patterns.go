package rules

import (
	"fmt"
	"reflect"
	"regexp"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// patterns checks and compiles the patterns of a rule.
func (c *checker) patterns(i int, path strictyaml.Path) {
	r := &c.rules[i]
	p := r.Pattern
	switch {
	case c.internal(r.Code) && (len(p.Runtime) > 0 || len(p.Pod) > 0):
		c.fail(path, "internal-code", fmt.Sprintf("the controller itself sets code %d; it can't have patterns", r.Code), "use a code from 220 to 248 for containers")
		return
	case len(p.Runtime) > maxPatterns || len(p.Pod) > maxPatterns:
		c.fail(path, "many", fmt.Sprintf("more than %d patterns", maxPatterns), "write fewer; a regex may contain alternatives")
		return
	case len(p.Runtime) > 0 && (r.Code < 1 || r.Code > highestExitCode):
		c.fail(path.With("runtimeContainerPatterns"), "runtime-code", fmt.Sprintf("a container can't exit with code %d", r.Code), "use a code from 220 to 248")
		return
	}
	e := exitRule{rule: i}
	for k, q := range p.Runtime {
		e.patterns = append(e.patterns, c.exitPattern(r, q, path.With("runtimeContainerPatterns", k)))
	}
	if len(e.patterns) > 0 {
		c.set.runtime = append(c.set.runtime, e)
	}
	if c.internal(r.Code) || r.Code == CodeAbnormal || r.Code == CodeUndefinedNegative {
		return
	}
	d := podRule{rule: i}
	for k, q := range p.Pod {
		d.patterns = append(d.patterns, c.podPattern(q, path.With("controllerPodPatterns", k)))
	}
	c.unreachable(i, path.With("controllerPodPatterns"))
	c.set.pod = append(c.set.pod, d)
}

// internal reports whether a code belongs to the controller, or is 0 for success.
func (c *checker) internal(code int) bool { return code >= -999 && code <= 0 }

func (c *checker) exitPattern(r *Rule, p RuntimePattern, path strictyaml.Path) exitPattern {
	if p.ExitCode == nil && p.UserLog == "" && p.PlatformLog == "" && p.GPU == nil && p.GPUFault == nil && p.OOMKilled == nil {
		c.fail(path, "any", "the pattern is empty and matches every failure", "give it an exitCode, a userLogRegex, a platformLogRegex, gpuInfo, gpuFault or oomKilled")
	}
	if p.ExitCode != nil && (*p.ExitCode < 1 || *p.ExitCode > highestExitCode) {
		c.fail(path.With("exitCode"), "exit-code", fmt.Sprintf("a failed program can't exit with %d", *p.ExitCode), "1 to 255; 128 and the signal's number after a signal")
	} else if p.ExitCode != nil {
		if by, taken := c.bare[*p.ExitCode]; taken && by != r.Code {
			c.report(strictyaml.Warning, path, "unreachable", fmt.Sprintf("code %d is listed before and matches every exit code %d", by, *p.ExitCode),
				fmt.Sprintf("list this rule before code %d", by))
		}
		only := RuntimePattern{ExitCode: p.ExitCode}
		if reflect.DeepEqual(p, only) {
			c.bare[*p.ExitCode] = r.Code
		}
	}
	if p.LastLines < 0 {
		c.fail(path.With("lastLines"), "last-lines", "a number of lines can't be negative", "remove it to search the whole log")
	}
	if (p.LastLines > 0 || p.ErrorLine) && p.UserLog == "" && p.PlatformLog == "" {
		c.fail(path, "last-lines", "lastLines and errorLine need a userLogRegex or a platformLogRegex", "add one, or remove them")
	}
	return exitPattern{RuntimePattern: p, user: c.regex(path.With("userLogRegex"), p.UserLog, true),
		platform: c.regex(path.With("platformLogRegex"), p.PlatformLog, true)}
}

func (c *checker) podPattern(p PodPattern, path strictyaml.Path) podPattern {
	if p.Reason == "" && p.Message == "" && len(p.Containers) == 0 {
		c.fail(path, "any", "the pattern is empty and matches every failed pod", "give it a reasonRegex, a messageRegex or containers")
	}
	if len(p.Containers) > maxPatterns {
		c.fail(path.With("containers"), "many", fmt.Sprintf("more than %d containers", maxPatterns), "write several patterns")
		return podPattern{}
	}
	out := podPattern{reason: c.podRegex(path.With("reasonRegex"), p.Reason), message: c.podRegex(path.With("messageRegex"), p.Message)}
	for k, q := range p.Containers {
		at := path.With("containers", k)
		if q.ExitCode != nil && *q.ExitCode == 0 {
			c.fail(at.With("exitCode"), "exit-code", "a container that exits with 0 hasn't failed", "give another code, or remove it to match all that failed")
		}
		out.containers = append(out.containers, containerPattern{name: c.podRegex(at.With("nameRegex"), q.Name),
			reason: c.podRegex(at.With("reasonRegex"), q.Reason), message: c.podRegex(at.With("messageRegex"), q.Message), exitCode: q.ExitCode})
	}
	return out
}

func (c *checker) podRegex(path strictyaml.Path, expr string) *regexp.Regexp {
	if re := c.regex(path, expr, false); re != nil {
		return re.Regexp
	}
	return nil
}

// unreachable warns about pod patterns that never match, because a pattern of an earlier rule always matches first. OpenPAI's
// rule -1205 has this mistake.
func (c *checker) unreachable(i int, path strictyaml.Path) {
	for k, p := range c.rules[i].Pattern.Pod {
		for _, before := range c.set.pod {
			for _, q := range c.rules[before.rule].Pattern.Pod {
				if covers(q, p) {
					c.report(strictyaml.Warning, path.With(k), "unreachable", fmt.Sprintf("code %d is listed before and matches every pod that this rule matches", c.rules[before.rule].Code),
						fmt.Sprintf("list this rule before code %d", c.rules[before.rule].Code))
				}
			}
		}
	}
}

// covers reports whether wide matches whenever narrow matches. It compares only the texts of regexes.
func covers(wide, narrow PodPattern) bool {
	if !sameOrAny(wide.Reason, narrow.Reason) || !sameOrAny(wide.Message, narrow.Message) {
		return false
	}
	for _, w := range wide.Containers {
		found := false
		for _, n := range narrow.Containers {
			code := w.ExitCode == nil || n.ExitCode != nil && *w.ExitCode == *n.ExitCode
			found = found || code && sameOrAny(w.Name, n.Name) && sameOrAny(w.Reason, n.Reason) && sameOrAny(w.Message, n.Message)
		}
		if !found {
			return false
		}
	}
	return true
}

func sameOrAny(wide, narrow string) bool {
	switch wide {
	case "", "(?ms).*", "(?s).*", ".*":
		return true
	}
	return wide == narrow
}
