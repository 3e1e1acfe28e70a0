package alerthandler

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/kube/watch"
)

func ofNodes(core kubernetes.Interface) *Handler {
	return &Handler{core: core, o: Options{Log: slog.New(slog.DiscardHandler), Policies: &policy.Config{}, Now: time.Now},
		nodes: watch.New(watch.Options[*corev1.Node, *corev1.Node]{Name: "nodes", Keep: keepNode})}
}

// A policy has cordoned a machine. While no handler is running, a person uncordons the machine and cordons it again. The policy neither restarts
// the machine nor returns it to service.
func TestAPersonCordonsAMachineAgain(t *testing.T) {
	first := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	mark, err := json.Marshal(v1.Mark{Action: "lost-a-1-1", By: v1.Requester{Kind: v1.ByPolicy, Name: "lost"}, At: first, Stays: true})
	require.NoError(t, err)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3", UID: "n3", Annotations: map[string]string{v1.MarkAnnotation: string(mark), v1.ReturnsAnnotation: "[]"}},
		Spec: corev1.NodeSpec{Unschedulable: true}}
	core := fake.NewClientset(n)
	h := ofNodes(core)
	a := &v1.Action{Spec: v1.ActionSpec{Do: v1.OperationRestartMachine, Machine: &v1.Machine{Name: "node3", UID: "n3"}, By: v1.Requester{Kind: v1.ByOperator}}}
	look := func(taint time.Duration) *v1.Mark {
		t.Helper()
		n, err := core.CoreV1().Nodes().Get(t.Context(), "node3", metav1.GetOptions{})
		require.NoError(t, err)
		n.Spec.Taints = nil
		if taint > 0 {
			at := metav1.NewTime(first.Add(taint))
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at}}
		}
		n, err = core.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, h.nodes.Add(n))
		f, err := h.facts(t.Context(), a, nil, first)
		require.NoError(t, err)
		h.unmark(t.Context())
		return f.Machine.Mark
	}
	require.NotNil(t, look(0), "it has no taint yet")
	require.NotNil(t, look(time.Second))
	require.NotNil(t, look(2*time.Second), "the node controller wrote it again")
	require.Nil(t, look(time.Hour), "the first look after the handler was away")
	n, err = core.CoreV1().Nodes().Get(t.Context(), "node3", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, n.Annotations)
	require.True(t, n.Spec.Unschedulable)
}

// A policy cordons a machine. A person uncordons the machine and cordons it again before the handler reads the machine. The new cordon belongs to
// the person.
func TestAPersonReplacesACordonAtOnce(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	gpu := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	old := metav1.NewTime(now.Add(-time.Hour))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3", UID: "n3", ResourceVersion: "7"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{gpu, {Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &old}}}}
	core := fake.NewClientset(n)
	h := ofNodes(core)
	h.o.Now = func() time.Time { return now.Add(300 * time.Millisecond) }
	require.NoError(t, h.nodes.Add(n))
	a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "lost-a-1-1"}, Spec: v1.ActionSpec{Do: v1.OperationDrain, Machine: &v1.Machine{Name: "node3", UID: "n3"}, By: v1.Requester{Kind: v1.ByPolicy, Name: "lost"}}}
	require.ErrorIs(t, h.cordon(t.Context(), a, &step.Machine{UID: "n3", Version: "6"}), errMoved)
	require.NoError(t, h.cordon(t.Context(), a, &step.Machine{UID: "n3", Version: "7"}))
	n, err := core.CoreV1().Nodes().Get(t.Context(), "node3", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, n.Spec.Unschedulable)
	require.Len(t, n.Spec.Taints, 2)
	require.Equal(t, gpu, n.Spec.Taints[0])
	require.True(t, n.Spec.Taints[1].TimeAdded.Time.Equal(now))
	require.NotNil(t, validMark(n))
	later := metav1.NewTime(now.Add(8 * time.Second))
	n.Spec.Taints[1].TimeAdded = &later
	require.Nil(t, validMark(n))
}
