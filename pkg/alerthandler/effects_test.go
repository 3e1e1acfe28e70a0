package alerthandler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

// A person may cordon a machine between the decision and the order, while the watch still holds the old version.
func TestAnOrderToRestartIsForTheNodeOfTheDecision(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC))
	a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "lost-1", UID: "a1"}, Spec: v1.ActionSpec{Do: v1.OperationRestartMachine, Machine: &v1.Machine{Name: "node3", UID: "n3"}},
		Status: v1.ActionStatus{StartTime: &at, Boot: "boot-1"}}
	core := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3", UID: "n3", ResourceVersion: "8"}, Spec: corev1.NodeSpec{Unschedulable: true}})
	h := &Handler{core: core}
	ordered := func() *repair.Restart {
		n, err := core.CoreV1().Nodes().Get(t.Context(), "node3", metav1.GetOptions{})
		require.NoError(t, err)
		order, err := repair.ReadRestart(n)
		require.NoError(t, err)
		return order
	}
	require.ErrorIs(t, h.restart(t.Context(), a, &step.Machine{UID: "n3", Version: "7"}), errMoved)
	require.Nil(t, ordered())
	require.NoError(t, h.restart(t.Context(), a, &step.Machine{UID: "n3", Version: "8"}))
	require.Equal(t, "boot-1", ordered().Boot)
	require.NoError(t, h.restart(t.Context(), a, &step.Machine{UID: "n3", Version: "7"}), "it was given")
	a.Spec.Machine.UID = "n4"
	require.ErrorIs(t, h.restart(t.Context(), a, &step.Machine{UID: "n4", Version: "8"}), errMoved)
}

// A policy's request to reset a GPU doesn't replace a pending request, because a person may have made the pending request.
func TestAnOrderToResetWaitsForAPersonsOrder(t *testing.T) {
	now, gpu := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), int32(2)
	core := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3", UID: "n3"}})
	h := &Handler{core: core, o: Options{Now: func() time.Time { return now }}}
	a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "broken-1", UID: "a1"}, Spec: v1.ActionSpec{Do: v1.OperationResetGPU, Machine: &v1.Machine{Name: "node3", UID: "n3", GPU: &gpu}}}
	ids := func() (out []string) {
		n, err := core.CoreV1().Nodes().Get(t.Context(), "node3", metav1.GetOptions{})
		require.NoError(t, err)
		requests, err := repair.Read(n)
		require.NoError(t, err)
		for _, r := range requests {
			out = append(out, r.ID)
		}
		return out
	}
	require.NoError(t, repair.Add(t.Context(), core, "node3", repair.Request{ID: "ann", GPU: 2, Action: repair.Reset, At: now}))
	require.NoError(t, h.reset(t.Context(), a))
	require.Equal(t, []string{"ann"}, ids())
	n, err := core.CoreV1().Nodes().Get(t.Context(), "node3", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, repair.WriteAnswers(t.Context(), core, n, []repair.Answer{{ID: "ann", Done: true}}))
	require.NoError(t, h.reset(t.Context(), a))
	require.NoError(t, h.reset(t.Context(), a))
	require.Equal(t, []string{"a1"}, ids())
	require.NoError(t, repair.Add(t.Context(), core, "node3", repair.Request{ID: "bob", GPU: 2, Action: repair.Reset, At: now}))
	now = now.Add(repair.Valid + time.Second)
	require.NoError(t, h.reset(t.Context(), a))
	require.Equal(t, []string{"a1"}, ids(), "no agent answered it in its time")
}

// A machine that stays cordoned keeps a mark with all alerts for which it is cordoned.
func TestAMachineThatStaysOutKeepsItsMark(t *testing.T) {
	core := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3", UID: "n3", ResourceVersion: "8"}, Spec: corev1.NodeSpec{Unschedulable: true}})
	h := &Handler{core: core}
	a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "lost-a-1-3"}, Spec: v1.ActionSpec{Do: v1.OperationUncordon, Machine: &v1.Machine{Name: "node3", UID: "n3"}}}
	mark := v1.Mark{Action: "lost-a-1-1", By: v1.Requester{Kind: v1.ByPolicy, Name: "lost"}, Also: []v1.Mark{{Action: "lost-b-1-1", Reason: "GPU 5"}}}
	f := &step.Facts{NoReturn: "it broke again", Machine: &step.Machine{UID: "n3", Version: "8", Unschedulable: true, Mark: &mark}}
	require.NoError(t, h.do(t.Context(), a, f, step.EffectStay))
	n, err := core.CoreV1().Nodes().Get(t.Context(), "node3", metav1.GetOptions{})
	require.NoError(t, err)
	mark.Stays, mark.Reason = true, "it broke again"
	require.Equal(t, &mark, v1.ReadMark(n.Annotations))
}
