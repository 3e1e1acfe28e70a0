package gangs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

func (c *cluster) ready(name string, is bool) {
	n := readyNode(name)
	if !is {
		n.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	_, err := c.client.CoreV1().Nodes().Update(c.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(c.t, err)
	c.eventually(func() bool {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		return c.b.state.nodes[name].healthy == is
	})
}

// A gang that has found other cells doesn't need its victim. The victim must not be evicted for a gang that is only on trial.
func TestNothingEndsForAGangThatHasOtherCellsByNow(t *testing.T) {
	yaml, nodes, _ := rackYAML(2)
	c := newCluster(t, yaml, nodes...)
	o := map[string]*corev1.Pod{}
	for _, name := range []string{"o0", "o1"} {
		p := c.run(newPod(name, spec("A", -1, name+":1:2")))
		o[p.Spec.NodeName] = p
	}
	c.holdDeletes()
	c.b.mu.Lock()
	c.b.state.todo = func(task) {} // the API server is slow, so tasks wait in the queue
	c.b.mu.Unlock()
	g := c.create(newPod("g", spec("A", 5, "g:1:2")))
	c.waits(g)
	require.Equal(t, api.Preempting, c.state(g))
	c.b.mu.Lock()
	first := c.b.state.core.VictimsOf("A", "g")[0].Node
	c.b.mu.Unlock()
	c.ready(first, false) // only for a moment
	c.waits(g)
	require.Equal(t, api.Preempting, c.state(g))
	c.ready(first, true)
	h := c.create(own(newPod("h", spec("A", 5, "h:1:2"))))
	c.b.Decide()
	require.Equal(t, first, c.onTrial(h), c.reason(h))
	require.Equal(t, api.Preempting, c.state(g))
	obj, _ := c.b.subject(task{evict, o[first].UID}) // the worker executes the old task only now
	assert.Nil(t, obj, "it is ended for h, which is only on trial; g, for which it was to end, has other cells")
}

func TestMetricsOfBooksThatAreMadeAgain(t *testing.T) {
	c := newBenchCluster(t, 1, 8) // 16 gangs wait
	var gangs []*gang
	for _, g := range c.b.state.gangs {
		gangs = append(gangs, g)
	}
	s, err := c.b.newState(c.b.active, nil, nil)
	require.NoError(t, err)
	c.b.state = s // no gang waits any longer
	got := map[string]float64{}
	c.b.collectQueue(func(d *prometheus.Desc, v float64, labels ...string) { got[d.String()+fmt.Sprint(labels)] = v }, gangs, c.b.active.cells)
	for d, v := range got {
		assert.Zero(t, v, d)
	}
}

func TestAConfigurationWithoutCellsWhilePodsRun(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(newPod("p", spec("A", 5, "g:1:2")))
	const empty = "physicalCluster: {}\nvirtualClusters: {A: {}}\n"
	config, findings := parseConfiguration("c", empty)
	require.Empty(t, findings.Errors(), "it is refused")
	assert.NotPanics(t, func() {
		c.b.mu.Lock()
		defer c.b.unlock()
		c.b.applyConfig(empty)
	}, "the informer's goroutine: the program ends")
	assert.NotPanics(t, func() {
		_, _ = c.b.newState(config, []*corev1.Pod{p}, nil)
	}, "and each time that it starts again")
}

// If a pod is deleted with --cascade=orphan, Kubernetes' garbage collector removes the owner from the pod's claim.
func TestAClaimWithoutItsOwnerIsStillThePods(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	got := c.claim(p).DeepCopy()
	got.OwnerReferences = nil
	require.NoError(t, c.client.Tracker().Update(resourceapi.SchemeGroupVersion.WithResource("resourceclaims"), got, "jobs"))
	c.checkClaims()
	assert.Equal(t, api.Bound, c.state(p))
	c.restart()
	var vcs api.VirtualClusters
	c.get("/v1/virtualclusters", &vcs)
	assert.Equal(t, api.Bound, c.state(p), "it has its GPU by its claim, which only the scheduler can have filled")
	assert.Equal(t, 1, vcs.Items[0].Used, "quota of A")
	t.Log(strings.Join(c.said(), "\n"))
	q := c.create(claiming(newPod("q", spec("A", 5, "q:2:1"))))
	c.create(claiming(newPod("q2", spec("A", 5, "q:2:1"))))
	r := c.create(claiming(newPod("r", spec("A", 5, "r:1:1"))))
	c.place(q)
	c.place(r) // A owns four GPUs, and one is used
}

func TestAPlaceIsGivenBackThoughTheOutcomeOfItsBindingWasLost(t *testing.T) {
	for _, claims := range []bool{true, false} {
		t.Run(fmt.Sprintf("claims %t", claims), func(t *testing.T) {
			c := newCluster(t, twoTeams)
			away := true
			c.client.PrependReactor("create", "pods/binding", func(clienttesting.Action) (bool, runtime.Object, error) {
				return away, nil, context.DeadlineExceeded
			})
			c.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return away, nil, context.DeadlineExceeded
			})
			pod := newPod("p", spec("B", 5, "p:1:2"))
			if claims {
				claiming(pod)
			}
			p := c.create(pod)
			node := c.place(p)
			require.Error(t, c.b.Bind(t.Context(), p.UID, node))
			c.b.Withdraw(p.UID)
			away = false
			assert.Empty(t, c.pod(p).Spec.NodeName, "it isn't bound")
			// kube-scheduler retries while the node is cordoned or short of memory.
			given := false
			for range 50 {
				c.b.Refuse(p.UID, node, "the node is not ready")
				given = given || c.state(p) == api.Waiting
				c.clock.add(time.Hour)
				c.b.Decide()
				time.Sleep(2 * time.Millisecond)
				given = given || c.state(p) == api.Waiting
			}
			assert.True(t, given, "for two days it is to run on %s, which can't run it, and no one else gets its GPUs", node)
		})
	}
}

