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
	// Fresh is how old the last message about an alert may be when an Action begins: Alertmanager repeats it every ten minutes, so that two messages in a
	// row are missing. A silence ends the messages.
	Fresh = 25 * time.Minute
	// Unheard is how long an alert that fires may be silent before another start is another incident. Other Alertmanagers repeat it each hour.
	Unheard = 2*time.Hour + 15*time.Minute
	// late is how long messages that an alert fires may arrive after the message that it has ended. Prometheus sends the latter again for 15 minutes,
	// while another Prometheus may still see the alert.
	late = 20 * time.Minute
)

// Incident is one firing of an alert for one policy: it begins with a message that the alert fires, and ends with a message that the alert has ended.
// The time when the alert began to fire doesn't identify the incident: the time changes when Prometheus restarts, and differs between several
// instances of Prometheus.
type Incident struct {
	// Key is the key of the alert, and Number counts the alert's incidents.
	Key    string
	Number int
	// Started is the latest start of the alert in its messages, and not before the end of the incident before.
	Started time.Time
	// Last is when its last message arrived.
	Last time.Time
	// Ended is the end of the alert; zero while it fires.
	Ended time.Time
}

// Key identifies an alert for the policy by its labels. A dry run has another one than the steps that have an effect, so that they happen
// when it ends.
func (p *Policy) Key(a *Alert) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %t\n", p.Name, p.DryRun)
	for _, label := range slices.Sorted(maps.Keys(a.Labels)) {
		fmt.Fprintf(h, "%q %q\n", label, a.Labels[label])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// String returns the incident in names and labels.
func (i *Incident) String() string { return i.Key + "-" + strconv.Itoa(i.Number) }

// ParseIncident reads the result of String.
func ParseIncident(text string) (i Incident, ok bool) {
	key, number, found := strings.Cut(text, "-")
	n, err := strconv.Atoi(number)
	return Incident{Key: key, Number: n}, found && err == nil && n > 0 && key != ""
}

// ActionName returns the name of the Action of one step of an incident, so that the API server rejects a second Action.
func (p *Policy) ActionName(incident string, step int) string {
	return fmt.Sprintf("%s-%s-%d", p.Name, incident, step+1)
}

// Part says what a message that an alert fires is to an incident.
type Part int

// Parts.
const (
	// Same is a message of the incident.
	Same Part = iota
	// Late is a message of the incident that arrived after its end.
	Late
	// Other is a message of the next incident.
	Other
)

// Part decides about a message that the alert fires.
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

// Next returns the incident that a message begins after this one.
func (i *Incident) Next(a *Alert, now time.Time) Incident {
	next := Incident{Key: i.Key, Number: i.Number + 1, Started: a.StartsAt, Last: now}
	if i.Ended.After(next.Started) {
		next.Started = i.Ended
	}
	return next
}

// Ends reports whether a message that the alert has ended is about this incident. One about an earlier incident may arrive late.
func (i *Incident) Ends(a *Alert, now time.Time) bool {
	return i.Ended.IsZero() && a.End(now).After(i.Started)
}

// End returns when a resolved alert ended.
func (a *Alert) End(now time.Time) time.Time {
	if a.EndsAt.IsZero() {
		return now
	}
	return a.EndsAt
}

// Start returns when the alert began to fire.
func (a *Alert) Start(now time.Time) time.Time {
	if a.StartsAt.IsZero() {
		return now
	}
	return a.StartsAt
}
