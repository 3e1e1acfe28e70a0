package books_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

// fillOpportunistic uses all GPUs with three opportunistic gangs, which guaranteed gangs may preempt.
func (s *stage) fillOpportunistic() {
	var all []*schedulertest.Gang
	for i := range 3 {
		all = append(all, s.gang(fmt.Sprintf("o%d", i), "B", -1, 1, 8))
	}
	s.bound(all...)
}

func (s *stage) createPods(g *schedulertest.Gang, change func(*corev1.Pod)) {
	s.t.Helper()
	for i := range g.Pods {
		p := g.Pod(i)
		change(p)
		_, err := s.c.Client.CoreV1().Pods(s.ns).Create(s.t.Context(), p, metav1.CreateOptions{})
		require.NoError(s.t, err)
	}
}

// survivors returns the number of opportunistic pods that haven't been preempted after some time.
func (s *stage) survivors(after time.Duration) int {
	time.Sleep(after)
	list, err := s.pods().List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	n := 0
	for i := range list.Items {
		if list.Items[i].Name[0] == 'o' && list.Items[i].DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// Because of a typing error in its nodeSelector, no node can ever run the gang. So the gang must not preempt other gangs.
func TestAGangThatNoNodeAdmitsEndsNoOthers(t *testing.T) {
	s := newStage(t, "nowhere")
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	s.fillOpportunistic()
	s.createPods(&schedulertest.Gang{Name: "train", VC: "A", Priority: 5, Pods: 2, GPUs: 8}, func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"example.org/zone": "none"}
	})
	assert.Equal(t, 3, s.survivors(15*time.Second))
}

// The volume of the gang doesn't exist, so the gang can't run on any node. kube-scheduler must report this before any pod is preempted for the gang.
func TestAGangWithoutItsVolumeEndsNoOthers(t *testing.T) {
	s := newStage(t, "no-volume")
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	s.fillOpportunistic()
	s.createPods(&schedulertest.Gang{Name: "train", VC: "A", Priority: 5, Pods: 1, GPUs: 8}, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"}}}}
	})
	assert.Equal(t, 3, s.survivors(20*time.Second))
}

// Only one of two gangs fits on a node at the same time. The second gang must not preempt pods if it can't start.
func TestAGangThatDoesNotFitBesideAnotherEndsNoOthers(t *testing.T) {
	s := newStage(t, "beside")
	sched := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	var o []*schedulertest.Gang
	for _, name := range []string{"o0", "o1", "o2", "o3", "o4", "o5"} {
		o = append(o, s.gang(name, "A", -1, 1, 4))
	}
	s.bound(o...)
	node, err := s.c.Client.CoreV1().Nodes().Get(t.Context(), "test-1", metav1.GetOptions{})
	require.NoError(t, err)
	much := node.Status.Allocatable.Cpu().DeepCopy()
	much.SetMilli(much.MilliValue() * 6 / 10)
	for _, name := range []string{"p", "r"} {
		g := &schedulertest.Gang{Namespace: s.ns, Name: name, VC: "B", Priority: 5, Pods: 1, GPUs: 4, CPU: much.String()}
		require.NoError(t, g.Create(t.Context(), s.c.Client))
	}
	n := s.survivors(25 * time.Second)
	for _, g := range []string{"B/p", "B/r"} {
		_, text, _ := sched.Get("/v1/why/" + g)
		t.Logf("%s: %s", g, text)
	}
	assert.Equal(t, 5, n, "one gang ended for the one that runs")
}
