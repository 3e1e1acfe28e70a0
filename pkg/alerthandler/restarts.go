package alerthandler

import (
	"time"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// restarting returns the name of another Action that restarts the machine, or "".
func restarting(a *v1.Action, all []*v1.Action) string {
	return restartOf(a, all, func(other *v1.Action) bool { return other.Status.Phase == v1.PhaseActing })
}

// restartedSince returns the name of another Action that has restarted the machine since the alert began that a policy acts on, or "". An alert
// that fires after a restart has begun may be about a fault of the next boot.
func restartedSince(a *v1.Action, all []*v1.Action) string {
	if a.Spec.By.Kind != v1.ByPolicy || a.Spec.Do != v1.OperationRestartMachine {
		return ""
	}
	since := alertBegan(a, all)
	return restartOf(a, all, func(other *v1.Action) bool {
		return other.Status.Phase == v1.PhaseSucceeded && other.Status.StartTime != nil && !other.Status.StartTime.Time.Before(since)
	})
}

// restartOf returns the name of another Action that restarts the same machine, and has an effect, or "".
func restartOf(a *v1.Action, all []*v1.Action, is func(*v1.Action) bool) string {
	for _, other := range all {
		if other.Name != a.Name && other.Spec.Do == v1.OperationRestartMachine && !other.Spec.DryRun && is(other) &&
			a.Spec.Machine != nil && other.Spec.Machine != nil && other.Spec.Machine.UID == a.Spec.Machine.UID {
			return other.Name
		}
	}
	return ""
}

// alertBegan is when the first step of a policy's Action was made: the alert fired then.
func alertBegan(a *v1.Action, all []*v1.Action) time.Time {
	i, ok := policy.ParseIncident(a.Labels[LabelIncident])
	p := policy.Policy{Name: a.Spec.By.Name}
	for _, other := range all {
		if ok && other.Name == p.ActionName(i.String(), 0) && incidentOf(other) != nil {
			return other.CreationTimestamp.Time
		}
	}
	return a.CreationTimestamp.Time
}
