package step_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// round decides once about each Action, like the handler, and returns the number of Actions that began.
func round(l step.Limits, all []*v1.Action, m step.Machines, now time.Time) (began int) {
	for i, a := range all {
		f := facts()
		f.Limit = l.Check(a, all, m, now)
		seen := *a
		seen.Status = step.Decide(a, f, now).Status
		if !a.Begun() && seen.Begun() {
			began++
		}
		all[i] = &seen
	}
	return began
}

// The grace periods of many Actions end while no handler is running. When a handler runs again, the limits per hour apply, and all Actions act
// eventually.
func TestTheLimitsHoldAfterAnOutage(t *testing.T) {
	for _, do := range []v1.Operation{v1.OperationStopJob, v1.OperationCordon} {
		t.Run(string(do), func(t *testing.T) {
			l := step.Limits{StopsPerHour: 20, StopsPerHourAndVC: 20, MachinesPerHour: 20, MachinesOut: 90}
			m := step.Machines{Total: 1000}
			var all []*v1.Action
			for i := range 60 {
				later := func(a *v1.Action) {
					a.Name, a.Spec.NotAfter = fmt.Sprintf("a%d", i), metav1.NewTime(start.Add(48*time.Hour))
					if a.Spec.Machine != nil {
						a.Spec.Machine.Name = fmt.Sprintf("node%d", i)
					}
				}
				if do == v1.OperationStopJob {
					all = append(all, stop(grace(4*time.Hour), later))
				} else {
					all = append(all, onMachine(do, grace(4*time.Hour), later))
				}
			}
			for hour := range 3 {
				require.Zero(t, round(l, all, m, start.Add(time.Duration(hour)*time.Hour)))
			}
			for _, a := range all {
				require.Equal(t, v1.PhaseNoticed, a.Status.Phase, "20 act at 13:00, 14:00 and 15:00 each")
			}
			back := start.Add(6*time.Hour + time.Minute)
			other := stop(func(a *v1.Action) { a.Name = "other" })
			if do == v1.OperationStopJob {
				require.NotEmpty(t, l.Check(other, all, m, back).Wait, "those that are late come first")
			}
			for hour := range 3 {
				require.Equal(t, 20, round(l, all, m, back.Add(time.Duration(hour)*time.Hour)))
				require.Zero(t, round(l, all, m, back.Add(time.Duration(hour)*time.Hour+59*time.Minute)))
			}
		})
	}
}

// Machines fail while an Action on another machine is in its grace period. At the end of the grace period, policies may not put another machine out
// of service.
func TestTheShareOfMachinesHoldsAtTheEndOfAGrace(t *testing.T) {
	l := step.Limits{MachinesPerHour: 4, MachinesOut: 10}
	m := step.Machines{Total: 40, Out: map[string]bool{}}
	all := []*v1.Action{onMachine(v1.OperationCordon, grace(time.Hour))}
	round(l, all, m, start)
	require.Equal(t, v1.PhaseNoticed, all[0].Status.Phase)
	for i := range 4 {
		m.Out[fmt.Sprintf("out%d", i)] = true
	}
	round(l, all, m, start.Add(time.Hour))
	require.Equal(t, v1.PhaseRefused, all[0].Status.Phase)
	require.Contains(t, all[0].Status.Message, "4 of 40 machines are out of service")
}

// An Action has waited so long that it would expire during its grace period. It sends no notice.
func TestNoNoticeThatWouldNotComeTrue(t *testing.T) {
	a := stop(grace(4*time.Hour), func(a *v1.Action) { a.Spec.NotAfter = metav1.NewTime(start.Add(28 * time.Hour)) })
	f := facts()
	f.Limit = step.Limit{Wait: "it waits", After: time.Hour}
	a.Status = step.Decide(a, f, start).Status
	f.Limit = step.Limit{}
	require.Equal(t, v1.PhaseNoticed, step.Decide(a, f, start.Add(23*time.Hour)).Status.Phase)
	n := step.Decide(a, f, start.Add(25*time.Hour))
	require.Equal(t, v1.PhaseExpired, n.Status.Phase)
	require.Nil(t, n.Status.NoticeTime)
	require.Equal(t, "it expires at 2026-12-01T13:00:00Z, before the end of its grace; before that: it waits", n.Status.Message)
}
