package step_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// drained returns the facts about a drained machine whose restart is allowed.
func drained(change ...func(*step.Facts)) *step.Facts {
	f := facts()
	f.Restarts = true
	f.Machine.Unschedulable, f.Machine.Ready, f.Machine.Agent, f.Machine.Boot = true, true, true, "boot-1"
	f.Machine.Mark = &v1.Mark{Action: "broken-1", By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}}
	for _, c := range change {
		c(f)
	}
	return f
}

// takenOut changes the facts as after a cordon by a person.
func takenOut(f *step.Facts) {
	f.Machine.Mark = &v1.Mark{Action: "drain-x", By: v1.Requester{Kind: v1.ByPerson, Name: "root1"}, Reason: "a fan is loud"}
}

func TestTheFirstStepOfARestart(t *testing.T) {
	pods := func(f *step.Facts) { f.Machine.Pods = []step.Pod{{Namespace: "pai-jobs", Name: "p", Managed: true}} }
	cordoned := func(is bool) func(*step.Facts) { return func(f *step.Facts) { f.Machine.Unschedulable = is } }
	for _, c := range []struct {
		name    string
		a       *v1.Action
		f       *step.Facts
		phase   v1.Phase
		effect  step.Effect
		message string
	}{
		{"a drained machine", onMachine(v1.OperationRestartMachine), drained(), v1.PhaseActing, step.EffectRestart, "the agent is to restart node3"},
		{"a person's", onMachine(v1.OperationRestartMachine, byAdmin), drained(), v1.PhaseActing, step.EffectRestart, ""},
		{"a person's cordon", onMachine(v1.OperationRestartMachine), drained(takenOut), v1.PhaseRefused, "", "node3 was cordoned by a person, and a policy doesn't restart it"},
		{"a cordon without a mark", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Machine.Mark = nil }), v1.PhaseRefused, "", "by a person"},
		{"a person's cordon, in the grace", onMachine(v1.OperationRestartMachine, grace(time.Hour)), drained(takenOut), v1.PhaseRefused, "", "by a person"},
		{"a person's restart of a machine that a person cordoned", onMachine(v1.OperationRestartMachine, byAdmin), drained(takenOut), v1.PhaseActing, step.EffectRestart, ""},
		{"the cordon of another alert", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Machine.Mark.Action = "hot-1-1-1" }), v1.PhaseRefused, "", "for another reason"},
		{"a grace", onMachine(v1.OperationRestartMachine, grace(time.Hour)), drained(), v1.PhaseNoticed, "", "it will restart node3 at"},
		{"it is off", onMachine(v1.OperationRestartMachine, byAdmin), drained(func(f *step.Facts) { f.Restarts = false }), v1.PhaseRefused, "", "set restartMachines in the sections alert-handler and agent"},
		{"not cordoned", onMachine(v1.OperationRestartMachine), drained(cordoned(false)), v1.PhaseRefused, "", "node3 isn't cordoned: drain it"},
		{"not drained", onMachine(v1.OperationRestartMachine, byAdmin), drained(pods), v1.PhaseRefused, "", "has 1 pod: drain it"},
		{"not drained, in its grace", onMachine(v1.OperationRestartMachine, grace(time.Hour)), drained(pods), v1.PhaseRefused, "", "drain it"},
		{"a person's dry run", onMachine(v1.OperationRestartMachine, byAdmin, dryRun), drained(pods), v1.PhaseRefused, "", "drain it"},
		{"a policy's dry run, which hasn't drained it", onMachine(v1.OperationRestartMachine, dryRun), drained(pods, cordoned(false)), v1.PhaseSucceeded, "", "dry run: it would restart node3"},
		{"the control plane", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Machine.ControlPlane = true }), v1.PhaseRefused, "", "belongs to the control plane"},
		{"no agent", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Machine.Agent = false }), v1.PhaseRefused, "", "no agent"},
		{"no boot ID", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Machine.Boot = "" }), v1.PhaseRefused, "", "no boot ID"},
		{"another restart, and a person's", onMachine(v1.OperationRestartMachine, byAdmin), drained(func(f *step.Facts) { f.Restarting = "restart-x" }), v1.PhaseRefused, "", "the action restart-x restarts node3 already"},
		{"another restart", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Restarting = "restart-x" }), v1.PhasePending, "", "it waits: the action restart-x restarts node3"},
		{"a machine that stays out", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Machine.Mark.Stays, f.Machine.Mark.Reason = true, "it stays out" }), v1.PhaseRefused, "", "node3 isn't restarted: it stays out"},
		{"a restart has failed", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Spent = "restart-x has failed" }), v1.PhaseRefused, "", "node3 isn't restarted again: restart-x has failed"},
		{"a restart has failed, and a person wants another one", onMachine(v1.OperationRestartMachine, byAdmin), drained(func(f *step.Facts) { f.Spent, f.Machine.Mark.Stays = "restart-x has failed", true }), v1.PhaseActing, step.EffectRestart, ""},
		{"a restart has failed, and a later one hasn't", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Spent, f.Restarted = "restart-x has failed", "restart-y" }), v1.PhaseSucceeded, "", "by the action restart-y"},
		{"another restart has ended", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Restarted = "restart-x" }), v1.PhaseSucceeded, "", "node3 has restarted since the alert began, by the action restart-x"},
		{"another restart has ended, and the machine was returned", onMachine(v1.OperationRestartMachine), drained(cordoned(false), func(f *step.Facts) { f.Restarted = "restart-x" }), v1.PhaseSucceeded, "", "has restarted"},
		{"another restart has ended, and a GPU broke again", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Restarted, f.Machine.BrokenGPUs = "restart-x", "GPU 2" }), v1.PhaseActing, step.EffectRestart, ""},
		{"a person wants another restart", onMachine(v1.OperationRestartMachine, byAdmin), drained(func(f *step.Facts) { f.Restarted = "restart-x" }), v1.PhaseActing, step.EffectRestart, ""},
		{"another restart has ended, and limits", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Restarted, f.Limit.Wait = "restart-x", "wait" }), v1.PhaseSucceeded, "", "has restarted"},
		{"a limit", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Limit = step.Limit{Wait: "wait", After: time.Minute} }), v1.PhasePending, "", "wait"},
		{"a machine that left", onMachine(v1.OperationRestartMachine), drained(func(f *step.Facts) { f.Machine = nil }), v1.PhaseRefused, "", "no longer in the cluster"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := step.Decide(c.a, c.f, start)
			require.Equal(t, c.phase, n.Status.Phase, n.Status.Message)
			require.Equal(t, c.effect, n.Effect)
			require.Contains(t, n.Status.Message, c.message)
			if c.effect != "" {
				require.Equal(t, "boot-1", n.Status.Boot, "it is written before the order")
			}
		})
	}
}

