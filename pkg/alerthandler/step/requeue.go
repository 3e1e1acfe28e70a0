package step

import v1 "github.com/openpai/paictl/pkg/alerthandler/v1"

// requeued reports whether a job has or needs no further attempt, and says why. The request of this Action counts first: the job may have finished or
// begun others since.
func (d *decision) requeued() (string, bool) {
	j, name := d.f.Job, d.a.Spec.Target()
	policy := d.a.Spec.By.Kind == v1.ByPolicy
	switch {
	case j == nil:
		return name + " has ended", true
	case j.Requeued:
		return name + " runs another attempt: its tasks are stopped, and all of them are placed again", true
	case j.Ended:
		return name + " has ended", true
	case j.Stopping:
		return name + " is being stopped", true
	case policy && d.f.Restarted != "":
		return name + " was requeued since the alert began, by the action " + d.f.Restarted, true
	case policy && j.Renewed:
		return name + " has begun another attempt since the alert began", true
	case policy && j.Pending:
		return name + " runs another attempt soon, which was requested already", true
	}
	return "", false
}
