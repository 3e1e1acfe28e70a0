package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAllThatIsNotWellIsLookedAtAgainAfterRepairs(t *testing.T) {
	checks := []*Check{{ID: "kubelet-active"}, {ID: "nodes-ready"}, {ID: "pod-network"}, {ID: "dns"}, {ID: "etcd-health"}}
	r := &Report{Results: []Result{{ID: "kubelet-active", Verdict: Problem, Findings: []Finding{{Fix: &Fix{What: "start it"}}}}, {ID: "nodes-ready", Verdict: Problem},
		{ID: "pod-network", Verdict: Skipped}, {ID: "dns", Verdict: Warning}, {ID: "etcd-health", Verdict: OK}}}
	var ids []string
	for _, c := range Again(checks, r) {
		ids = append(ids, c.ID)
	}
	assert.Equal(t, []string{"kubelet-active", "nodes-ready", "pod-network", "dns"}, ids, "a kubelet that was started makes its node Ready")
	assert.Len(t, checks, 5, "the list is the caller's")
}

func TestARepairedMachineIsGivenTimeToBeReady(t *testing.T) {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy-x", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "kube-proxy", Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: "w1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	c := patient(t, 1, 2, pod)
	nodes, pods := c.Kube.Client.CoreV1().Nodes(), c.Kube.Client.CoreV1().Pods("kube-system")
	set := func(name string, is corev1.ConditionStatus) {
		n, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: is}}
		_, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	settled := func(names ...string) bool {
		of := map[string]bool{}
		for _, n := range names {
			of[n] = true
		}
		ok, err := c.settled(t.Context(), of)
		require.NoError(t, err)
		return ok
	}
	set("w1", corev1.ConditionUnknown)
	set("w2", corev1.ConditionUnknown)
	assert.False(t, settled("w1"), "its node isn't Ready")
	set("w1", corev1.ConditionTrue)
	assert.False(t, settled("w1"), "a pod that each node has isn't ready there")
	assert.True(t, settled("m1"))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.True(t, settled("w1"), "w2 was not repaired, and is not waited for")

	began := time.Now()
	c.WaitReady(t.Context(), []*Fix{{What: "of the API alone"}})
	assert.Less(t, time.Since(began), settleEvery)
}