// During a rollback of API servers, some of them may not support claims.
func TestAnAPIServerThatKnowsNoClaimsIsNotBelieved(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	c.client.PrependReactor("list", "resourceclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}, "")
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	claims, err := c.b.listClaims(ctx, nil)
	assert.Error(t, err, "this cluster has claims: its informer follows them; found %d", len(claims))
	assert.Equal(t, api.Bound, c.state(p))
}

func TestAPodWithMoreGPUsThanAClaimCanHaveIsRefused(t *testing.T) {
	yaml := `physicalCluster:
  cellTypes:
    HALF: {childCellType: G, childCellNumber: 20}
    NODE: {childCellType: HALF, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: a0}
virtualClusters:
  A:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
`
	c := newCluster(t, yaml)
	p := c.create(claiming(newPod("p", "version: v2\nvirtualCluster: A\npriority: 5\ncellType: HALF\ncellNumber: 2\n")))
	node, reason := c.decide(p)
	assert.Empty(t, node, "a claim can't have %d devices: it gets and loses its place for ever", len(c.placeOf(p).Indices))
	assert.Contains(t, reason, "can't have more than 32")
}

func TestAVictimHasItsOwnGracePeriodUpToADay(t *testing.T) {
	for own, want := range map[int64]*int64{0: nil, 30: nil, maxGrace: nil, maxGrace + 1: new(maxGrace), 1 << 40: new(maxGrace)} {
		c := newCluster(t, twoTeams)
		p := newPod("p", spec("A", 5, "p:1:1"))
		p.Spec.TerminationGracePeriodSeconds = &own
		p = c.run(p)
		var got []*int64
		c.client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			got = append(got, a.(clienttesting.DeleteAction).GetDeleteOptions().GracePeriodSeconds)
			return true, nil, nil
		})
		require.NoError(t, c.b.work.evict(t.Context(), p, "another gang"))
		assert.Equal(t, []*int64{want}, got, "%d seconds", own)
	}
}
