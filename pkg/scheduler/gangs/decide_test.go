package gangs

import (
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
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
	c.bind(p, node) // a second binding changes nothing
	_, has := c.b.Place(p.UID)
	assert.False(t, has, "kube-scheduler has nothing to do for it any more")
}

func TestAGangLiesTogetherAndItsSecondPodFindsItsPlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	one := c.run(newPod("p1", spec("A", 5, "g:2:2")))
	two := c.run(newPod("p2", spec("A", 5, "g:2:2")))
	assert.ElementsMatch(t, []string{"a0:0,1", "a1:0,1"}, []string{gpus(one), gpus(two)})
	third := c.create(newPod("p3", spec("A", 5, "g:2:2")))
	assert.Contains(t, c.waits(third), "all 2 of its pods exist")
}

func TestAGangWaitsForItsPods(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.b.mu.Lock()
	c.b.state.grace = gangGrace
	c.b.mu.Unlock()
	one := c.create(newPod("p1", spec("A", 5, "g:2:2")))
	assert.Equal(t, "1 of 2 pods of the gang exist", c.waits(one))
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
	said := c.hears("Normal WaitingCells ")
	assert.NotContains(t, said, "\n", "one event for one reason")
	assert.Empty(t, c.said())
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
	c.create(over) // it comes before the other gangs, but its quota never allows it to start
	large := c.create(newPod("large", spec("A", 5, "large:2:2")))
	c.create(newPod("large2", spec("A", 5, "large:2:2")))
	c.waits(large)
	c.clock.add(queue.ReservationAfter + time.Minute)
	c.delete(one)
	small := c.create(newPod("small", spec("A", 5, "small:1:1")))
	const held = "free cells of virtual cluster A are reserved for "
	assert.Contains(t, c.waits(small), held+"large, which has waited for more than 24h")
	var why api.Why
	c.get("/v1/why/A/small", &why)
	assert.Contains(t, why.Sentence, held+"large")
	c.get("/v1/why/A/large", &why)
	assert.Contains(t, why.Sentence, held+"it")
	var order api.Queue
	c.get("/v1/queue?vc=A", &order)
	for _, q := range order.Items {
		assert.Equal(t, q.Group == "large", q.HoldsFree, q.Group)
		assert.Equal(t, q.Group == "large", strings.Contains(q.Reason, held+"it"), q.Reason)
	}
	urgent := c.create(newPod("urgent", spec("A", 6, "urgent:1:1")))
	c.place(urgent) // it would come before the large gang anyway
	c.delete(urgent)
	other := c.create(newPod("other", spec("B", 5, "other:1:2")))
	c.place(other)
	c.delete(two)
	c.place(large)
}

// lasting returns a pod with a time limit in seconds.
func lasting(p *corev1.Pod, seconds int64) *corev1.Pod {
	p.Spec.ActiveDeadlineSeconds = &seconds
	return p
}

func TestWhatIsKnownToEndInTimeStartsWhileTheRestIsHeld(t *testing.T) {
	c := newCluster(t, twoTeams)
	one := c.run(newPod("one", spec("A", 5, "one:1:2")))
	two := c.run(lasting(newPod("two", spec("A", 5, "two:1:2")), int64((queue.ReservationAfter + time.Hour).Seconds())))
	now := metav1.NewTime(c.clock.now())
	two.Status.StartTime = &now
	_, err := c.client.CoreV1().Pods("jobs").UpdateStatus(t.Context(), two, metav1.UpdateOptions{})
	require.NoError(t, err)
	large := c.create(newPod("large", spec("A", 5, "large:2:2")))
	c.create(newPod("large2", spec("A", 5, "large:2:2")))
	c.waits(large)
	c.clock.add(queue.ReservationAfter + time.Minute)
	c.delete(one)
	long := c.create(lasting(newPod("long", spec("A", 5, "long:1:1")), 3600))
	unknown := c.create(newPod("unknown", spec("A", 5, "unknown:1:1")))
	short := c.create(lasting(newPod("short", spec("A", 5, "short:1:1")), 1800))
	c.place(short)
	assert.Contains(t, c.waits(long), "are reserved for large")
	assert.Contains(t, c.waits(unknown), "are reserved for large")
}