// A restart succeeds when the machine is Ready with a different boot ID and its agent reports no fault.
func TestARestart(t *testing.T) {
	a, f := onMachine(v1.OperationRestartMachine), drained()
	apply := func() step.Next {
		n := step.Decide(a, f, start.Add(time.Minute))
		a.Status = n.Status
		return n
	}
	require.Equal(t, step.EffectRestart, apply().Effect)
	require.Equal(t, step.EffectRestart, apply().Effect, "the order couldn't be written")
	f.Machine.Ordered = true
	require.Equal(t, step.EffectNone, apply().Effect)
	f.Machine.Ready = false
	require.Equal(t, v1.PhaseActing, apply().Status.Phase)
	f.Machine.Boot = "boot-2"
	require.Contains(t, apply().Status.Message, "has restarted, and waits until")
	f.Machine.Ready, f.Machine.BrokenGPUs = true, "GPU 3: XID 79"
	f.Machine.Restart = &step.Answer{Done: true, Message: "none of its GPUs has a fault"}
	require.Equal(t, v1.PhaseActing, apply().Status.Phase, "the condition of the Node is still that of before")
	f.Machine.BrokenGPUs = ""
	n := apply()
	require.Equal(t, v1.PhaseSucceeded, n.Status.Phase)
	require.Equal(t, "none of its GPUs has a fault", n.Status.Message)
	require.Equal(t, "boot-1", n.Status.Boot)
}

func TestARestartThatFailsSaysWhatToDo(t *testing.T) {
	for want, change := range map[string]func(*step.Machine){
		"node3 stays cordoned: GPU 3 is sick":   func(m *step.Machine) { m.Restart = &step.Answer{Message: "GPU 3 is sick"} },
		"check that its agent runs":             func(*step.Machine) {},
		"look at its console":                   func(m *step.Machine) { m.Ready = false },
		"see journalctl -u kubelet on it":       func(m *step.Machine) { m.Boot, m.Ready = "boot-2", false },
		"hasn't checked its GPUs":               func(m *step.Machine) { m.Boot = "boot-2" },
		"still finds a fault after 30m0s: lost": func(m *step.Machine) { m.Boot, m.BrokenGPUs = "boot-2", "lost" },
		"the order wasn't given; isn't drained": nil,
	} {
		a, f := onMachine(v1.OperationRestartMachine), drained()
		a.Status = step.Decide(a, f, start).Status
		if f.Machine.Ordered = change != nil; !f.Machine.Ordered {
			f.Machine.Unschedulable = false
			n := step.Decide(a, f, start.Add(time.Minute))
			require.Equal(t, v1.PhaseFailed, n.Status.Phase)
			require.Contains(t, n.Status.Message, "isn't cordoned")
			continue
		}
		change(f.Machine)
		n := step.Decide(a, f, start.Add(31*time.Minute))
		require.Equal(t, v1.PhaseFailed, n.Status.Phase, want)
		require.Contains(t, n.Status.Message, want)
	}
}

