package step

import (
	"fmt"
	"time"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// requeued reports whether a job doesn't need or won't get another attempt through this Action, and returns the reason. It first checks the request
// of this Action, because the job may have finished or begun other attempts since.
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
		return "another attempt of " + name + " was requested, and the job has finished since", true
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

// joins returns the next step of a policy's Action if another Action stops or requeues the job, or has announced such an operation. All alerts about
// a job share one notice, and count once toward the limits. If a person cancels the announced Action, all waiting Actions are canceled.
func (d *decision) joins() (Next, bool) {
	spec := &d.a.Spec
	if !spec.Do.ForJobs() || spec.By.Kind != v1.ByPolicy || spec.DryRun {
		return Next{}, false
	}
	first := d.f.Announced
	switch {
	case d.f.Withdrawn != "":
		return d.end(v1.PhaseCanceled, d.f.Withdrawn), true
	case d.status.NoticeTime != nil:
		return Next{}, false
	case d.f.Restarting != "":
		return d.wait(v1.PhasePending, fmt.Sprintf("it waits: the action %s %s %s", d.f.Restarting, doing[spec.Do], spec.Target()), again), true
	case first == nil || d.f.Hours.Next(d.now.Add(spec.Grace())).Before(first.At):
		return Next{}, false
	}
	return d.wait(v1.PhasePending, fmt.Sprintf("it waits: the action %s will %s %s at %s", first.Action, spec.Do.Verb(), spec.Target(), first.At.UTC().Format(time.RFC3339)), max(first.At.Sub(d.now.Time), again)), true
}
