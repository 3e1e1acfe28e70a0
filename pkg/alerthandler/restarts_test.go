package alerthandler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Two GPUs of a machine are lost. The restart for one GPU also counts for the other GPU if it began after the alert about the other GPU.
func TestOneRestartIsForAllLostGPUsOfAMachine(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		m := metav1.NewTime(time.Date(2026, 11, 30, 9, minutes, 0, 0, time.UTC))
		return &m
	}
	action := func(incident, step string, do v1.Operation, made int, status v1.ActionStatus) *v1.Action {
		return &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "lost-" + incident + "-" + step, CreationTimestamp: *at(made),
			Labels: map[string]string{LabelPolicy: "lost", LabelIncident: incident, LabelStep: string(step[0] - 1)}},
			Spec:   v1.ActionSpec{Do: do, Machine: &v1.Machine{Name: "node3", UID: "n3"}, By: v1.Requester{Kind: v1.ByPolicy, Name: "lost"}},
			Status: status}
	}
	drain := action("b-1", "1", v1.OperationDrain, 10, v1.ActionStatus{Phase: v1.PhaseSucceeded})
	b := action("b-1", "2", v1.OperationRestartMachine, 30, v1.ActionStatus{})
	other := func(phase v1.Phase, began int, uid types.UID) *v1.Action {
		a := action("a-1", "2", v1.OperationRestartMachine, 5, v1.ActionStatus{Phase: phase, StartTime: at(began), EndTime: at(began + 5)})
		a.Spec.Machine.UID = uid
		return a
	}
	for _, c := range []struct {
		name                  string
		other                 *v1.Action
		restarting, restarted bool
	}{
		{"it restarts the machine", other(v1.PhaseActing, 15, "n3"), true, false},
		{"it has restarted the machine", other(v1.PhaseSucceeded, 15, "n3"), false, true},
		{"it began before the alert", other(v1.PhaseSucceeded, 9, "n3"), false, false},
		{"it failed", other(v1.PhaseFailed, 15, "n3"), false, false},
		{"another machine", other(v1.PhaseActing, 15, "n4"), false, false},
		{"another machine that restarted", other(v1.PhaseSucceeded, 15, "n4"), false, false},
	} {
		all := []*v1.Action{c.other, drain, b}
		require.Equal(t, c.restarting, restarting(b, all) != "", c.name)
		require.Equal(t, c.restarted, restartedSince(b, all) != "", c.name)
		require.Empty(t, restarting(drain, all[1:]), c.name)
	}
	dry := other(v1.PhaseSucceeded, 15, "n3")
	dry.Spec.DryRun = true
	require.Empty(t, restartedSince(b, []*v1.Action{dry, drain, b}))
	require.Empty(t, restartedSince(b, []*v1.Action{other(v1.PhaseSucceeded, 15, "n3"), b}), "without its first step, its own time counts")
}

// Two alerts are about the same GPU, for example an alert about XID 48 and an alert about the GPU's memory. The reset for one alert also counts for
// the other alert. Two resets don't overlap.
func TestOneResetIsForAllAlertsOfAGPU(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC))
	reset := func(name string, gpu int32, phase v1.Phase) *v1.Action {
		return &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at}, Status: v1.ActionStatus{Phase: phase, StartTime: &at},
			Spec: v1.ActionSpec{Do: v1.OperationResetGPU, Machine: &v1.Machine{Name: "node3", UID: "n3", GPU: &gpu}, By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}}}
	}
	a := reset("a", 2, v1.PhasePending)
	for _, c := range []struct {
		other             *v1.Action
		resetting, wasSet bool
	}{
		{reset("b", 2, v1.PhaseActing), true, false},
		{reset("b", 2, v1.PhaseSucceeded), false, true},
		{reset("b", 2, v1.PhaseFailed), false, false},
		{reset("b", 5, v1.PhaseActing), false, false},
		{reset("b", 5, v1.PhaseSucceeded), false, false},
	} {
		require.Equal(t, c.resetting, restarting(a, []*v1.Action{c.other, a}) != "")
		require.Equal(t, c.wasSet, restartedSince(a, []*v1.Action{c.other, a}) != "")
	}
	restart := reset("c", 2, v1.PhaseActing)
	restart.Spec.Do = v1.OperationRestartMachine
	require.Empty(t, restarting(a, []*v1.Action{restart, a}))
	require.Empty(t, restarting(restart, []*v1.Action{reset("b", 2, v1.PhaseActing), restart}))
}

