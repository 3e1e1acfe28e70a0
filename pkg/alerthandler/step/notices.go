package step

import (
	"fmt"
	"time"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// passed reports whether a time has passed. It returns false after a jump of the clock.
func (d *decision) passed(t time.Time) bool { return !d.f.Jumped && !t.After(d.now.Time) }

// again reports whether the grace period began again because the notice was late. The notice contains a time, so the Action must not expire before
// that time.
func (d *decision) again() bool {
	n := d.f.Notice
	if n == nil || d.status.Phase != v1.PhaseNoticed || n.Sent.IsZero() || !n.Sent.Before(d.a.Spec.NotAfter.Time) {
		return false
	}
	return d.now.Time.Before(d.acts(n.Sent).Add(settles))
}

// settles is the time after its expiry within which an Action with a late notice may still act.
const settles = 45 * time.Minute

// acts returns the time at which the Action acts if its notice was sent at the time sent.
func (d *decision) acts(sent time.Time) time.Time {
	noticed := *d.a
	noticed.Status = d.status
	acts := noticed.Acts(sent)
	if acts.After(d.status.ActTime.Time) {
		acts = d.f.Hours.Next(acts)
	}
	return acts
}

// unnoticed returns the reason why a policy doesn't stop a job after the grace period, or "". The owner may not have received the notice, or not
// early enough. after is the time until the next check.
func (d *decision) unnoticed() (why string, after time.Duration) {
	n := d.f.Notice
	if n == nil || d.a.Spec.Do != v1.OperationStopJob || d.a.Spec.By.Kind != v1.ByPolicy {
		return "", 0
	}
	if n.Unknown {
		return "it waits until the handler has read which notices were sent", again
	}
	if n.Waits {
		return "it waits: the notice to the job's owner couldn't be sent yet; see the log of the alert handler", again
	}
	if n.Sent.IsZero() {
		return "", 0
	}
	acts := d.acts(n.Sent)
	if left := acts.Sub(d.now.Time); left > 0 {
		return fmt.Sprintf("it waits: its notice was sent late, and it will %s at %s", d.plan(), acts.UTC().Format(time.RFC3339)), left
	}
	return "", 0
}
