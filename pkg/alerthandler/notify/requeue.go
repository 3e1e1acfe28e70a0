package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

const (
	// together is the time within which several requeues of one job by policies share one notice. The GPUs of a job may break one after the other.
	together    = time.Hour
	mostReasons = 16
)

// acted reports whether an Action had, or may have had, an effect. A failed Action on a job had no effect.
func acted(a *v1.Action) bool {
	return a.Begun() && (a.Status.Phase != v1.PhaseFailed || !a.Spec.Do.ForJobs())
}

// stays reports whether a job stays on its machines because the requeue was refused or has failed.
func stays(a *v1.Action) bool {
	return a.Spec.Do == v1.OperationRequeueJob && (a.Status.Phase == v1.PhaseRefused || a.Status.Phase == v1.PhaseFailed) && a.Status.EndTime != nil
}

// requeues returns, by the UID of the job, the Actions of policies that requeue the job.
func requeues(all []*v1.Action) map[types.UID][]*v1.Action {
	out := map[types.UID][]*v1.Action{}
	for _, a := range all {
		if a.Spec.Do == v1.OperationRequeueJob && a.Spec.By.Kind == v1.ByPolicy && a.Spec.Job != nil && !a.Spec.DryRun {
			out[a.Spec.Job.UID] = append(out[a.Spec.Job.UID], a)
		}
	}
	return out
}

// first reports whether an Action is the first requeue within the time together that was refused or has failed. Later Actions get no notice, because
// the first notice contains their reasons.
func (w *World) first(a *v1.Action) bool {
	if a.Spec.By.Kind != v1.ByPolicy {
		return true
	}
	all := slices.DeleteFunc(slices.Clone(w.requeues[a.Spec.Job.UID]), func(o *v1.Action) bool { return !stays(o) })
	slices.SortStableFunc(all, func(x, y *v1.Action) int { return x.Status.EndTime.Compare(y.Status.EndTime.Time) })
	var first *v1.Action
	for _, o := range all {
		if first == nil || o.Status.EndTime.Sub(first.Status.EndTime.Time) >= together {
			first = o
		}
		if o == a {
			break
		}
	}
	return first == a
}

// reasons returns the text with the reasons of an Action. If a policy requeues a job, the text also contains the reasons of the other Actions that
// the notice covers. These Actions wait for this Action, or have ended with the same result and without a notice.
func (w *World) reasons(a *v1.Action) string {
	all := []string{line(a.Spec.Reason)}
	if a.Spec.Do == v1.OperationRequeueJob && a.Spec.By.Kind == v1.ByPolicy {
		for _, o := range w.requeues[a.Spec.Job.UID] {
			if reason := line(o.Spec.Reason); o != a && shares(a, o) && !slices.Contains(all, reason) {
				all = append(all, reason)
			}
		}
	}
	if len(all) == 1 {
		return "Reason: " + all[0]
	}
	more := ""
	if n := len(all) - mostReasons; n > 0 {
		all, more = all[:mostReasons], fmt.Sprintf("\nand %d more", n)
	}
	return "Reasons:\n- " + strings.Join(all, "\n- ") + more
}

// shares reports whether the notice about Action a also covers Action o.
func shares(a, o *v1.Action) bool {
	s := &o.Status
	switch {
	case s.NoticeTime != nil || o.Begun():
		return false
	case !s.Phase.Final():
		return !stays(a)
	case stays(a):
		return stays(o) && s.EndTime.Sub(a.Status.EndTime.Time).Abs() < together
	}
	return s.Phase == v1.PhaseSucceeded && acted(a) && s.EndTime != nil && !s.EndTime.Before(a.Status.StartTime) && s.EndTime.Sub(a.Status.StartTime.Time) < together
}