func TestVirtualClustersHaveTheirShareOfTheScheduler(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("full1", spec("A", 9, "full1:1:2")))
	c.run(newPod("full2", spec("A", 9, "full2:1:2")))
	c.b.share = 1      // enough for one search in each pass
	for i := range 4 { // no two of these gangs are equivalent, and none finds a place
		p := newPod(fmt.Sprintf("a%d", i), spec("A", 5, fmt.Sprintf("a%d:1:2", i)))
		p.Labels = map[string]string{api.UserLabel: p.Name}
		c.create(p)
	}
	b := c.create(newPod("b", spec("B", 5, "b:1:1")))
	searched := func() (n int) {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		for _, g := range c.b.state.gangs {
			if g.waiting() > 0 && g.searched > 0 {
				n++
			}
		}
		return n
	}
	c.b.Decide()
	_, ok := c.b.Place(b.UID)
	assert.True(t, ok, "the gangs of A don't keep it waiting")
	assert.Equal(t, 1, searched())
	c.b.mu.Lock()
	c.b.state.epoch++ // changes happen all the time
	c.b.mu.Unlock()
	c.b.Decide()
	assert.Equal(t, 2, searched(), "it goes on with the next, not with the first again")
	c.b.Decide()
	c.b.Decide()
	assert.Equal(t, 4, searched())
}

// While many gangs of one virtual cluster are tried, gangs of another virtual cluster must start without delay.
func TestALongRoundOfOneVirtualClusterKeepsNoOtherWaiting(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("full1", spec("A", 9, "full1:1:2")))
	c.run(newPod("full2", spec("A", 9, "full2:1:2")))
	has := c.run(newPod("has", spec("B", 5, "has:1:2")))
	b := c.create(newPod("b", spec("B", 5, "b:1:2")))
	c.waits(b)
	c.b.share = 1
	for i := range 20 {
		p := newPod(fmt.Sprintf("a%d", i), spec("A", 5, fmt.Sprintf("a%d:1:2", i)))
		p.Labels = map[string]string{api.UserLabel: p.Name}
		c.create(p)
	}
	c.b.Decide()
	c.delete(has)
	c.b.Decide()
	_, ok := c.b.Place(b.UID)
	assert.True(t, ok)
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
			said := c.hears("Warning Refused ")
			assert.NotContains(t, said, "\n", "it is said once")
			assert.Empty(t, c.said())
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
	require.ErrorContains(t, c.b.Bind(t.Context(), p.UID, "a0"), "has no placement: its state is Waiting")
	node := c.place(p)
	other := "a0"
	if node == other {
		other = "a1"
	}
	require.ErrorContains(t, c.b.Bind(t.Context(), p.UID, other), "is placed on "+node+", not on "+other)
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
	assert.Contains(t, c.waits(p), "kube-scheduler didn't bind jobs/p to "+node+" within 2m0s; it gets a new placement at", "others may have it now")
	c.clock.add(firstPause)
	assert.NotEmpty(t, c.place(p), "it is known not to be bound: the place was given back and found again")
	c.bind(p, c.place(p))
}

func TestAPlaceIsReleasedAtOnceIfTheAPIServerRefusesThePod(t *testing.T) {
	jobs := schema.GroupResource{Resource: "pods"}
	for name, tt := range map[string]struct {
		refusal error
		claims  bool
	}{
		"a policy":        {apierrors.NewForbidden(jobs, "p", errors.New("a policy denies it")), false},
		"a webhook":       {apierrors.NewBadRequest("admission webhook \"x\" denied the request: a policy denies it"), false},
		"invalid":         {apierrors.NewInvalid(schema.GroupKind{Kind: "Binding"}, "p", field.ErrorList{field.Forbidden(field.NewPath("target"), "a policy denies it")}), false},
		"of its claim":    {apierrors.NewForbidden(jobs, "p", errors.New("a policy denies it")), true},
		"not for forever": {errors.New("a policy denies it"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, twoTeams)
			refuse := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tt.refusal }
			one, two := newPod("p", spec("B", 5, "g:1:2")), newPod("q", spec("B", 5, "h:1:2"))
			if tt.claims {
				one = claiming(one)
				c.client.PrependReactor("*", "resourceclaims", refuse)
			}
			c.client.PrependReactor("create", "pods/binding", refuse)
			p := c.create(one)
			node := c.place(p)
			q := c.create(two)
			c.waits(q)
			require.ErrorContains(t, c.b.Bind(t.Context(), p.UID, node), "a policy denies it")
			if name == "not for forever" {
				assert.Equal(t, api.Binding, c.state(p), "the next try may succeed")
				return
			}
			assert.Equal(t, node, c.place(q), "without any time that passes")
			assert.Contains(t, c.waits(p), "a policy denies it")
		})
	}
}

