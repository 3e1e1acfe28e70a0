package api

import (
	"time"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
)

// Alert is an alert that fires.
type Alert struct {
	Name     string            `json:"name"`
	Severity string            `json:"severity,omitempty"`
	Since    time.Time         `json:"since"`
	Labels   map[string]string `json:"labels"`
	Summary  string            `json:"summary,omitempty"`
	Runbook  string            `json:"runbook,omitempty"`
	// Silences are the ids of the silences that match it. If there are any, its notifications are suppressed.
	Silences []string `json:"silences,omitempty"`
}

// AlertOf returns an alert of Alertmanager.
func AlertOf(a *alerts.Alert) *Alert {
	return &Alert{Name: a.Labels["alertname"], Severity: a.Labels["severity"], Since: a.StartsAt.UTC(), Labels: a.Labels,
		Summary: a.Annotations["summary"], Runbook: a.Annotations["runbook_url"], Silences: a.Status.SilencedBy}
}

// Alerts are alerts, the latest first.
type Alerts struct {
	Items []Alert `json:"items"`
}

// Matcher selects alerts by one of their labels.
type Matcher struct {
	Label string `json:"label"`
	Value string `json:"value"`
	// Regex reports whether the value is a regular expression for the whole value of the label.
	Regex bool `json:"regex,omitempty"`
	// Not selects the alerts whose label doesn't match.
	Not bool `json:"not,omitempty"`
}

// Text returns the matcher as Alertmanager writes it, without quotes.
func (m *Matcher) Text() string {
	sign := "="
	switch {
	case m.Regex && m.Not:
		sign = "!~"
	case m.Regex:
		sign = "=~"
	case m.Not:
		sign = "!="
	}
	return m.Label + sign + m.Value
}

// Silence suppresses the notifications of alerts until it ends. All of its matchers have to match.
type Silence struct {
	ID       string    `json:"id"`
	Matchers []Matcher `json:"matchers"`
	// State is active, pending or expired.
	State  string    `json:"state"`
	Starts time.Time `json:"starts"`
	Ends   time.Time `json:"ends"`
	// By is the person or operator who made it.
	By     string `json:"by"`
	Reason string `json:"reason"`
	// Alerts is the number of firing alerts that it silences.
	Alerts int `json:"alerts"`
}

// SilenceOf returns a silence of Alertmanager.
func SilenceOf(s *alerts.Silence, n int) *Silence {
	out := &Silence{ID: s.ID, Matchers: []Matcher{}, State: s.Status.State, Starts: s.StartsAt.UTC(), Ends: s.EndsAt.UTC(), By: s.CreatedBy, Reason: s.Comment, Alerts: n}
	for i := range s.Matchers {
		m := &s.Matchers[i]
		out.Matchers = append(out.Matchers, Matcher{Label: m.Name, Value: m.Value, Regex: m.Regex, Not: m.Not()})
	}
	return out
}

// Silences are silences that are active or pending, sorted by their end.
type Silences struct {
	Items []Silence `json:"items"`
}

// NewSilence silences alerts.
type NewSilence struct {
	Matchers []Matcher `json:"matchers"`
	// Seconds is the time until it ends: from a minute to 90 days.
	Seconds int64 `json:"seconds"`
	// Reason is one sentence.
	Reason string `json:"reason"`
}
