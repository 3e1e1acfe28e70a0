package step_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// A person requests a cordon or a drain of a machine that a policy has cordoned. The person takes over the cordon, and the policy doesn't end the
// cordon.
func TestAPersonTakesACordonOver(t *testing.T) {
	for _, do := range []v1.Operation{v1.OperationCordon, v1.OperationDrain} {
		a, f := onMachine(do, byAdmin), facts()
		f.Machine.Unschedulable, f.Machine.Mark = true, &v1.Mark{Action: "broken-1", By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}}
		n := step.Decide(a, f, start)
		require.Equal(t, v1.PhaseActing, n.Status.Phase, do)
		require.Equal(t, step.EffectCordon, n.Effect, do)
		require.Equal(t, "dry run: it would "+n.Status.Message[len("it is to "):], step.Decide(onMachine(v1.OperationCordon, byAdmin, dryRun), f, start).Status.Message)

		a.Status = n.Status
		f.Machine.Mark = &v1.Mark{Action: a.Name, By: a.Spec.By}
		require.Equal(t, v1.PhaseSucceeded, step.Decide(a, f, start.Add(time.Second)).Status.Phase, do)
		n = step.Decide(onMachine(v1.OperationUncordon), f, start.Add(time.Minute))
		require.Equal(t, "node3 was cordoned by a person, and a policy doesn't change that", n.Status.Message)

		f.Machine.Mark = nil
		require.Equal(t, v1.PhaseSucceeded, step.Decide(onMachine(do, byAdmin), f, start).Status.Phase, "another person's cordon is enough")
	}
}

// A machine that policies have cordoned for several alerts is returned to service after the repair for the last alert.
func TestAPolicyEndsItsPartOfACordon(t *testing.T) {
	gpu2, hot := v1.Mark{Action: "broken-a-1-1", By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}, Reason: "GPU 2"}, v1.Mark{Action: "hot-b-1-1", By: v1.Requester{Kind: v1.ByPolicy, Name: "hot"}, Reason: "it is hot"}
	f := facts()
	f.Machine.Unschedulable, f.Machine.Mark = true, &gpu2
	for _, do := range []v1.Operation{v1.OperationCordon, v1.OperationDrain} {
		own := onMachine(do, func(a *v1.Action) { a.Name = hot.Action })
		require.Equal(t, step.EffectCordon, step.Decide(own, f, start).Effect, "the cordon belongs to another alert: %s", do)
	}
	both := gpu2.With(hot)
	f.Machine.Mark = &both
	require.Equal(t, v1.PhaseSucceeded, step.Decide(onMachine(v1.OperationCordon, func(a *v1.Action) { a.Name = hot.Action }), f, start).Status.Phase)

	u := onMachine(v1.OperationUncordon, func(a *v1.Action) { a.Name = "broken-a-1-3" })
	n := step.Decide(u, f, start)
	require.Equal(t, step.EffectUncordon, n.Effect)
	u.Status, f.Machine.Mark = n.Status, both.Without(u.Name)
	n = step.Decide(u, f, start.Add(time.Second))
	require.Equal(t, v1.PhaseSucceeded, n.Status.Phase)
	require.Equal(t, "node3 stays cordoned for policy hot: it is hot", n.Status.Message)
	require.Equal(t, step.EffectUncordon, step.Decide(onMachine(v1.OperationUncordon, func(a *v1.Action) { a.Name = "hot-b-1-3" }), f, start).Effect)
}

// A person uncordons a machine while its pods are being moved. The drain doesn't cordon the machine again.
func TestADrainDoesntCordonAgain(t *testing.T) {
	a, f := onMachine(v1.OperationDrain), facts()
	f.Machine.Pods = []step.Pod{{Namespace: "ns", Name: "p", Managed: true}}
	n := step.Decide(a, f, start)
	require.Equal(t, step.EffectCordon, n.Effect)
	a.Status = n.Status
	require.Equal(t, step.EffectCordon, step.Decide(a, f, start.Add(time.Second)).Effect, "the handler was killed before the effect")
	f.Machine.Unschedulable, f.Machine.Mark = true, &v1.Mark{Action: a.Name, By: a.Spec.By}
	n = step.Decide(a, f, start.Add(2*time.Second))
	require.Equal(t, step.EffectEvict, n.Effect)
	a.Status = n.Status
	f.Machine.Unschedulable, f.Machine.Mark = false, nil
	n = step.Decide(a, f, start.Add(3*time.Second))
	require.Equal(t, v1.PhaseFailed, n.Status.Phase)
	require.Empty(t, n.Effect)
	require.Equal(t, "node3 was uncordoned while its pods moved, and gets pods", n.Status.Message)
}