func TestAPlaceIsKeptWhileItIsNotKnownWhetherThePodIsBound(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("B", 5, "g:1:2")))
	node := c.place(p)
	c.client.PrependReactor("create", "pods/binding", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewTimeoutError("the answer was lost", 1)
	})
	c.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the API server is unavailable")
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
	node := c.place(p)
	binding, err := c.b.toBind(p.UID, node, claim.Place{}, c.number(p))
	require.NoError(t, err)
	for range 2 { // the second attempt finds that the pod is already bound
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
	assert.Contains(t, c.waits(none), "doesn't suggest")
	for i := range 2 { // the first gets the other GPU of b1, and the second finds only nodes with a taint
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

func TestARoundIsFollowedByAnotherIfSomethingHasChangedMeanwhile(t *testing.T) {
	c := newCluster(t, twoTeams)
	of := turn{"A", true}
	c.b.locked(func(s *state) {
		s.round[of] = 1
		assert.True(t, s.ended(&queue.Queue{}, &pass{epoch: 2, looked: map[turn]int{of: 1}}), "it began before the change")
		s.round[of] = 2
		assert.False(t, s.ended(&queue.Queue{}, &pass{epoch: 2, looked: map[turn]int{of: 1}}))
	})
}

func TestAPodThatIsNotBoundPausesAlone(t *testing.T) {
	t.Run("in a gang that runs", func(t *testing.T) {
		c := newCluster(t, twoTeams)
		var ran []*corev1.Pod
		for i := range 3 {
			ran = append(ran, c.run(newPod(fmt.Sprintf("p%d", i), spec("A", 5, "g:3:1"))))
		}
		c.finish(ran[1], corev1.PodFailed)
		c.finish(ran[2], corev1.PodFailed)
		first := c.create(newPod("first", spec("A", 5, "g:3:1")))
		c.place(first)
		c.clock.add(placeLimit)
		assert.Contains(t, c.waits(first), "it gets a new placement at")
		c.run(newPod("second", spec("A", 5, "g:3:1")))
		assert.Equal(t, api.Waiting, c.state(first))
		c.clock.add(firstPause)
		c.place(first)
	})
	t.Run("and not gangs that are like its own", func(t *testing.T) {
		c := newCluster(t, twoTeams)
		p := c.create(newPod("p", spec("A", 5, "p:1:2")))
		c.place(p)
		c.clock.add(placeLimit)
		c.waits(p)
		c.place(c.create(newPod("like", spec("A", 5, "like:1:2"))))
	})
}

func TestWhatIsHeldForAGangIsHeldWhileItPauses(t *testing.T) {
	c := newCluster(t, twoTeams)
	one, two := c.run(newPod("one", spec("A", 5, "one:1:2"))), c.run(newPod("two", spec("A", 5, "two:1:2")))
	large := c.create(newPod("large", spec("A", 5, "large:2:2")))
	c.create(newPod("large2", spec("A", 5, "large:2:2")))
	c.waits(large)
	c.clock.add(queue.ReservationAfter + time.Minute)
	c.delete(one)
	c.delete(two)
	pause := firstPause
	for i := range mostHeld + 1 {
		c.place(large)
		c.clock.add(placeLimit)
		assert.Contains(t, c.waits(large), "it gets a new placement at")
		if i == mostHeld {
			break
		}
		small := c.create(newPod(fmt.Sprintf("small%d", i), spec("A", 5, fmt.Sprintf("small%d:1:1", i))))
		assert.Contains(t, c.waits(small), "are reserved for large")
		c.delete(small)
		c.clock.add(pause)
		pause *= 2
	}
	c.place(c.create(newPod("other", spec("A", 5, "other:1:1")))) // cells aren't held forever for a gang whose binding fails
}

func TestNothingIsHeldForAGangThatTheAPIServerRefuses(t *testing.T) {
	c := newCluster(t, twoTeams)
	one, two := c.run(newPod("one", spec("A", 5, "one:1:2"))), c.run(newPod("two", spec("A", 5, "two:1:2")))
	large := c.create(newPod("large", spec("A", 5, "large:2:2")))
	c.create(newPod("large2", spec("A", 5, "large:2:2")))
	c.waits(large)
	c.clock.add(queue.ReservationAfter + time.Minute)
	c.delete(one)
	c.delete(two)
	node := c.place(large)
	c.client.PrependReactor("create", "pods/binding", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "large", errors.New("a policy denies it"))
	})
	require.ErrorContains(t, c.b.Bind(t.Context(), large.UID, node), "a policy denies it")
	c.waits(large)
	c.place(c.create(newPod("small", spec("A", 5, "small:1:1"))))
}

func TestAPlaceThatKubernetesMayKnowIsNotTakenBack(t *testing.T) {
	c := newCluster(t, twoTeams)
	p, q := c.create(newPod("p", spec("A", 5, "g:2:2"))), c.create(newPod("q", spec("A", 5, "g:2:2")))
	node := c.place(p)
	_, err := c.b.toBind(p.UID, node, claim.Place{}, c.number(p))
	require.NoError(t, err)
	c.b.locked(func(s *state) {
		assert.Equal(t, []types.UID{q.UID}, s.takeBack(s.pods[q.UID].gang, "its node can't run it"))
	})
	assert.Equal(t, api.Binding, c.state(p), "it may be bound by now")
	assert.Equal(t, api.Waiting, c.state(q))
}
