package alerthandler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

// The answers of an agent are invalid, and the agent writes no other answers. The reset begins, and fails after its timeout.
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

// A policy stops selecting an alert while an Action is in its grace period. The Action is refused, and its incident ends. If the policy selects the
// alert again, a new incident begins.
func TestAPolicyThatNoLongerSelectsAnAlert(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	h := ofActions(now)
	selecting := func(alerts string) *policy.Config {
		c, err := policy.Read([]byte(`{"limits":{"machinesPerHour":1,"machinesOutPercent":10},"drainTimeout":"30m","keep":"24h","policies":[
			{"name":"hot","alerts":` + alerts + `,"steps":[{"do":"cordon","grace":"1h"}]}]}`))
		require.NoError(t, err)
		return c
	}
	h.o.Policies = selecting(`{"alertname":"NodeHot"}`)
	require.NoError(t, h.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3", UID: "n3"}}))
	require.NoError(t, h.take(t.Context(), h.latest(), &policy.Alert{Status: "firing", Labels: map[string]string{"alertname": "NodeHot", "severity": "warning", "node": "node3"}, StartsAt: now}))
	require.Len(t, h.list(), 1)
	look := func() *v1.Action {
		a := h.list()[0]
		_, err := h.advance(t.Context(), a, h.list(), now)
		require.NoError(t, err)
		h.outdated(t.Context(), h.list())
		return h.list()[0]
	}
	a := look()
	require.Equal(t, v1.PhaseNoticed, a.Status.Phase, a.Status.Message)
	h.o.Policies = selecting(`{"alertname":"NodeHot","severity":"warning|critical"}`)
	require.Equal(t, v1.PhaseNoticed, look().Status.Phase, "it still selects the alert")
	h.o.Policies = selecting(`{"alertname":"NodeHot","severity":"critical"}`)
	a = look()
	require.Equal(t, v1.PhaseRefused, a.Status.Phase)
	require.Equal(t, "the policy hot no longer selects the alert", a.Status.Message)
	require.NotEmpty(t, a.Annotations[AnnotationAlertEnded])
}
