package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// Fresh is the maximum age of the last message about an alert when an Action begins. Alertmanager repeats an alert every ten minutes, so two
	// messages are missing at this age. A silence also stops the messages.
	Fresh = 25 * time.Minute
	// Unheard is the time without messages after which a message with a later start begins a new incident. Alertmanagers outside paictl may repeat an
	// alert only every hour.
	Unheard = 2*time.Hour + 15*time.Minute
	// late is the time after the end of an alert within which a message that the alert fires may still arrive. Prometheus repeats the end of an alert
	// for 15 minutes, while another Prometheus may still report that the alert fires.
	late = 20 * time.Minute
)

// Incident is the period in which an alert fires, for one policy. It begins with a message that the alert fires, and ends with a message that the
// alert has ended. The start time of the alert doesn't identify the incident. The start time changes when Prometheus restarts, and differs between
// several instances of Prometheus.
type Incident struct {
	// Key identifies the alert. Number counts the incidents of the alert.
	Key    string
	Number int
	// Started is the latest start time in the messages about the alert, but not earlier than the end of the previous incident.
	Started time.Time
	// Last is the arrival time of the last message about the alert.
	Last time.Time
	// Ended is the time at which the alert ended. It is zero while the alert fires.
	Ended time.Time
}

// Key returns a text that identifies an alert for the policy by the alert's labels. A dry run has a different key. So the steps run for the same
// alert after the policy stops making dry runs.
func (p *Policy) Key(a *Alert) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %t\n", p.Name, p.DryRun)
	for _, label := range slices.Sorted(maps.Keys(a.Labels)) {
		fmt.Fprintf(h, "%q %q\n", label, a.Labels[label])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// String returns the text of the incident in names and labels.
func (i *Incident) String() string { return i.Key + "-" + strconv.Itoa(i.Number) }

// ParseIncident parses the result of String.
func ParseIncident(text string) (i Incident, ok bool) {
	key, number, found := strings.Cut(text, "-")
	n, err := strconv.Atoi(number)
	return Incident{Key: key, Number: n}, found && err == nil && n > 0 && key != ""
}

// ActionName returns the name of the Action for one step of an incident. The name is always the same, so that the API server rejects a second Action
// for the step.
func (p *Policy) ActionName(incident string, step int) string {
	return fmt.Sprintf("%s-%s-%d", p.Name, incident, step+1)
}

// Part describes how a message that an alert fires relates to an incident.
type Part int

const (
	// Same means that the message belongs to the incident.
	Same Part = iota
	// Late means that the message belongs to the incident, but arrived after the incident's end.
	Late
	// Other means that the message belongs to the next incident.
	Other
)

// Part returns how a message that the alert fires relates to this incident.
func (i *Incident) Part(a *Alert, now time.Time) Part {
	switch {
	case i.Ended.IsZero() && now.Sub(i.Last) > Unheard && a.StartsAt.After(i.Last):
		return Other // the message that it had ended was lost
	case i.Ended.IsZero():
		return Same
	case !a.StartsAt.Before(i.Ended):
		return Other
	case now.Sub(i.Last) < late:
		return Late
	}
	return Other // another Prometheus never saw the end
}

// Next returns the incident that a message begins after this incident.
func (i *Incident) Next(a *Alert, now time.Time) Incident {
	next := Incident{Key: i.Key, Number: i.Number + 1, Started: a.StartsAt, Last: now}
	if i.Ended.After(next.Started) {
		next.Started = i.Ended
	}
	return next
}

// Ends reports whether a message about the end of the alert belongs to this incident. A late message may belong to an earlier incident.
func (i *Incident) Ends(a *Alert, now time.Time) bool {
	return i.Ended.IsZero() && a.End(now).After(i.Started)
}

// End returns the time at which a resolved alert ended, or now if the message contains no such time.
func (a *Alert) End(now time.Time) time.Time {
	if a.EndsAt.IsZero() {
		return now
	}
	return a.EndsAt
}

// Start returns the time at which the alert began to fire, or now if the message contains no such time.
func (a *Alert) Start(now time.Time) time.Time {
	if a.StartsAt.IsZero() {
		return now
	}
	return a.StartsAt
}
