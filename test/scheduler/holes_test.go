package books_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

// In these cases, an earlier version of the scheduler allocated GPUs twice, kept GPUs from all pods, or made the wrong pods wait. The tests use the
// real API server and kube-scheduler. The tests of pkg/scheduler/gangs cover the corner cases.

// gone waits until the pods no longer exist.
func (s *stage) gone(names ...string) {
	s.t.Helper()
	for _, name := range names {
		schedulertest.Eventually(s.t, time.Minute, func() error {
			if _, err := s.c.Client.CoreV1().Pods(s.ns).Get(s.t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is still there: %w", name, err)
			}
			return nil
		})
	}
}

// end deletes a pod without a grace period.
func (s *stage) end(name string) {
	s.t.Helper()
	zero := int64(0)
	if err := s.pods().Delete(s.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &zero}); !apierrors.IsNotFound(err) {
		require.NoError(s.t, err)
	}
}

// used returns the number of GPUs that are in use according to the scheduler.
func used(p *schedulertest.Scheduler) (n int, err error) {
	code, text, err := p.Get("/v1/virtualclusters")
	if err != nil || code != 200 {
		return 0, fmt.Errorf("%d %s %w", code, text, err)
	}
	var list struct {
		Items []struct {
			Name                string
			Used, Opportunistic int
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return 0, err
	}
	for _, v := range list.Items {
		n += v.Used + v.Opportunistic
	}
	return n, nil
}

// Free GPUs go to the first gang in the queue, even if kube-scheduler tries another gang first.
func TestWhatBecomesFreeGoesToTheFirstOfTheQueue(t *testing.T) {
	s := newStage(t, "order")
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	first := s.gang("first", "B", 9, 1, 8)
	s.bound(first)
	for _, g := range []struct {
		name     string
		priority int
	}{{"low", 1}, {"idle", -1}, {"early", 5}, {"late", 5}, {"high", 8}} {
		s.gang(g.name, "B", g.priority, 1, 8)
		if g.priority >= 0 {
			s.waits(p, "B/"+g.name)
		}
	}
	var order []string
	now := "first"
	for range 4 {
		s.end(now + "-0")
		var next string
		schedulertest.Eventually(t, time.Minute, func() error {
			list, err := s.pods().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				name := list.Items[i].Labels["gang"]
				if list.Items[i].Spec.NodeName != "" && name != now && name != "idle" && !slices.Contains(order, name) {
					next = name
					return nil
				}
			}
			return fmt.Errorf("none follows %s", now)
		})
		order, now = append(order, next), next
	}
	assert.Equal(t, []string{"high", "early", "late", "low"}, order)
}

// A new leader lists the pods while pods end. A pod that ends during the list must not keep GPUs.
func TestPodsThatEndWhileALeaderBeginsKeepNothing(t *testing.T) {
	for _, claims := range []bool{false, true} {
		t.Run(fmt.Sprintf("claims %t", claims), func(t *testing.T) {
			s := newStage(t, fmt.Sprintf("ending-%t", claims))
			p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
			var names []string
			for i := range 8 {
				g := &schedulertest.Gang{Namespace: s.ns, Name: fmt.Sprintf("g%d", i), VC: "A", Priority: 5, Pods: 2, GPUs: 1, Claims: claims}
				require.NoError(t, g.Create(t.Context(), s.c.Client))
				s.bound(g)
				names = append(names, g.PodName(0), g.PodName(1))
			}
			p.Kill()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for _, name := range names[2:] {
					s.end(name)
				}
			}()
			again := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
			<-ended
			schedulertest.Eventually(t, time.Minute, func() error {
				if n, err := used(again); n != 2 || err != nil {
					return fmt.Errorf("%d GPUs are used: %w", n, err)
				}
				return nil
			})
			// Gangs of another shape use the names again immediately.
			s.gone(names[2])
			whole := &schedulertest.Gang{Namespace: s.ns, Name: "g1", VC: "A", Priority: 5, Pods: 1, GPUs: 8, Claims: claims}
			require.NoError(t, whole.Create(t.Context(), s.c.Client))
			s.bound(whole)
			if n, err := used(again); assert.NoError(t, err) {
				assert.Equal(t, 10, n)
			}
		})
	}
}

