package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Alert is one alert as Alertmanager sends it to webhooks (message version 4).
type Alert struct {
	// Status is "firing" or "resolved".
	Status      string            `json:"status"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	// EndsAt is the time at which a resolved alert ended.
	EndsAt time.Time `json:"endsAt"`
}

// Firing reports whether the alert hasn't ended.
func (a *Alert) Firing() bool { return a.Status != "resolved" }

// label returns the value of the first label that the alert has. The rules of OpenPAI and of paictl use different label names.
func (a *Alert) label(names ...string) string {
	for _, name := range names {
		if v := a.Labels[name]; v != "" {
			return v
		}
	}
	return ""
}

// Target is the target in the labels of an alert. The target may not exist.
type Target struct {
	// User and Job identify a job.
	User, Job string
	// Machine is the name of a machine, and GPU is the number of one of its GPUs.
	Machine string
	GPU     *int32
}

// Target returns the job or the machine that the alert's labels name.
func (a *Alert) Target() Target {
	t := Target{User: a.label("user", "username"), Job: a.label("job_name"), Machine: a.label("node", "node_name")}
	if n, err := strconv.ParseInt(a.label("gpu", "minor_number"), 10, 32); err == nil && n >= 0 && n <= mostGPU {
		gpu := int32(n)
		t.GPU = &gpu
	}
	return t
}

// Reason returns a description of the alert in one sentence.
func (a *Alert) Reason() string {
	if text := OneLine(a.Annotations["summary"], mostReason); text != "" {
		return text
	}
	return OneLine("the alert "+a.Labels["alertname"]+" fires", mostReason)
}

// The custom resource definition of Action contains the same limits.
const (
	mostReason = 500
	mostGPU    = 1023
)

// OneLine returns a text on one line of at most the given number of bytes. It replaces control characters, including characters that change the
// direction of text.
func OneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	const dots = "…"
	cut := most - len(dots)
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + dots
}

// Applies reports whether the policy selects an alert.
func (p *Policy) Applies(a *Alert) bool {
	for label, re := range p.matchers {
		if !re.MatchString(a.Labels[label]) {
			return false
		}
	}
	return len(p.matchers) > 0
}

// Subject holds the properties of a target that can exempt the target from a policy.
type Subject struct {
	User, VirtualCluster, Machine string
	Tags                          []string
}

// Exempts returns the reason why a policy exempts a target, or "".
func (p *Policy) Exempts(s *Subject) string {
	switch e := &p.Exempt; {
	case s.User != "" && slices.Contains(e.Users, s.User):
		return "the policy exempts the jobs of " + s.User
	case s.VirtualCluster != "" && slices.Contains(e.VirtualClusters, s.VirtualCluster):
		return "the policy exempts " + s.VirtualCluster
	case s.Machine != "" && slices.Contains(e.Machines, s.Machine):
		return "the policy exempts " + s.Machine
	}
	for _, tag := range s.Tags {
		if slices.Contains(p.Exempt.Tags, tag) {
			return "the policy exempts jobs with the tag " + tag
		}
	}
	return ""
}

// Does reports whether the policy has a step with the given operation.
func (p *Policy) Does(do v1.Operation) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Do == do })
}

// ForJobs reports whether the policy acts on jobs rather than machines.
func (p *Policy) ForJobs() bool { return p.Steps[0].Do.ForJobs() }
