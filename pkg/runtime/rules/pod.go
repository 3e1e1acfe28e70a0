package rules

import "slices"

// codeOutOfMemory is the runtime's exit code if the kernel killed a process of the task because memory was exhausted.
const codeOutOfMemory = 227

// Pod describes a failed pod.
type Pod struct {
	Reason, Message string
	Containers      []Container // including init containers; only terminated ones
}

// Container describes a terminated container.
type Container struct {
	Name, Reason, Message string
	Code                  int
	Finished              int64 // Unix time, to find which failed last
}

// ClassifyPod classifies a failed pod. It first handles the codes in contract, then uses the first matching rule. If no rule
// matches, it uses the exit code of the container that failed last.
func (s *Set) ClassifyPod(p Pod) Match {
	none := Match{UserLogAt: -1, PlatformLogAt: -1}
	for _, code := range []int{CodeTransient, CodeConflict, CodePermanent} {
		if slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Code == code }) {
			none.Rule, none.Code, none.ExitCode, none.Known = s.ByCode(code), code, true, true
			return none
		}
	}
	// The runtime detected that memory was exhausted and returned its own code.
	if slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Code == codeOutOfMemory && c.Reason == "OOMKilled" }) {
		none.Rule, none.Code, none.Known = s.ByCode(codeOutOfMemory), codeOutOfMemory, true
		return none
	}
	for _, r := range s.pod {
		if s.podFits(r, p) {
			none.Rule, none.Known = s.Rules[r.rule], true
			none.Code = none.Rule.Code
			return none
		}
	}
	last := lastFailed(p.Containers)
	if last == nil {
		none.Rule = s.ByCode(CodeNoFailedContainer)
		none.Code, none.Known = none.Rule.Code, true
		return none
	}
	none.Code = last.Code
	none.Rule = s.ByCode(CodeAbnormal)
	none.Rule.Code, none.Rule.Phrase, none.Rule.Pattern = last.Code, phraseUnrecognized, Pattern{}
	none.Rule.Issuer, none.Rule.Causer, none.Rule.Type = "USER_CONTAINER", unknown, typeUnknown
	none.Rule.Behavior, none.Rule.Reaction = behaviorUnknown, reactionMax
	return none
}

func (s *Set) podFits(r podRule, p Pod) bool {
	if len(r.patterns) == 0 {
		code := s.Rules[r.rule].Code
		return slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Code == code })
	}
	return slices.ContainsFunc(r.patterns, func(q podPattern) bool { return q.fits(p) })
}

func (q podPattern) fits(p Pod) bool {
	if q.reason != nil && !q.reason.MatchString(p.Reason) || q.message != nil && !q.message.MatchString(p.Message) {
		return false
	}
	for _, c := range q.containers {
		if !slices.ContainsFunc(p.Containers, c.fits) {
			return false
		}
	}
	return true
}

func (q containerPattern) fits(c Container) bool {
	switch {
	case q.exitCode != nil && *q.exitCode != c.Code, q.exitCode == nil && c.Code < 1:
		return false
	case q.name != nil && !q.name.MatchString(c.Name):
		return false
	case q.reason != nil && !q.reason.MatchString(c.Reason):
		return false
	}
	return q.message == nil || q.message.MatchString(c.Message)
}

func lastFailed(cs []Container) *Container {
	var last *Container
	for i := range cs {
		if cs[i].Code != 0 && (last == nil || cs[i].Finished >= last.Finished) {
			last = &cs[i]
		}
	}
	return last
}
