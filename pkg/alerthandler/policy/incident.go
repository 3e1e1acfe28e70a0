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
	// Fresh is how old the last message about an alert may be when an Action begins. Alertmanager repeats an alert every ten minutes, so at this
	// age two messages in a row are missing. A silence also stops the messages.
	Fresh = 25 * time.Minute
	// Unheard is how long messages about a firing alert may be missing before a message with a later start begins a new incident. Other
	// Alertmanagers repeat an alert only every hour.
	Unheard = 2*time.Hour + 15*time.Minute
	// late is how long a message that an alert fires may arrive after the message that the alert has ended. Prometheus repeats the end of an alert
	// for 15 minutes, while another Prometheus may still report that the alert fires.
	late = 20 * time.Minute
)

// Incident is one firing of an alert for one policy. It begins with a message that the alert fires, and ends with a message that the alert has
// ended. The start time of the alert doesn't identify the incident, because it changes when Prometheus restarts, and differs between several
// instances of Prometheus.
type Incident struct {
	// Key identifies the alert. Number counts the incidents of the alert.
	Key    string
	Number int
	// Started is the latest start of the alert in its messages, but not earlier than the end of the previous incident.
	Started time.Time
	// Last is the time at which the last message about the alert arrived.
	Last time.Time
	// Ended is the time at which the alert ended. It is zero while the alert fires.
	Ended time.Time
}

// Key returns a text that identifies an alert for the policy by the alert's labels. A dry run has a different key, so that the steps are carried
// out when the policy stops making dry runs.
func (p *Policy) Key(a *Alert) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %t\n", p.Name, p.DryRun)
	for _, label := range slices.Sorted(maps.Keys(a.Labels)) {
		fmt.Fprintf(h, "%q %q\n", label, a.Labels[label])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// String returns the form of the incident that names and labels contain.
func (i *Incident) String() string { return i.Key + "-" + strconv.Itoa(i.Number) }

// ParseIncident parses the result of String.
func ParseIncident(text string) (i Incident, ok bool) {
	key, number, found := strings.Cut(text, "-")
	n, err := strconv.Atoi(number)
	return Incident{Key: key, Number: n}, found && err == nil && n > 0 && key != ""
}

// ActionName returns the name of the Action for one step of an incident. The name is always the same, so that the API server rejects a second
// Action for the step.
func (p *Policy) ActionName(incident string, step int) string {
	return fmt.Sprintf("%s-%s-%d", p.Name, incident, step+1)
}

// Part describes the relation of a message that an alert fires to an incident.
type Part int

// Values of Part.
const (
	// Same means that the message belongs to the incident.
	Same Part = iota
	// Late means that the message belongs to the incident, but arrived after the incident's end.
	Late
	// Other means that the message belongs to the next incident.
	Other
)

// Part returns the relation of a message that the alert fires to this incident.
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

// Next returns the incident after this one, which begins with a message.
func (i *Incident) Next(a *Alert, now time.Time) Incident {
	next := Incident{Key: i.Key, Number: i.Number + 1, Started: a.StartsAt, Last: now}
	if i.Ended.After(next.Started) {
		next.Started = i.Ended
	}
	return next
}

// Ends reports whether a message that the alert has ended is about this incident. A late message may be about an earlier incident.
func (i *Incident) Ends(a *Alert, now time.Time) bool {
	return i.Ended.IsZero() && a.End(now).After(i.Started)
}

// End returns the time at which a resolved alert ended, or now if the message doesn't contain the time.
func (a *Alert) End(now time.Time) time.Time {
	if a.EndsAt.IsZero() {
		return now
	}
	return a.EndsAt
}

// Start returns the time at which the alert began to fire, or now if the message doesn't contain the time.
func (a *Alert) Start(now time.Time) time.Time {
	if a.StartsAt.IsZero() {
		return now
	}
	return a.StartsAt
}
