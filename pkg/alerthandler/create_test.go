package alerthandler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/kube/watch"
)

// Idle jobs, regardless of their number, leave room for Actions for broken machines.
func TestIdleJobsLeaveRoomForMachines(t *testing.T) {
	build := func(jobs, machines int, phase v1.Phase) map[string]*v1.Action {
		out := map[string]*v1.Action{}
		for i := range jobs + machines {
			a := &v1.Action{Spec: v1.ActionSpec{By: v1.Requester{Kind: v1.ByPolicy, Name: "p"}}, Status: v1.ActionStatus{Phase: phase}}
			if i < jobs {
				a.Spec.Job = &v1.Job{}
			} else {
				a.Spec.Machine = &v1.Machine{}
			}
			out[fmt.Sprint(i)] = a
		}
		return out
	}
	for _, c := range []struct {
		all            map[string]*v1.Action
		jobs, machines bool
	}{
		{build(999, 999, v1.PhasePending), false, false},
		{build(1000, 0, v1.PhasePending), true, false},
		{build(0, 1000, v1.PhasePending), false, true},
		{build(9000, 0, v1.PhaseSucceeded), true, false},
		{build(10_000, 0, v1.PhaseSucceeded), true, true},
	} {
		require.Equal(t, c.jobs, full(c.all, true), "%d Actions", len(c.all))
		require.Equal(t, c.machines, full(c.all, false), "%d Actions", len(c.all))
	}
}

// A machine that may never be restarted isn't drained for a restart.
func TestAMachineThatIsNeverRestartedIsLeftAlone(t *testing.T) {
	h := &Handler{o: Options{Now: time.Now}, nodes: watch.New(watch.Options[*corev1.Node, *corev1.Node]{Name: "nodes", Keep: keepNode})}
	for name, n := range map[string]corev1.Node{
		"gpu":   {},
		"other": {},
		"first": {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{roleControlPlane: ""}}},
	} {
		n.Name = name
		if name != "other" {
			n.Status.Conditions = []corev1.NodeCondition{{Type: checks.ConditionGPUsUnhealthy, Status: corev1.ConditionFalse}}
		}
		require.NoError(t, h.nodes.Add(&n))
	}
	restarts := policy.Policy{Name: "lost", Steps: []policy.Step{{Do: v1.OperationDrain}, {Do: v1.OperationRestartMachine}}}
	drains := policy.Policy{Name: "hot", Steps: []policy.Step{{Do: v1.OperationDrain}}}
	for machine, want := range map[string]string{"gpu": "", "other": "other has no GPUs", "first": "first belongs to the control plane"} {
		alert := &policy.Alert{Labels: map[string]string{"node": machine}}
		_, _, problem := h.target(&restarts, alert)
		require.Contains(t, problem, want, machine)
		require.Equal(t, want == "", problem == "", problem)
		_, _, problem = h.target(&drains, alert)
		require.Empty(t, problem, machine)
	}
}
