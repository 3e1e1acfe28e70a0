package extender

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// holdDeletes makes a deleted pod stay, as one in its grace period does, and returns who was deleted.
func (c *cluster) holdDeletes() func() []string {
	var mu sync.Mutex
	var deleted []string
	c.client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		deleted = append(deleted, a.(clienttesting.DeleteAction).GetName())
		return true, nil, nil
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(deleted)
	}
}

func TestGuaranteedWorkReplacesOpportunisticWork(t *testing.T) {
	c := newCluster(t, twoTeams)
	for _, name := range []string{"o1", "o2", "o3", "o4"} {
		c.run(newPod(name, spec("B", -1, name+":1:2")))
	}
	p1 := c.create(newPod("p1", spec("A", 5, "g:2:2")))
	p2 := c.create(newPod("p2", spec("A", 5, "g:2:2")))
	got := c.filter(p1)
	assert.Nil(t, got.NodeNames)
	assert.Len(t, got.FailedNodes, 2, "the nodes of the victims")
	assert.Equal(t, got.FailedNodes, got.FailedAndUnresolvableNodes, "kube-scheduler needn't look for victims")
	assert.Equal(t, api.Preempting, c.state(p1))
	c.eventually(func() bool { return len(c.podNames()) == 4 }) // two victims are gone
	c.wait(p1, api.Preempting)
	c.eventually(func() bool { return len(c.filter(p1).NodeNames) == 1 })
	second := c.filter(p2)
	require.Len(t, second.NodeNames, 1)
	assert.Equal(t, "{}", c.bind(p1, c.filter(p1).NodeNames[0]))
	assert.Equal(t, "{}", c.bind(p2, second.NodeNames[0]))
	var reasons []string
	for _, e := range c.said() {
		reasons = append(reasons, strings.Fields(e)[1])
	}
	assert.Contains(t, reasons, api.ReasonPreempting)
	assert.Equal(t, 2, strings.Count(strings.Join(reasons, " "), api.ReasonPreempted+" ")+strings.Count(strings.Join(reasons, " ")+"$", api.ReasonPreempted+"$"), "%v", reasons)
	_, metrics := c.ask(http.MethodGet, "/metrics", nil)
	assert.Contains(t, metrics, `pai_scheduler_preempted_gangs_total{vc="B"} 2`)
}

func (c *cluster) podNames() []string {
	var out []string
	for _, obj := range c.e.pods.GetStore().List() {
		out = append(out, obj.(*corev1.Pod).Name)
	}
	return out
}

func TestVictimsAreNotedAndDeletedWithTheirUID(t *testing.T) {
	c := newCluster(t, twoTeams)
	o := c.run(newPod("o", spec("A", -1, "o:4:2")))
	for _, name := range []string{"o2", "o3", "o4"} {
		c.run(newPod(name, spec("A", -1, "o:4:2")))
	}
	deleted := c.holdDeletes()
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	c.filter(p)
	c.eventually(func() bool { return len(deleted()) == 4 })
	assert.ElementsMatch(t, []string{"o", "o2", "o3", "o4"}, deleted(), "the whole gang")
	conditions := c.pod(o).Status.Conditions
	require.Len(t, conditions, 1)
	assert.Equal(t, corev1.DisruptionTarget, conditions[0].Type)
	assert.Equal(t, corev1.PodReasonPreemptionByScheduler, conditions[0].Reason)
	assert.Len(t, c.filter(p).FailedNodes, 4, "as long as victims are there")
}

func TestThePreemptVerbNamesTheVictimsOfOneNode(t *testing.T) {
	c := newCluster(t, twoTeams)
	for _, name := range []string{"o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8"} {
		c.run(newPod(name, spec("B", -1, "o:8:1")))
	}
	deleted := c.holdDeletes()
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	ask := func() string {
		code, text := c.ask(http.MethodPost, "/v1/extender/preempt", map[string]any{"Pod": p, "NodeNameToMetaVictims": map[string]any{"b0": map[string]any{"Pods": []any{}}}})
		require.Equal(t, http.StatusOK, code, text)
		return text
	}
	first := ask()
	var got struct {
		NodeNameToMetaVictims map[string]struct{ Pods []struct{ UID string } }
	}
	require.NoError(t, json.Unmarshal([]byte(first), &got))
	require.Len(t, got.NodeNameToMetaVictims, 1)
	require.Len(t, got.NodeNameToMetaVictims["a0"].Pods, 2, first)
	assert.Equal(t, api.Preempting, c.state(p))
	assert.Equal(t, first, ask(), "the same until they are gone")
	c.eventually(func() bool { return len(deleted()) >= 6 })
	for _, v := range got.NodeNameToMetaVictims["a0"].Pods {
		assert.NotContains(t, deleted(), strings.TrimPrefix(v.UID, "uid-"), "kube-scheduler deletes these")
	}
}

func TestThePreemptVerbIsEmptyWhereNobodyHasToGo(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	code, text := c.ask(http.MethodPost, "/v1/extender/preempt", map[string]any{"Pod": p, "NodeNameToMetaVictims": map[string]any{}})
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "{}", text)
	c.filter(p)
	code, text = c.ask(http.MethodPost, "/v1/extender/preempt", map[string]any{"Pod": p})
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, text, "needs no victims: its state is Binding")
}