// The API server's clock sets the creation times of Actions. It is ahead of the handler's clock, which sets their start times.
func TestAnActionThatWasMadeAfterTheAlertBeganAfterIt(t *testing.T) {
	at := func(second int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 30, 9, 0, second, 0, time.UTC))
	}
	action := func(name string, made metav1.Time) *v1.Action {
		return &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: made},
			Spec: v1.ActionSpec{Do: v1.OperationRestartMachine, Machine: &v1.Machine{Name: "node3", UID: "n3"}, By: v1.Requester{Kind: v1.ByPolicy, Name: "lost"}}}
	}
	began := at(2)
	other := action("a", at(7))
	other.Status = v1.ActionStatus{Phase: v1.PhaseSucceeded, StartTime: &began}
	a := action("b", at(5))
	require.Equal(t, "a", restartedSince(a, []*v1.Action{other, a}))
	other.CreationTimestamp = at(4)
	require.Empty(t, restartedSince(a, []*v1.Action{other, a}))
}

// A policy restarts a machine only once before the machine is returned to service.
func TestTheRestartsOfACordonedMachineEnd(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		m := metav1.NewTime(time.Date(2026, 11, 30, 9, minutes, 0, 0, time.UTC))
		return &m
	}
	restart := func(name string, began int, phase v1.Phase, by v1.RequesterKind) *v1.Action {
		return &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ActionSpec{Do: v1.OperationRestartMachine, Machine: &v1.Machine{Name: "node3", UID: "n3"}, By: v1.Requester{Kind: by, Name: "lost"}},
			Status: v1.ActionStatus{Phase: phase, StartTime: at(began)}}
	}
	a := restart("a", 0, v1.PhaseNew, v1.ByPolicy)
	a.Status.StartTime = nil
	mark := &v1.Mark{At: at(20).Time, Also: []v1.Mark{{At: at(10).Add(900 * time.Millisecond)}}}
	failed, refused := restart("failed", 10, v1.PhaseFailed, v1.ByPerson), restart("refused", 15, v1.PhaseRefused, v1.ByPolicy)
	refused.Status.StartTime = nil
	ok, byPerson := restart("ok", 30, v1.PhaseSucceeded, v1.ByPolicy), restart("person", 30, v1.PhaseSucceeded, v1.ByPerson)
	for _, c := range []struct {
		name string
		all  []*v1.Action
		mark *v1.Mark
		want string
	}{
		{"one has failed", []*v1.Action{a, failed}, mark, "the action failed has failed since it was cordoned"},
		{"it wasn't cordoned then", []*v1.Action{a, failed}, &v1.Mark{At: at(20).Time}, ""},
		{"it isn't cordoned by a policy", []*v1.Action{a, failed}, nil, ""},
		{"one was refused", []*v1.Action{a, refused}, mark, ""},
		{"one runs", []*v1.Action{a, restart("acting", 30, v1.PhaseActing, v1.ByPolicy)}, mark, ""},
		{"it is the one", []*v1.Action{restart("a", 30, v1.PhaseFailed, v1.ByPolicy)}, mark, ""},
		{"one has succeeded", []*v1.Action{a, ok}, mark, "the action ok has restarted it since it was cordoned"},
		{"one has succeeded before", []*v1.Action{a, ok}, &v1.Mark{At: at(40).Time}, ""},
		{"those of people don't count", []*v1.Action{a, byPerson, byPerson, byPerson}, mark, ""},
	} {
		require.Equal(t, c.want, spent(a, c.all, c.mark), c.name)
	}
}
