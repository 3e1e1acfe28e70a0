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

// An Action that an old definition has accepted, or whose status a person has edited, ends like any other Action.
func TestIncompleteActions(t *testing.T) {
	nothing := onMachine(v1.OperationCordon, func(a *v1.Action) { a.Spec.Machine = nil })
	require.Equal(t, step.Limit{}, step.Limits{}.Check(nothing, nil, step.Machines{}, start))
	require.Equal(t, v1.PhaseRefused, step.Decide(nothing, facts(), start).Status.Phase)

	for _, do := range []v1.Operation{v1.OperationDrain, v1.OperationResetGPU} {
		acting, f := onMachine(do), facts()
		acting.Status.Phase = v1.PhaseActing
		f.Machine.Unschedulable, f.Machine.Pods = true, []step.Pod{{Namespace: "ns", Name: "p", Managed: true}}
		acting.Status = step.Decide(acting, f, start).Status
		require.Equal(t, v1.PhaseActing, acting.Status.Phase)
		require.Equal(t, v1.PhaseFailed, step.Decide(acting, f, start.Add(time.Hour)).Status.Phase, "%s ends", do)
	}

	noticed := stop(grace(time.Minute))
	at := metav1.NewTime(start)
	noticed.Status = v1.ActionStatus{Phase: v1.PhaseNoticed, NoticeTime: &at}
	noticed.Status = step.Decide(noticed, facts(), start).Status
	require.Equal(t, v1.PhaseNoticed, noticed.Status.Phase)
	require.Equal(t, step.EffectStopJob, step.Decide(noticed, facts(), start.Add(time.Minute)).Effect)
}

// A machine that isn't Ready returns after a while, but a machine that a policy cordons doesn't. So the limits count the cordoned machine.
func TestLimitsHoldForMachinesThatAreNotReady(t *testing.T) {
	l := step.Limits{MachinesPerHour: 2, MachinesOut: 10}
	m := step.Machines{Total: 40, Out: map[string]bool{}, Cordoned: map[string]bool{}}
	for i := range 20 {
		m.Out[fmt.Sprintf("node%d", i)] = true
	}
	require.Contains(t, l.Check(onMachine(v1.OperationDrain), nil, m, start).Refused, "19 of 40 machines are out of service")
	m.Cordoned["node3"] = true
	require.Equal(t, step.Limit{}, l.Check(onMachine(v1.OperationDrain), nil, m, start))
}