// If a person cordons the machine before the order, the machine isn't restarted. If a person cordons it after the order, the result of the Action is
// the result of the restart.
func TestAPersonTakesAMachineOverBeforeItsRestart(t *testing.T) {
	a, f := onMachine(v1.OperationRestartMachine), drained()
	a.Status = step.Decide(a, f, start).Status
	takenOut(f)
	n := step.Decide(a, f, start.Add(time.Second))
	require.Equal(t, v1.PhaseFailed, n.Status.Phase)
	require.Empty(t, n.Effect)
	require.Equal(t, "node3 was cordoned by a person, and a policy doesn't restart it", n.Status.Message)
	f.Machine.Ordered = true
	require.Equal(t, v1.PhaseActing, step.Decide(a, f, start.Add(time.Second)).Status.Phase)
}

// A policy doesn't return a machine to service while another Action restarts it.
func TestAPolicyReturnsNoMachineDuringARestart(t *testing.T) {
	f := drained(func(f *step.Facts) { f.Restarting = "restart-x" })
	n := step.Decide(onMachine(v1.OperationUncordon), f, start)
	require.Equal(t, v1.PhasePending, n.Status.Phase)
	require.Equal(t, "node3 stays cordoned while the action restart-x restarts it", n.Status.Message)
	require.Empty(t, n.Effect)
	require.Equal(t, step.EffectUncordon, step.Decide(onMachine(v1.OperationUncordon, byAdmin), f, start).Effect)
	f.Restarting = ""
	require.Equal(t, step.EffectUncordon, step.Decide(onMachine(v1.OperationUncordon), f, start).Effect)
}

func TestTheLimitOfRestarts(t *testing.T) {
	l := step.Limits{MachinesPerHour: 9, MachinesOut: 100, RestartsPerHour: 2}
	m := step.Machines{Total: 10, Out: map[string]bool{"node3": true}, Cordoned: map[string]bool{"node3": true}}
	other := func(name string, ago time.Duration, change ...func(*v1.Action)) *v1.Action {
		a, at := onMachine(v1.OperationRestartMachine, change...), metav1.NewTime(start.Add(-ago))
		a.Name, a.Spec.Machine.Name, a.Status = name, name, v1.ActionStatus{Phase: v1.PhaseFailed, StartTime: &at}
		return a
	}
	all := []*v1.Action{other("a", 20*time.Minute), other("b", 61*time.Minute), other("c", time.Minute, byAdmin), other("d", time.Minute, dryRun)}
	require.Equal(t, step.Limit{}, l.Check(onMachine(v1.OperationRestartMachine), all, m, start))
	all = append(all, other("e", 10*time.Minute))
	require.Equal(t, step.Limit{Wait: "it waits: policies may restart 2 machines an hour", After: 40 * time.Minute}, l.Check(onMachine(v1.OperationRestartMachine), all, m, start))
	require.Equal(t, step.Limit{}, l.Check(onMachine(v1.OperationDrain), all, m, start), "it is one of restarts")
}

// An Action restarts a machine at most once, although events are lost and programs are killed at any time. It succeeds only after a restart.
func TestAnActionRestartsAMachineOnceAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, f := onMachine(v1.OperationRestartMachine), drained()
		m := f.Machine
		now, boots, orderFor := start, 1, ""
		by := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
		restarts := 0
		for i := 0; !a.Status.Phase.Final(); i++ {
			if i > 2000 {
				t.Fatalf("it doesn't end: %+v", a.Status)
			}
			n := step.Decide(a, f, now)
			if !by("killed before the status") {
				a.Status = n.Status
				if n.Effect == step.EffectRestart && !by("killed before the effect") {
					m.Ordered, orderFor = true, a.Status.Boot
				}
			}
			if m.Ordered && m.Restart == nil && by("the agent acts") {
				if orderFor == m.Boot && m.Unschedulable {
					boots++
					restarts++
					m.Boot, m.Ready = fmt.Sprint("boot-", boots), by("ready at once")
				} else if orderFor != m.Boot && by("it has checked") {
					m.Restart = &step.Answer{Done: !by("a fault")}
				}
			}
			if by("the kubelet") {
				m.Ready = true
			}
			if rapid.IntRange(0, 50).Draw(t, "a person") == 0 {
				m.Unschedulable = !m.Unschedulable
			}
			now = now.Add(max(n.After, time.Second))
		}
		if restarts > 1 {
			t.Fatalf("%d restarts", restarts)
		}
		if a.Status.Phase == v1.PhaseSucceeded && (m.Boot == "boot-1" || !m.Ready || m.Restart == nil || !m.Restart.Done) {
			t.Fatalf("no success: %+v %+v", a.Status, m)
		}
	})
}
