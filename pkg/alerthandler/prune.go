package alerthandler

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

const (
	// mostKept bounds the finished Actions that are kept, besides those whose alerts fire.
	mostKept = 2000
	// mostActions bounds all Actions. Each alert that fires keeps the Action of its first step; further alerts are refused.
	mostActions = 10_000
)

// prune removes finished Actions after their time, and the oldest ones if there are too many.
func (h *Handler) prune(ctx context.Context, all []*v1.Action, now time.Time) {
	for _, a := range removable(all, h.o.Policies.Keep.D(), mostKept, now, h.holds) {
		err := h.objects.Resource(v1.Actions).Delete(ctx, a.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			h.o.Log.WarnContext(ctx, "remove an old action", "action", a.Name, "error", err.Error())
			return
		}
	}
}

// removable returns the finished Actions that needn't be kept, the oldest first as in all. If there are more than most, an Action is kept
// only if its alert still fires, because the alert would make it again, or if the step before it would. The first step of an incident is removed
// after the others: it shows that the incident's number is in use, and another incident with that number would find its steps done.
// holds reports whether a machine is cordoned for an Action.
func removable(all []*v1.Action, keep time.Duration, most int, now time.Time, holds func(*v1.Action) bool) (out []*v1.Action) {
	known := latest{}
	excess := -most
	leads := map[string]bool{} // the names of steps that the step before would make again
	for _, a := range all {
		known.add(a)
		if a.Status.Phase.Final() {
			excess++
		}
		if next, ok := nextStep(a); ok && (now.Sub(a.Status.EndTime.Time) <= followed || holds(a)) {
			leads[next] = true
		}
	}
	fires, further := map[string]bool{}, map[string]bool{}
	incident := func(a *v1.Action) string { return a.Spec.By.Name + "/" + a.Labels[LabelIncident] }
	for _, a := range known {
		if incidentOf(a).Ended.IsZero() {
			fires[incident(a)] = true
		}
	}
	for _, a := range all {
		if incidentOf(a) == nil {
			further[incident(a)] = true
		}
	}
	for _, a := range all {
		first := incidentOf(a) != nil
		if !a.Status.Phase.Final() || first && further[incident(a)] {
			continue
		}
		if now.Sub(lastAlert(a)) < keep {
			needed := counts(a, now) || leads[a.Name] || first && fires[incident(a)]
			if excess <= 0 || needed {
				continue
			}
		}
		excess--
		out = append(out, a)
	}
	return out
}

// counts reports whether a limit counts an Action: those of an hour do, and a machine is restarted once for its cordon.
func counts(a *v1.Action, now time.Time) bool {
	return a.Begun() && (a.Spec.Do == v1.OperationRestartMachine || now.Sub(a.Status.StartTime.Time) <= time.Hour)
}
