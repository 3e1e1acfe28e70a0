package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// oldRoute is a route in the configuration of OpenPAI's Alertmanager. exact contains the labels of match, and re contains those of match_re.
type oldRoute struct {
	at        []any
	exact, re map[string]string
	// continues reports whether the alerts of this route also go to later routes.
	continues bool
	// nested reports whether the route has child routes. Alerts go to the child routes first.
	nested bool
	// problem is the reason why the conditions of the route can't be parsed, or "".
	problem string
}

func (m *migrator) route(at []any) oldRoute {
	d, r := m.docs[ServicesFile], oldRoute{at: at, exact: map[string]string{}, re: map[string]string{}}
	r.continues, _ = d.get(append(slices.Clone(at), "continue")...).(bool)
	r.nested = len(d.list(append(slices.Clone(at), "routes")...)) > 0
	if d.get(append(slices.Clone(at), "matchers")...) != nil {
		r.problem = "matchers aren't migrated: write a policy with these labels into alert-handler.policies"
	}
	for kind, into := range map[string]map[string]string{"match": r.exact, "match_re": r.re} {
		for _, label := range d.keys(append(slices.Clone(at), kind)...) {
			p := append(slices.Clone(at), kind, label)
			switch d.get(p...).(type) {
			case map[string]any, []any:
				r.problem = "the value of the label " + label + " is not a text: write a policy into alert-handler.policies"
			case nil:
				into[label] = ""
			default:
				into[label] = d.doc.Scalar(p...)
			}
		}
	}
	for label, text := range r.re {
		if _, err := whole(text); err != nil {
			r.problem = fmt.Sprintf("match_re.%s is not a regular expression: write a policy into alert-handler.policies", label)
		}
	}
	return r
}

func (r *oldRoute) take(d *oldDoc) {
	for _, key := range []string{"receiver", "match", "match_re"} {
		d.take(append(slices.Clone(r.at), key)...)
	}
}

// whole compiles a regular expression that must match a whole value, as in Alertmanager and the alert handler.
func whole(text string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(text); err != nil {
		return nil, err
	}
	return regexp.Compile("^(?:" + text + ")$")
}

// matches reports whether a regular expression matches a whole value. It returns false for an invalid expression.
func matches(text, value string) bool {
	re, err := whole(text)
	return err == nil && re.MatchString(value)
}

// alerts returns the conditions of a policy as regular expressions for labels. A policy never selects more alerts than the route. If no policy can
// select the alerts of the route, alerts returns the reason.
func (r *oldRoute) alerts() (out map[string]any, problem string) {
	if r.problem != "" {
		return nil, r.problem
	}
	out = map[string]any{}
	every := true // an alert without labels
	for label, text := range r.re {
		out[label] = text
		every = every && matches(text, "")
	}
	for label, value := range r.exact {
		if text, both := r.re[label]; both && !matches(text, value) {
			return nil, "no alert can have both values of the label " + label + ", so it selected none"
		}
		out[label] = regexp.QuoteMeta(value)
		every = every && value == ""
	}
	if every {
		return nil, "it selects every alert, and a policy has to name labels of alerts: write one into alert-handler.policies"
	}
	return out, ""
}

// overlaps reports whether an alert may match both routes.
func (r *oldRoute) overlaps(other *oldRoute) bool {
	for label, value := range r.exact {
		if theirs, known := other.exact[label]; known && theirs != value {
			return false
		}
		if theirs, known := other.re[label]; known && !matches(theirs, value) {
			return false
		}
	}
	for label, text := range r.re {
		if theirs, known := other.exact[label]; known && !matches(text, theirs) {
			return false
		}
	}
	return true
}

// first describes the alerts that went to earlier routes instead of this route. The migration changes this, because OpenPAI's Alertmanager used
// only the first matching route. The alert handler applies every matching policy.
func (r *oldRoute) first(earlier []oldRoute) string {
	var took []string
	for i := range earlier {
		if e := &earlier[i]; !e.continues && r.overlaps(e) {
			took = append(took, fieldPath(e.at).String())
		}
	}
	if r.nested {
		took = append(took, fieldPath(append(slices.Clone(r.at), "routes")).String())
	}
	if len(took) == 0 {
		return ""
	}
	return ". In OpenPAI, alerts that " + strings.Join(took, " or ") + " selects never came here, and the policy would act on them: narrow its alerts, or exempt their jobs, before you set dryRun: false"
}

func (m *migrator) policyNames(section string) map[string]bool {
	out := map[string]bool{}
	present, _ := m.sections()[section].(map[string]any)
	list, _ := present["policies"].([]any)
	for _, one := range list {
		policy, _ := one.(map[string]any)
		if name, ok := policy["name"].(string); ok {
			out[name] = true
		}
	}
	return out
}

// join adds migrated settings to a section. It keeps the existing settings of the section, and appends the migrated policies to the existing
// policies.
func (m *migrator) join(section string, migrated map[string]any, from string) {
	present, ok := m.sections()[section].(map[string]any)
	if !ok {
		m.sections()[section] = migrated
		return
	}
	m.joinAt([]any{section}, present, migrated, from)
}

func (m *migrator) joinAt(at []any, present, migrated map[string]any, from string) {
	for _, key := range slices.Sorted(maps.Keys(migrated)) {
		p, now := append(slices.Clone(at), key), migrated[key]
		was, known := present[key]
		if !known || was == nil {
			present[key] = now
			continue
		}
		if a, ok := was.(map[string]any); ok {
			if b, ok := now.(map[string]any); ok {
				m.joinAt(p, a, b, from)
				continue
			}
		}
		if a, ok := was.([]any); ok && key == "policies" {
			if b, ok := now.([]any); ok {
				present[key] = append(a, b...)
				continue
			}
		}
		if fmt.Sprint(was) != fmt.Sprint(now) {
			m.note(m.docs[ServicesFile], noteChanged, "it stays, instead of what "+from+" has for it", p...)
		}
	}
}
