package alerthandler

import (
	"time"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// restarting returns the name of another Action that is restarting the machine, stopping or requeuing the job, or resetting the GPU, or "".
func restarting(a *v1.Action, all []*v1.Action) string {
	for _, other := range restartsOf(a, all) {
		if other.Status.Phase == v1.PhaseActing {
			return other.Name
		}
	}
	return ""
}

// restartedSince returns the name of another Action that has restarted the machine or reset the GPU since the alert of Action a began, or "". It
// doesn't count a restart that began before the alert, because the alert may report a fault of the next boot.
func restartedSince(a *v1.Action, all []*v1.Action) string {
	if a.Spec.By.Kind != v1.ByPolicy || a.Spec.Do != v1.OperationRestartMachine && a.Spec.Do != v1.OperationResetGPU {
		return ""
	}
	since := alertBegan(a, all)
	for _, other := range restartsOf(a, all) {
		// Compare only times of one clock. The time since comes from the API server's clock.
		after := !other.CreationTimestamp.Time.Before(since) || other.Begun() && !other.Status.StartTime.Time.Before(since)
		if other.Status.Phase == v1.PhaseSucceeded && other.Begun() && after {
			return other.Name
		}
	}
	return ""
}

// spent returns the reason why policies don't restart a machine again, or "". A policy may restart a machine only once per cordon, and not after a
// failed restart. Otherwise each broken GPU and each repeated alert would restart the machine.
func spent(a *v1.Action, all []*v1.Action, mark *v1.Mark) string {
	if mark == nil {
		return ""
	}
	since := mark.Since()
	for _, other := range restartsOf(a, all) {
		switch {
		case !other.Status.Phase.Final() || !other.Begun() || other.Status.StartTime.Time.Before(since):
		case other.Status.Phase != v1.PhaseSucceeded:
			return "the action " + other.Name + " has failed since it was cordoned"
		case other.Spec.By.Kind == v1.ByPolicy:
			return "the action " + other.Name + " has restarted it since it was cordoned"
		}
	}
	return ""
}

// restartsOf returns the other Actions that restart the same machine or requeue the same job. For the reset of a GPU, it returns the other resets of
// that GPU. For the stop of a job, it returns the other stops by the same policy or person. It omits dry runs.
func restartsOf(a *v1.Action, all []*v1.Action) (out []*v1.Action) {
	for _, other := range all {
		restarts := other.Spec.Do == v1.OperationRestartMachine || other.Spec.Do == v1.OperationRequeueJob
		switch a.Spec.Do {
		case v1.OperationResetGPU:
			restarts = other.Spec.Do == a.Spec.Do && sameGPU(a.Spec.Machine, other.Spec.Machine)
		case v1.OperationStopJob:
			restarts = other.Spec.Do == a.Spec.Do && other.Spec.By == a.Spec.By
		}
		if other.Name != a.Name && restarts && !other.Spec.DryRun && sameTarget(&a.Spec, &other.Spec) {
			out = append(out, other)
		}
	}
	return out
}

func sameGPU(a, b *v1.Machine) bool {
	return a != nil && b != nil && a.GPU != nil && b.GPU != nil && *a.GPU == *b.GPU
}

// alertBegan returns the creation time of the first step of a policy's Action, because the alert fired at that time.
func alertBegan(a *v1.Action, all []*v1.Action) time.Time {
	i, ok := policy.ParseIncident(a.Labels[LabelIncident])
	p := policy.Policy{Name: a.Spec.By.Name}
	first := ""
	if ok {
		first = p.ActionName(i.String(), 0)
	}
	for _, other := range all {
		if ok && other.Name == first && incidentOf(other) != nil {
			return other.CreationTimestamp.Time
		}
	}
	return a.CreationTimestamp.Time
}
