package cluster

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
)

func TestTheLastMachineOfTheControlPlaneStays(t *testing.T) {
	s := preflightSpec(t, 1)
	_, err := Removable(s, []string{"m1"})
	require.EqualError(t, err, "m1 is the only machine of the control plane: without it there is no cluster")
	assert.Contains(t, hint.Of(err), "paictl cluster down")

	s.Nodes[1].ControlPlane = true
	_, err = Removable(s, []string{"w1", "10.0.0.1"})
	require.EqualError(t, err, "these are all machines of the control plane: without them there is no cluster")
	nodes, err := Removable(s, []string{"10.0.0.1"})
	require.NoError(t, err)
	assert.Equal(t, []*Node{s.Nodes[0]}, nodes)
	nodes, err = Removable(s, []string{"w1", s.Nodes[1].HostIP})
	require.NoError(t, err)
	assert.Equal(t, []*Node{s.Nodes[1]}, nodes, "named twice, removed once")

	_, err = Removable(s, []string{"w9"})
	require.ErrorContains(t, err, "w9 is not a machine of the layout")
	_, err = Removable(s, nil)
	require.Error(t, err)
}

func pod(name, owner string, edit ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "research", Labels: map[string]string{"app": name}}}
	if owner != "" {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "x", Controller: &yes}}
	}
	for _, f := range edit {
		f(&p)
	}
	return p
}

func TestAStuckDrainNamesThePodsAndWhatHoldsThem(t *testing.T) {
	ended := metav1.Now()
	pods, err := json.Marshal(corev1.PodList{Items: []corev1.Pod{
		pod("web", "ReplicaSet"),
		pod("free", "ReplicaSet"),
		pod("lonely", ""),
		pod("slow", "Job", func(p *corev1.Pod) { p.DeletionTimestamp = &ended }),
		pod("agent", "DaemonSet"),
		pod("static", "Node", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
		pod("done", "Job", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
	}})
	require.NoError(t, err)
	budget := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "two-of-two", Namespace: "research"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	elsewhere := budget
	elsewhere.Namespace, elsewhere.Spec.Selector = "other", &metav1.LabelSelector{}
	budgets, err := json.Marshal(policyv1.PodDisruptionBudgetList{Items: []policyv1.PodDisruptionBudget{elsewhere, budget}})
	require.NoError(t, err)

	n := preflightSpec(t, 1).Nodes[1]
	got := stuckError(n, time.Minute, []string{"error: timed out"}, pods, budgets)
	require.EqualError(t, got, "drain w1: pods were not evicted within 1m0s: research/web (held by PodDisruptionBudget two-of-two), research/free, "+
		"research/lonely (no controller would start it elsewhere), research/slow (it is terminating, but has not finished)")
	assert.Contains(t, hint.Of(got), "--force")
	assert.Contains(t, hint.Of(got), "kubectl uncordon w1")

	got = stuckError(n, time.Minute, []string{"error: timed out"}, nil, nil)
	assert.EqualError(t, got, "drain w1: error: timed out")
}

func TestALongListOfStuckPodsIsCut(t *testing.T) {
	var list corev1.PodList
	for range 9 {
		list.Items = append(list.Items, pod("p", "ReplicaSet"))
	}
	raw, err := json.Marshal(list)
	require.NoError(t, err)
	got := stuckError(preflightSpec(t, 1).Nodes[1], time.Second, nil, raw, nil)
	assert.ErrorContains(t, got, "research/p and 4 more")
}
