package step_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// A policy has begun to return a machine to service, and the API server has rejected the change because of a conflict. The next decision uses the new
// state of the Node.
func TestAMachineThatChangesBeforeItIsReturned(t *testing.T) {
	begun := func() (*v1.Action, *step.Facts) {
		a, f := onMachine(v1.OperationUncordon), drained()
		n := step.Decide(a, f, start)
		require.Equal(t, step.EffectUncordon, n.Effect)
		a.Status = n.Status
		return a, f
	}
	for name, change := range map[string]func(*step.Facts){
		"until its agent finds no fault: GPU 3: XID 79": func(f *step.Facts) { f.Machine.BrokenGPUs = "GPU 3: XID 79" },
		"while the action restart-x restarts it":        func(f *step.Facts) { f.Restarting = "restart-x" },
	} {
		a, f := begun()
		change(f)
		n := step.Decide(a, f, start.Add(time.Minute))
		require.Empty(t, n.Effect, name)
		require.Equal(t, v1.PhaseActing, n.Status.Phase)
		require.Equal(t, "node3 stays cordoned "+name, n.Status.Message)
		require.Positive(t, n.After)
		a.Status = n.Status
		require.Equal(t, step.EffectUncordon, step.Decide(a, drained(), start.Add(time.Hour)).Effect)
		n = step.Decide(a, f, start.Add(2*time.Hour))
		require.Equal(t, v1.PhaseFailed, n.Status.Phase)
		require.Equal(t, "node3 stays cordoned "+name, n.Status.Message)
	}
	a, f := begun()
	f.NoReturn = "it stays out"
	n := step.Decide(a, f, start.Add(time.Minute))
	require.Equal(t, step.EffectStay, n.Effect)
	a.Status, f.Machine.Mark.Stays, f.Machine.Mark.Reason = n.Status, true, "it stays out"
	n = step.Decide(a, f, start.Add(2*time.Minute))
	require.Equal(t, v1.PhaseFailed, n.Status.Phase)
	require.Equal(t, "node3: it stays out", n.Status.Message)
}

// A restart has begun, but its order isn't written yet. Then restarts are disabled, or the policy no longer requires the restart. After the order is
// written, only the result of the restart counts.
func TestARestartThatIsNoLongerAllowedIsNotOrdered(t *testing.T) {
	for message, change := range map[string]func(*step.Facts){
		"restarts of machines are off: set restartMachines in the sections alert-handler and agent": func(f *step.Facts) { f.Restarts = false },
		"node3 isn't restarted: the configuration has no policy broken":                             func(f *step.Facts) { f.Forbidden = errors.New("the configuration has no policy broken") },
	} {
		a, f := onMachine(v1.OperationRestartMachine), drained()
		n := step.Decide(a, f, start)
		require.Equal(t, step.EffectRestart, n.Effect)
		a.Status = n.Status
		change(f)
		n = step.Decide(a, f, start.Add(time.Minute))
		require.Equal(t, v1.PhaseFailed, n.Status.Phase)
		require.Equal(t, message, n.Status.Message)
		require.Empty(t, n.Effect)

		f.Machine.Ordered = true
		require.Equal(t, v1.PhaseActing, step.Decide(a, f, start.Add(time.Minute)).Status.Phase)
		f.Machine.Ordered, f.Machine.Boot = false, "boot-2"
		require.Equal(t, step.EffectRestart, step.Decide(a, f, start.Add(time.Minute)).Effect, "it has restarted, and its agent checks its GPUs")
	}
}

// An effect that the API server rejects is repeated for ten minutes. The Action then fails, because other Actions wait for its end.
func TestARefusedEffectEndsItsAction(t *testing.T) {
	for _, c := range []struct {
		a    *v1.Action
		want string
	}{
		{requeue(), "it couldn't requeue ann/train within 10m0s: forbidden"},
		{stop(), "it couldn't stop ann/train within 10m0s: forbidden"},
		{onMachine(v1.OperationCordon), "it couldn't cordon node3 within 10m0s: forbidden"},
		{onMachine(v1.OperationDrain), "it couldn't cordon node3 and move its pods within 10m0s: forbidden"},
	} {
		f := facts()
		c.a.Status = step.Decide(c.a, f, start).Status
		require.Equal(t, v1.PhaseActing, c.a.Status.Phase, c.want)
		f.Refused, f.RefusedSince = "forbidden", start.Add(time.Hour) // no handler ran until then
		require.NotEmpty(t, step.Decide(c.a, f, start.Add(69*time.Minute)).Effect, c.want)
		n := step.Decide(c.a, f, start.Add(70*time.Minute))
		require.Equal(t, v1.PhaseFailed, n.Status.Phase, c.want)
		require.Empty(t, n.Effect)
		require.Equal(t, c.want, n.Status.Message)
		f.Refused = ""
		require.NotEmpty(t, step.Decide(c.a, f, start.Add(70*time.Minute)).Effect, "no one has refused the last try")
	}
}
