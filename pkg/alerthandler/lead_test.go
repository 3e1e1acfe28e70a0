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

// The answers of an agent can't be read, and it writes no others. The reset begins, and fails when its time is over.
func TestAResetEndsWithoutReadableAnswers(t *testing.T) {
	h, gpu, now := ofNodes(fake.NewClientset()), int32(2), time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	require.NoError(t, h.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3", UID: "n3", Annotations: map[string]string{repair.Answers: "garbage"}}}))
	a := &v1.Action{ObjectMeta: metav1.ObjectMeta{UID: "a1"}, Spec: v1.ActionSpec{Do: v1.OperationResetGPU, Machine: &v1.Machine{Name: "node3", UID: "n3", GPU: &gpu},
		By: v1.Requester{Kind: v1.ByOperator}, NotAfter: metav1.NewTime(now.Add(time.Hour))}}
	decide := func(at time.Time) step.Next {
		f, err := h.facts(t.Context(), a, nil, at)
		require.NoError(t, err)
		next := step.Decide(a, f, at)
		a.Status = next.Status
		return next
	}
	require.Equal(t, step.EffectReset, decide(now).Effect)
	require.Equal(t, v1.PhaseFailed, decide(now.Add(time.Hour)).Status.Phase)
}
