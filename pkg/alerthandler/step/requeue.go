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
	case j.Missed && j.Ended:
		return name + " has ended before another attempt began", true
	case j.Missed:
		return name + " had finished its attempt before the request: another one follows only if the job is retried", true
	case j.Requeued && j.Ended:
		return "another attempt of " + name + " was requested, and the job has ended since", true
	case j.Requeued:
		return "another attempt of " + name + " was requested: its tasks are stopped, and all of them are placed again", true
	case j.Ended:
		return name + " has ended", true
	case j.Stopping:
		return name + " is being stopped", true
	case j.Finished:
		return name + " has finished its attempt: another one follows only if the job is retried", true
	case policy && d.f.Restarted != "":
		return name + " was requeued since the alert began, by the action " + d.f.Restarted, true
	case policy && j.Renewed:
		return name + " has begun another attempt since the alert began", true
	case policy && j.Pending:
		return "another attempt of " + name + " was requested already, and hasn't begun", true
	case policy && j.Retrying:
		return name + " has finished its attempt and waits for its retry", true
	}
	return "", false
}
