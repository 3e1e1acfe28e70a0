package books

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

func TestAPodGetsAPlaceAndIsBoundWithAnnotations(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	node := c.place(p)
	assert.Equal(t, api.Binding, c.state(p))
	assert.Equal(t, node, c.place(p), "the same node again")
	assert.Equal(t, []string{"p"}, c.queue.activated)
	c.bind(p, node)
	c.wait(p, api.Bound)
	bound := c.pod(p)
	assert.Equal(t, node, bound.Spec.NodeName)
	assert.Equal(t, "0,1", bound.Annotations[annotation.IsolationKey])
	assert.Contains(t, bound.Annotations[annotation.BindInfoKey], "affinityGroupBindInfo")
	assert.NotEmpty(t, bound.Annotations[annotation.PlacementKey])
	c.bind(p, node) // again, which changes nothing
	_, has := c.b.Place(p.UID)
	assert.False(t, has, "kube-scheduler has nothing to do for it any more")
}

func TestAGangLiesTogetherAndItsSecondPodFindsItsPlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	one := c.run(newPod("p1", spec("A", 5, "g:2:2")))
	two := c.run(newPod("p2", spec("A", 5, "g:2:2")))
	assert.ElementsMatch(t, []string{"a0:0,1", "a1:0,1"}, []string{gpus(one), gpus(two)})
	third := c.create(newPod("p3", spec("A", 5, "g:2:2")))
	assert.Contains(t, c.waits(third), "all 2 of its pods are there")
}

func TestAGangWaitsForItsPods(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.b.mu.Lock()
	c.b.state.grace = gangGrace
	c.b.mu.Unlock()
	one := c.create(newPod("p1", spec("A", 5, "g:2:2")))
	assert.Equal(t, "1 of 2 pods of the gang are there", c.waits(one))
	var groups groups
	c.get("/v1/inspect/affinitygroups/", &groups)
	assert.Empty(t, groups.Items, "it holds nothing")
	two := c.create(newPod("p2", spec("A", 5, "g:2:2")))
	assert.NotEqual(t, c.place(one), c.place(two))

	late := c.create(newPod("late", spec("B", 5, "late:2:1")))
	c.waits(late)
	c.clock.add(gangGrace)
	c.place(late) // one of its pods may have ended long ago
}

func TestAGangWaitsForItsSchedulingGates(t *testing.T) {
	c := newCluster(t, twoTeams)
	gated := newPod("p1", spec("A", 5, "g:2:2"))
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/later"}}
	gated = c.create(gated)
	two := c.create(newPod("p2", spec("A", 5, "g:2:2")))
	assert.Contains(t, c.waits(two), "waits for the scheduling gates of 1 pod")
	gated.Spec.SchedulingGates = nil
	_, err := c.client.CoreV1().Pods("jobs").Update(t.Context(), gated, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool { node, _ := c.decide(two); return node != "" })
	c.place(gated)
}

func TestAPodWaitsAndIsToldWhy(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("p1", spec("B", 5, "g1:1:2")))
	p := c.create(newPod("p2", spec("B", 5, "g2:1:2")))
	c.waits(p)
	c.waits(p)
	said := c.said()
	require.Len(t, said, 1, "one event for one reason")
	assert.Contains(t, said[0], "Normal WaitingForCells ")
}

func TestAGangThatFoundNoPlaceIsNotSearchedForAgain(t *testing.T) {
	c := newCluster(t, twoTeams)
	o := c.run(newPod("o", spec("B", 1, "o:1:2")))
	p := c.create(newPod("p", spec("B", 1, "p:1:2")))
	decisions := func() string {
		_, text := c.ask(http.MethodGet, "/metrics", nil)
		_, text, _ = strings.Cut(text, `pai_scheduler_decisions_total{result="wait"} `)
		text, _, _ = strings.Cut(text, "\n")
		return text
	}
	c.waits(p)
	for range 3 {
		c.waits(p)
	}
	assert.Equal(t, "1", decisions(), "nothing has changed")
	c.clock.add(refreshEvery)
	c.waits(p)
	assert.Equal(t, "2", decisions(), "some are only held back for a time")
	c.delete(o)
	c.place(p)
}