// A pod that names another gang gets as many GPUs as it requests, or no GPUs. It never gets the GPUs of that gang.
func TestAPodOfAnotherShapeGetsNoPlaceOfAGang(t *testing.T) {
	s := newStage(t, "shapes")
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	g := s.claiming("g", "A", 5, 2, 1)
	s.bound(g)
	s.end("g-1") // a slot is free
	s.gone("g-1")
	more := &schedulertest.Gang{Namespace: s.ns, Name: "g", VC: "A", Priority: 5, Pods: 2, GPUs: 2, Claims: true}
	low := &schedulertest.Gang{Namespace: s.ns, Name: "g", VC: "A", Priority: 1, Pods: 2, GPUs: 1, Claims: true}
	for name, pod := range map[string]*corev1.Pod{"more": more.Pod(1), "low": low.Pod(1)} {
		pod.Name, pod.Namespace, pod.Labels = name, s.ns, map[string]string{"gang": name}
		// The name of the pod's claim depends on the name of the pod, so both are changed.
		other := schedulertest.Gang{Namespace: s.ns, Name: name, Claims: true}
		pod.Spec.ResourceClaims = other.Pod(0).Spec.ResourceClaims
		pod.Name = other.PodName(0)
		_, err := s.c.Client.CoreV1().Pods(s.ns).Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, name := range []string{"more-0", "low-0"} {
		schedulertest.Eventually(t, time.Minute, func() error {
			list, err := s.c.Client.CoreV1().Events(s.ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
			if err != nil {
				return err
			}
			for i := range list.Items {
				if e := &list.Items[i]; e.Reason == api.ReasonRefused || e.Reason == api.ReasonWaiting {
					t.Logf("%s: %s: %s", name, e.Reason, e.Message)
					return nil
				}
			}
			return fmt.Errorf("nothing is said of %s", name)
		})
		assert.Empty(t, s.pod(name).Spec.NodeName, name)
	}
	require.NoError(t, g.Create(t.Context(), s.c.Client)) // its own pod comes back
	s.bound(g)
	assert.Len(t, s.users(), 2)
	_ = p
}

// If a retried task must avoid its node, it doesn't return to that node.
func TestARetriedPodAvoidsTheNodeThatItMustAvoid(t *testing.T) {
	s := newStage(t, "avoids")
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	g := s.claiming("g", "A", 5, 2, 4)
	s.bound(g)
	stays, bad := s.pod("g-0"), s.pod("g-1").Spec.NodeName
	s.end("g-1")
	s.gone("g-1")
	again := g.Pod(1)
	again.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{bad}},
		}}},
	}}}
	_, err := s.c.Client.CoreV1().Pods(s.ns).Create(t.Context(), again, metav1.CreateOptions{})
	require.NoError(t, err)
	s.bound(g)
	assert.NotEqual(t, bad, s.pod("g-1").Spec.NodeName)
	assert.Equal(t, stays.Spec.NodeName, s.pod("g-0").Spec.NodeName)
	assert.Equal(t, stays.UID, s.pod("g-0").UID)
	assert.Len(t, s.users(), 8)
}

// If many gangs of one virtual cluster can't start, they don't delay the gangs of another virtual cluster.
func TestWaitingGangsOfOneVirtualClusterKeepNoOtherWaiting(t *testing.T) {
	s := newStage(t, "many-wait")
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	s.bound(s.gang("first", "A", 5, 2, 8))
	const many = 300
	for i := range many {
		s.gang(fmt.Sprintf("w%d", i), "A", 5, 1, 1+i%8)
	}
	s.waits(p, fmt.Sprintf("A/w%d", many-1))
	start := time.Now()
	s.bound(s.gang("other", "B", 5, 1, 8))
	t.Logf("bound after %s, beside %d gangs that wait", time.Since(start).Round(time.Millisecond), many)
	var q api.Queue
	_, text, err := p.Get("/v1/queue?vc=A")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(text), &q))
	assert.Len(t, q.Items, many)
}