func TestTheNodeWithTheMostVictimsIsAnswered(t *testing.T) {
	victim := func(node, pod string) cell.Victim { return cell.Victim{Node: node, Pod: cell.PodID(pod)} }
	node, pods := oneNode([]cell.Victim{victim("c", "1"), victim("b", "2"), victim("b", "3"), victim("a", "4"), victim("a", "5")})
	assert.Equal(t, "a", node)
	assert.Equal(t, []metaPod{{"4"}, {"5"}}, pods)
}

func TestTheReservationOfAGangThatLeavesIsGivenBack(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("o1", spec("B", -1, "o:4:2")))
	for _, name := range []string{"o2", "o3", "o4"} {
		c.run(newPod(name, spec("B", -1, "o:4:2")))
	}
	deleted := c.holdDeletes()
	p := c.create(newPod("p", spec("A", 5, "g:2:2")))
	c.filter(p)
	c.eventually(func() bool { return len(deleted()) == 4 })
	var status struct {
		Status struct{ State string }
	}
	c.get("/v1/inspect/affinitygroups/o", &status)
	assert.Equal(t, "BeingPreempted", status.Status.State)
	c.client.Lock()
	c.client.ReactionChain = c.client.ReactionChain[1:] // deletes work again
	c.client.Unlock()
	c.delete(p)
	c.get("/v1/inspect/affinitygroups/o", &status)
	assert.Equal(t, "Allocated", status.Status.State)
	c.e.mu.Lock()
	o := c.e.state.named["jobs/o2"]
	c.e.mu.Unlock()
	obj, _ := c.e.subject(task{evict, o.uid})
	assert.Nil(t, obj, "nobody needs its cells any more")
}

func TestADowngradeIsWrittenOnThePodsThatRun(t *testing.T) {
	c := newCluster(t, twoTeams)
	lazy := "lazyPreemptionEnable: true\n"
	low := c.run(newPod("low", spec("B", 1, "low:1:2", lazy)))
	before := low.Annotations[annotation.PlacementKey]
	high := c.run(newPod("high", spec("B", 9, "high:1:2")))
	assert.NotEqual(t, low.Spec.NodeName, high.Spec.NodeName)
	c.eventually(func() bool { return c.pod(low).Annotations[annotation.PlacementKey] != before })
	assert.Contains(t, strings.Join(c.said(), "\n"), "Normal Downgraded ")
	var got group
	c.get("/v1/inspect/affinitygroups/B/low", &got)
	require.NotNil(t, got.Status.LazyPreemptionStatus)
	assert.Equal(t, c.clock.now(), got.Status.LazyPreemptionStatus.PreemptionTime)

	c.restart()
	var again group
	c.get("/v1/inspect/affinitygroups/B/low", &again)
	assert.NotNil(t, again.Status.LazyPreemptionStatus, "a restart knows")
	_, metrics := c.ask(http.MethodGet, "/metrics", nil)
	assert.Contains(t, metrics, `pai_scheduler_gangs{state="downgraded"} 1`)
}

func TestACompletedVictimFreesItsCells(t *testing.T) {
	c := newCluster(t, twoTeams)
	o := c.run(newPod("o", spec("B", 1, "o:1:2")))
	p := c.create(newPod("p", spec("B", 1, "p:1:2")))
	assert.Contains(t, c.filter(p).FailedNodes, waitKey)
	c.finish(o, corev1.PodSucceeded)
	assert.Len(t, c.filter(p).NodeNames, 1)
}

func TestATerminatingPodKeepsItsCells(t *testing.T) {
	c := newCluster(t, twoTeams)
	o := c.run(newPod("o", spec("B", 1, "o:1:2")))
	now := c.pod(o)
	now.DeletionTimestamp = &o.CreationTimestamp
	require.NoError(t, c.e.pods.GetStore().Update(now))
	c.e.podChanged("jobs/o")
	assert.Equal(t, api.Bound, c.state(o))
}

func TestAPodThatCouldStartIsTriedAgain(t *testing.T) {
	c := newCluster(t, twoTeams)
	o := c.run(newPod("o", spec("B", 1, "o:1:2")))
	p := c.create(newPod("p", spec("B", 1, "p:1:2")))
	never := c.create(newPod("never", spec("B", 1, "never:2:2")))
	c.filter(p)
	c.filter(never)
	c.clock.add(time.Second)
	c.delete(o)
	c.e.wake()
	assert.Empty(t, c.pod(p).Annotations[api.RetryAnnotation], "kube-scheduler may try by itself")
	c.clock.add(2 * time.Second)
	c.e.wake()
	c.eventually(func() bool { return c.pod(p).Annotations[api.RetryAnnotation] != "" })
	touched := c.pod(p).Annotations[api.RetryAnnotation]
	c.clock.add(2 * time.Second)
	c.e.wake()
	assert.Equal(t, touched, c.pod(p).Annotations[api.RetryAnnotation], "once")
	assert.Empty(t, c.pod(never).Annotations[api.RetryAnnotation])
}

func TestAPodThatCouldStartIsTriedAgainWithoutAnEvent(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("B", 1, "p:1:2")))
	c.e.mu.Lock()
	c.e.state.wait(c.e.state.pods[p.UID], "held back for a while")
	c.e.state.pods[p.UID].asked = c.clock.now()
	c.e.state.freed, c.e.state.woken = time.Time{}, c.clock.now()
	c.e.mu.Unlock()
	c.e.wake()
	assert.Empty(t, c.pod(p).Annotations[api.RetryAnnotation], "it was asked about just now")
	c.clock.add(wakeAnyway)
	c.e.wake()
	c.eventually(func() bool { return c.pod(p).Annotations[api.RetryAnnotation] != "" })
}