func TestWhatBecomesFreeIsHeldForAGangThatHasWaitedLong(t *testing.T) {
	c := newCluster(t, strings.Replace(twoTeams, "  A:\n", "  A:\n    quota: {users: {mallory: 1}}\n", 1))
	one, two := c.run(newPod("one", spec("A", 5, "one:1:2"))), c.run(newPod("two", spec("A", 5, "two:1:2")))
	over := newPod("over", spec("A", 9, "over:1:2"))
	over.Labels = map[string]string{api.UserLabel: "mallory"}
	c.create(over) // ahead of all, and its quota lets it never start
	large := c.create(newPod("large", spec("A", 5, "large:2:2")))
	c.create(newPod("large2", spec("A", 5, "large:2:2")))
	c.waits(large)
	c.clock.add(queue.ReservationAfter + time.Minute)
	c.delete(one)
	small := c.create(newPod("small", spec("A", 5, "small:1:1")))
	assert.Contains(t, c.waits(small), "what becomes free is held for A/large")
	urgent := c.create(newPod("urgent", spec("A", 6, "urgent:1:1")))
	c.place(urgent) // it would be before it anyway
	c.delete(urgent)
	other := c.create(newPod("other", spec("B", 5, "other:1:2")))
	c.place(other)
	c.delete(two)
	c.place(large)
}

func TestARequestThatCannotBeReadIsRefused(t *testing.T) {
	c := newCluster(t, twoTeams)
	for name, text := range map[string]string{
		"unknown-vc":      spec("C", 1, "g:1:1"),
		"high-priority":   spec("A", 1001, "g:1:1"),
		"no-gpus":         spec("A", 1, "g:1:0"),
		"hundred-on-node": spec("A", 1, "h:1:100"),
		"no-annotation":   "",
		"no-yaml":         "{{",
	} {
		t.Run(name, func(t *testing.T) {
			p := c.create(newPod(name, text))
			c.waits(p)
			c.waits(p)
			said := c.said()
			require.Len(t, said, 1)
			assert.Contains(t, said[0], "Warning Refused ")
		})
	}
}

func TestACorrectedRequestIsReadAgain(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", "virtualCluster: ["))
	c.waits(p)
	p.Annotations[annotation.SpecKey] = spec("A", 1, "g:1:1")
	_, err := c.client.CoreV1().Pods("jobs").Update(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool { node, _ := c.decide(p); return node != "" })
}

func TestAPodIsBoundToItsOwnNodeOnly(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("B", 5, "g:1:2")))
	require.ErrorContains(t, c.b.Bind(t.Context(), p.UID, "a0"), "has no place: its state is Waiting")
	node := c.place(p)
	other := "a0"
	if node == other {
		other = "a1"
	}
	require.ErrorContains(t, c.b.Bind(t.Context(), p.UID, other), "has its place on "+node+", not on "+other)
	require.ErrorContains(t, c.b.Bind(t.Context(), "stranger", node), "is gone")
	c.bind(p, node)
}

func TestABindingThatFailsKeepsThePlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	fail := true
	c.client.PrependReactor("create", "pods/binding", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fail, nil, errors.New("no storage")
	})
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	node := c.place(p)
	require.ErrorContains(t, c.b.Bind(t.Context(), p.UID, node), "bind jobs/p to "+node+": no storage")
	assert.Equal(t, api.Binding, c.state(p))
	c.clock.add(placeLimit)
	fail = false
	assert.NotEmpty(t, c.place(p), "it is known not to be bound: the place was given back and found again")
	c.bind(p, c.place(p))
}

func TestAPlaceIsKeptWhileItIsNotKnownWhetherThePodIsBound(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("B", 5, "g:1:2")))
	node := c.place(p)
	c.client.PrependReactor("create", "pods/binding", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewTimeoutError("the answer was lost", 1)
	})
	c.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the API server is away")
	})
	require.Error(t, c.b.Bind(t.Context(), p.UID, node))
	c.clock.add(2 * placeLimit)
	q := c.create(newPod("q", spec("B", 5, "h:1:2")))
	c.waits(q)
	assert.Equal(t, api.Binding, c.state(p))
}

func TestABindingWhoseAnswerWasLostIsDone(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	binding, err := c.b.binding(p.UID, c.place(p))
	require.NoError(t, err)
	for range 2 { // the second finds it bound
		known, err := c.b.post(t.Context(), binding)
		require.NoError(t, err)
		assert.True(t, known)
	}
}

func TestAPlaceThatIsNotBoundIsGivenBack(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("B", 5, "g:1:2")))
	c.place(p)
	q := c.create(newPod("q", spec("B", 9, "h:1:2")))
	c.holdDeletes()
	c.waits(q)
	assert.Equal(t, api.Preempting, c.state(q), "it may run before p, whose pod isn't gone yet")
	c.clock.add(placeLimit)
	c.place(q)
	assert.Equal(t, api.Waiting, c.state(p))
}

func TestANodeThatCannotRunAPodIsNotChosenForAWhile(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	first := c.place(p)
	_, together, has := c.b.Permit(p.UID)
	assert.True(t, together)
	assert.True(t, has)
	c.b.Refuse(p.UID, first, "Insufficient cpu")
	assert.Equal(t, []types.UID{p.UID}, c.queue.rejected)
	second := c.place(p)
	assert.NotEqual(t, first, second)
	c.b.Refuse(p.UID, first, "an answer about the place before")
	assert.Equal(t, second, c.place(p))
	for range 3 {
		node, _ := c.decide(p)
		c.b.Refuse(p.UID, node, "Insufficient memory")
	}
	c.waits(p)
	c.clock.add(refusedFor + time.Second)
	c.place(p)
}

