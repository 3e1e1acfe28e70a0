package gangs

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes allows clients to add a nodeSelector to a pod with a scheduling gate, and tolerations to any pod. Earlier results
// then don't apply to the pod, and never apply to other pods.
func TestANodeSelectorThatComesWithTheEndOfAGateIsOfThatPodAlone(t *testing.T) {
	c := newCluster(t, twoTeams)
	gated := newPod("gated", spec("A", -1, "gated:1:1"))
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/wait"}}
	gated = c.create(gated)
	gated.Spec.SchedulingGates = nil
	gated.Spec.NodeSelector = map[string]string{"example.org/zone": "none"}
	_, err := c.client.CoreV1().Pods(gated.Namespace).Update(t.Context(), gated, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		return len(c.b.state.pods[gated.UID].object.Spec.SchedulingGates) == 0
	})
	c.waits(gated)
	c.place(c.create(newPod("other", spec("B", 1, "other:1:2"))))
}