func TestAPodRunsWhereItsLabelsAndTaintsLetIt(t *testing.T) {
	c := newCluster(t, twoTeams)
	node := readyNode("b1")
	node.Labels = map[string]string{"disk": "large"}
	_, err := c.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	tainted := readyNode("b0")
	tainted.Spec.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	_, err = c.client.CoreV1().Nodes().Update(t.Context(), tainted, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		return c.b.state.nodes["b1"].object.Labels != nil && c.b.state.nodes["b0"].object.Spec.Taints != nil
	})
	selects := func(name string, change func(*corev1.PodSpec)) *corev1.Pod {
		p := newPod(name, spec("B", 5, name+":1:1"))
		change(&p.Spec)
		return c.create(p)
	}
	large := selects("large", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "large"} })
	assert.Equal(t, "b1", c.place(large))
	none := selects("none", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "none"} })
	assert.Contains(t, c.waits(none), "non-suggested")
	for i := range 2 { // the other GPU of b1, and then none that isn't tainted
		p := c.create(newPod(fmt.Sprintf("rest%d", i), spec("B", -1, fmt.Sprintf("rest%d:4:2", i))))
		c.waits(p)
	}
	x := selects("x", func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpEqual, Value: "x"}}
		s.NodeSelector = map[string]string{"disk": "large"}
	})
	assert.Equal(t, "b1", c.place(x))
}

func TestGangsStartTogether(t *testing.T) {
	c := newCluster(t, twoTeams)
	one, two := c.create(newPod("p1", spec("A", 5, "g:2:2"))), c.create(newPod("p2", spec("A", 5, "g:2:2")))
	c.place(one)
	_, together, has := c.b.Permit(one.UID)
	assert.False(t, together, "the other one isn't ready")
	assert.True(t, has)
	c.b.Withdraw(one.UID)
	_, together, _ = c.b.Permit(two.UID)
	assert.False(t, together)
	pods, together, _ := c.b.Permit(one.UID)
	assert.True(t, together)
	assert.ElementsMatch(t, []types.UID{one.UID, two.UID}, pods)
	_, _, has = c.b.Permit("stranger")
	assert.False(t, has)
}

func TestABugEndsOneDecisionAndNoMore(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("p", spec("B", 5, "g:1:2")))
	q := c.create(newPod("q", spec("A", 5, "h:1:2")))
	c.b.mu.Lock()
	c.b.state.core = nil
	c.b.mu.Unlock()
	c.b.Decide()
	assert.Empty(t, c.state(q))
	code, _ := c.ask(http.MethodGet, "/v1/queue", nil)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	require.NoError(t, c.b.Lead(t.Context()))
	c.place(q)
	var got groups
	c.get("/v1/inspect/affinitygroups/", &got)
	assert.Len(t, got.Items, 2)
	_, metrics := c.ask(http.MethodGet, "/metrics", nil)
	assert.Contains(t, metrics, "pai_scheduler_bugs_total 1")
}

// BenchmarkDecide is the work for one pod in a cluster of 1024 nodes, without the network: seen, decided, seen to be gone.
func BenchmarkDecide(b *testing.B) {
	var yaml strings.Builder
	var names []string
	yaml.WriteString("physicalCluster:\n  cellTypes:\n    NODE: {childCellType: G, childCellNumber: 8, isNodeLevel: true}\n  physicalCells:\n")
	for i := range 1024 {
		names = append(names, fmt.Sprintf("node-%d", i))
		fmt.Fprintf(&yaml, "    - {cellType: NODE, cellAddress: node-%d}\n", i)
	}
	yaml.WriteString("virtualClusters:\n  A: {virtualCells: [{cellType: NODE, cellNumber: 1024}]}\n")
	config, findings := parseConfiguration("f", yaml.String())
	require.Empty(b, findings.Errors())
	client := fake.NewClientset()
	books := New(client, informers.NewSharedInformerFactory(client, 0), &testQueue{}, testOptions, slog.New(slog.DiscardHandler), &record.FakeRecorder{}, time.Now)
	p := newPod("p", spec("A", 5, "g:1:2"))
	s, err := books.newState(config, nil)
	require.NoError(b, err)
	for _, name := range names {
		s.reconcileNode(name, readyNode(name))
	}
	s.swept = time.Now().Add(time.Hour) // there is no informer
	books.state, books.active = s, config
	b.ReportAllocs()
	for b.Loop() {
		s.observe(p)
		books.Decide()
		if at, _ := books.Place(p.UID); at.Node == "" {
			b.Fatal(s.pods[p.UID].reason)
		}
		s.gone(p.UID)
	}
}
