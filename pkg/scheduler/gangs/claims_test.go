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
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// claiming makes a pod expect its GPUs in a claim.
func claiming(p *corev1.Pod) *corev1.Pod {
	claim.Expect(p, func(*corev1.Container) bool { return true })
	return p
}

func (c *cluster) claim(p *corev1.Pod) *resourceapi.ResourceClaim {
	c.t.Helper()
	name, ok := claim.Name(p)
	require.True(c.t, ok, "%s expects no claim", p.Name)
	got, err := c.client.ResourceV1().ResourceClaims(p.Namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return got
}

func (c *cluster) devices(p *corev1.Pod) string {
	c.t.Helper()
	pod, at, err := claim.Read(c.claim(p))
	require.NoError(c.t, err)
	require.Equal(c.t, p.UID, pod)
	return at.Node + ":" + annotation.Isolation(at.Indices)
}

// bindGang places the pods of a gang and binds all of them concurrently, as kube-scheduler does.
func (c *cluster) bindGang(pods ...*corev1.Pod) {
	c.t.Helper()
	var all errgroup.Group
	for _, p := range pods {
		node := c.place(p)
		all.Go(func() error { return c.b.Bind(c.t.Context(), p.UID, node) })
	}
	require.NoError(c.t, all.Wait())
	for _, p := range pods {
		c.wait(p, api.Bound)
	}
}

func TestAClaimSaysWhichGPUsAPodHas(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "g:1:2"))))
	got := c.claim(p)
	assert.True(t, claim.Of(got, p.UID))
	assert.Equal(t, []string{resourceapi.Finalizer}, got.Finalizers)
	assert.Equal(t, int64(2), got.Spec.Devices.Requests[0].Exactly.Count)
	assert.Equal(t, gpus(p), c.devices(p), "containers are told the numbers of what they have")
	require.Len(t, got.Status.ReservedFor, 1)
	assert.Equal(t, p.UID, got.Status.ReservedFor[0].UID)
	assert.NotNil(t, got.Status.Allocation.AllocationTimestamp)
	assert.Equal(t, []string{p.Spec.NodeName}, got.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values)
	assert.NotContains(t, p.Annotations, annotation.BindInfoKey)
	assert.NotContains(t, p.Annotations, annotation.PlacementKey)
}

func TestClaimsAreEnoughForARestart(t *testing.T) {
	c := newCluster(t, twoTeams)
	a := c.create(claiming(newPod("p1", spec("A", 5, "g:2:2"))))
	b := c.create(claiming(newPod("p2", spec("A", 5, "g:2:2"))))
	c.bindGang(a, b)
	c.run(claiming(newPod("o1", spec("B", -1, "o:1:1"))))
	c.run(claiming(newPod("b1", spec("B", 3, "b:1:1"))))
	var before, after groups
	var cells, cellsAfter clusterStatus
	c.get("/v1/inspect/affinitygroups/", &before)
	c.get("/v1/inspect/clusterstatus", &cells)
	c.restart()
	c.get("/v1/inspect/affinitygroups/", &after)
	c.get("/v1/inspect/clusterstatus", &cellsAfter)
	assert.Equal(t, before, after)
	assert.Equal(t, cells, cellsAfter)
	require.Len(t, after.Items, 3)
}

// A new leader must keep the place of a missing pod, because the claims of the gang's other pods contain this place.
func TestAPlaceIsKeptForAPodThatIsAwayDuringARestart(t *testing.T) {
	for name, stayed := range map[string]int{"the first is away": 1, "the second is away": 0} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, twoTeams)
			var ran []*corev1.Pod
			for _, pod := range []string{"p1", "p2"} {
				ran = append(ran, c.run(claiming(newPod(pod, spec("A", 5, "g:2:2")))))
			}
			away := ran[1-stayed]
			c.finish(away, corev1.PodFailed)
			c.restart()
			c.waits(c.create(claiming(newPod("guest", spec("A", 5, "guest:1:2")))))
			back := c.run(claiming(newPod("back", spec("A", 5, "g:2:2"))))
			assert.Equal(t, gpus(away), gpus(back), "its place was kept")
		})
	}
}

// A leader stops after it has bound one pod of a gang.
func TestAGangThatIsHalfBoundGetsTheRestOfItsPlace(t *testing.T) {
	var large strings.Builder
	var nodes []runtime.Object
	large.WriteString("physicalCluster:\n  cellTypes:\n    NODE: {childCellType: G, childCellNumber: 8, isNodeLevel: true}\n  physicalCells:\n")
	for i := range 161 {
		name := fmt.Sprintf("gpu-worker-%04d", i)
		nodes = append(nodes, readyNode(name))
		fmt.Fprintf(&large, "    - {cellType: NODE, cellAddress: %s}\n", name)
	}
	large.WriteString("virtualClusters:\n  A:\n    virtualCells: [{cellType: NODE, cellNumber: 161}]\n")
	for name, tt := range map[string]struct {
		yaml       string
		pods, gpus int
	}{
		"each claim has the places of all": {fourNodes, 3, 2},
		"each claim has its own":           {large.String(), 160, 8},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tt.yaml, nodes...)
			var pods []*corev1.Pod
			gang := fmt.Sprintf("g:%d:%d", tt.pods, tt.gpus)
			for i := range tt.pods {
				pods = append(pods, c.create(claiming(newPod(fmt.Sprintf("p%d", i), spec("A", 5, gang)))))
			}
			at := map[types.UID]string{pods[0].UID: c.place(pods[0])}
			taken := map[string]bool{}
			for _, p := range pods {
				place, ok := c.b.Place(p.UID)
				require.True(t, ok)
				at[p.UID], taken[place.Node] = place.Node, true
				obj, where, err := c.b.toClaim(p.UID, place.Node)
				require.NoError(t, err)
				require.NoError(t, c.b.writeClaim(t.Context(), obj, where))
			}
			details := c.claim(pods[0]).Status.Allocation.Devices.Config[0].Opaque.Parameters.Raw
			assert.Equal(t, tt.pods < 100, strings.Contains(string(details), `"pods"`))
			c.bindAlone(pods[0], at[pods[0].UID])
			c.restart()
			urgent := c.create(claiming(newPod("urgent", spec("A", 9, fmt.Sprintf("urgent:1:%d", tt.gpus)))))
			assert.False(t, taken[c.place(urgent)], "it comes before the gang, and doesn't get what is the gang's")
			for _, p := range pods[1:] {
				place, ok := c.b.Place(p.UID)
				require.True(t, ok, p.Name)
				assert.Equal(t, at[p.UID], place.Node)
			}
			assert.Subset(t, c.queue.activated, []string{pods[1].Name, pods[2].Name}, "kube-scheduler goes on with them")
		})
	}
}

// bindAlone binds a pod without checking the claims of its gang.
func (c *cluster) bindAlone(p *corev1.Pod, node string) {
	c.t.Helper()
	c.b.locked(func(s *state) { s.pods[p.UID].claimed = true })
	binding, err := c.b.toBind(p.UID, node, c.placeOf(p), c.number(p))
	require.NoError(c.t, err)
	_, err = c.b.post(c.t.Context(), binding)
	require.NoError(c.t, err)
	c.wait(p, api.Bound)
}

func (c *cluster) placeOf(p *corev1.Pod) claim.Place {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return c.b.state.pods[p.UID].claim()
}

func (c *cluster) number(p *corev1.Pod) uint64 {
	at, _ := c.b.Place(p.UID)
	return at.Number
}

// An allocation can't be changed, so new details are written to an annotation of the claim.
func TestAGangWithAClaimThatLostItsGuaranteeHasNoneAfterARestart(t *testing.T) {
	c := newCluster(t, twoTeams) // B owns one node
	lazy := c.run(claiming(newPod("lazy", spec("B", 1, "lazy:1:2", "lazyPreemptionEnable: true\n"))))
	high := c.run(claiming(newPod("high", spec("B", 5, "high:1:2"))))
	assert.Equal(t, api.Bound, c.state(lazy))
	assert.Equal(t, api.Bound, c.state(high))
	same := func() {
		t.Helper()
		var before, after clusterStatus
		c.get("/v1/inspect/clusterstatus", &before)
		c.restart()
		c.get("/v1/inspect/clusterstatus", &after)
		assert.Equal(t, before, after)
	}
	c.eventually(func() bool { return c.claim(lazy).Annotations[claim.DetailsKey] != "" })
	same()
	c.finish(high, corev1.PodFailed)
	c.run(claiming(newPod("third", spec("B", 1, "third:1:2"))))
	same()
}

// The author of a pod may have written its annotations.
func TestAnnotationsOfAPodWithAClaimAreNotBelieved(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	victim := c.run(claiming(newPod("v", spec("A", 5, "v:1:2"))))
	forged := c.pod(p)
	forged.Annotations[annotation.IsolationKey] = "0,1"
	forged.Annotations[annotation.BindInfoKey] = "node: " + victim.Spec.NodeName + "\nleafCellIsolation: [0,1]\ncellChain: RACK\n"
	_, err := c.client.CoreV1().Pods("jobs").Update(t.Context(), forged, metav1.UpdateOptions{})
	require.NoError(t, err)
	at, of := c.devices(p), c.devices(victim)
	c.restart()
	for _, pod := range []*corev1.Pod{p, victim} {
		assert.Equal(t, api.Bound, c.state(pod), pod.Name)
	}
	assert.Equal(t, at, c.devices(p))
	assert.Equal(t, of, c.devices(victim))
	w := c.create(claiming(newPod("w", spec("A", 5, "w:1:2"))))
	c.waits(w) // three of four GPUs are taken, regardless of the annotations
}

// A pod whose claim was deleted may still use GPUs.
func TestWhatAPodWithoutItsClaimMayUseIsGivenToNoOne(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	require.NoError(t, c.client.ResourceV1().ResourceClaims("jobs").Delete(t.Context(), c.claim(p).Name, metav1.DeleteOptions{}))
	c.restart()
	assert.Equal(t, api.Ignored, c.state(p))
	c.hears("Warning NotManaged no claim says which GPUs it has; until it ends no cell of " + p.Spec.NodeName + " is allocated to others")
	q := c.run(claiming(newPod("q", spec("A", 5, "q:1:2"))))
	assert.NotEqual(t, p.Spec.NodeName, q.Spec.NodeName)
}

// Any user can create a claim that contains GPUs. It has no effect unless the scheduler created the claim for its pod.
func TestAClaimOfAnotherSaysNothing(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:2"))))
	forged := c.claim(p).DeepCopy()
	forged.Name, forged.OwnerReferences, forged.ResourceVersion, forged.UID = "forged", nil, "", ""
	forged.Status.Allocation.Devices.Results[0].Pool, forged.Status.Allocation.Devices.Results[1].Pool = "b0", "b0"
	_, err := c.client.ResourceV1().ResourceClaims("jobs").Create(t.Context(), forged, metav1.CreateOptions{})
	require.NoError(t, err)
	at := c.devices(p)
	c.restart()
	assert.Equal(t, api.Bound, c.state(p))
	assert.Equal(t, at, c.devices(p))
}

// Removing the claim of a finished pod takes some time. Another pod with the same name must not wait for the removal.
func TestAPodOfTheSameNameHasAClaimOfItsOwn(t *testing.T) {
	c := newCluster(t, twoTeams)
	first := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	was := c.claim(first)
	c.delete(first)
	again := claiming(newPod("p", spec("A", 5, "p:1:1")))
	again.UID = "uid-again"
	again = c.run(again)
	assert.NotEqual(t, was.Name, c.claim(again).Name)
	assert.Equal(t, gpus(again), c.devices(again))
	c.restart()
	assert.Equal(t, api.Bound, c.state(again))
}

// A user who may create claims has created the claim that a pod expects.
func TestAClaimThatIsInTheWayKeepsItsPodWaitingAndOthersGetItsPlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(claiming(newPod("p", spec("A", 5, "p:1:2"))))
	name, _ := claim.Name(p)
	_, err := c.client.ResourceV1().ResourceClaims("jobs").Create(t.Context(), &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "jobs"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node := c.place(p)
	require.ErrorContains(t, c.b.Bind(t.Context(), p.UID, node), "the claim jobs/"+name+", which p expects, was created by someone else")
	assert.Empty(t, c.pod(p).Spec.NodeName)
	c.hears("was created by someone else")
	_, metrics := c.ask(http.MethodGet, "/metrics", nil)
	assert.Contains(t, metrics, `pai_scheduler_bindings_total{result="error"} 1`)

	other := c.create(claiming(newPod("other", spec("A", 5, "other:2:2"))))
	c.create(claiming(newPod("other2", spec("A", 5, "other:2:2"))))
	c.waits(other)
	c.clock.add(placeLimit)
	c.place(other)
	assert.Contains(t, c.waits(p), "was created by someone else")
}

func TestAClaimThatIsBeingDeletedIsGivenUp(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	node := c.place(p)
	made := claim.New(p, 1)
	now := metav1.Now()
	made.DeletionTimestamp = &now
	made.Status = claim.Status(p, claim.Place{Node: node, Indices: []int32{0}, Details: []byte(`{}`)}, now)
	require.NoError(t, c.client.Tracker().Add(made))
	require.ErrorContains(t, c.b.Bind(t.Context(), p.UID, node), "is being deleted")
	left := c.claim(p)
	assert.Empty(t, left.Status.ReservedFor, "what holds it is gone")
	require.NoError(t, c.client.Tracker().Delete(resourceapi.SchemeGroupVersion.WithResource("resourceclaims"), "jobs", left.Name))
	c.bind(p, node)
	c.wait(p, api.Bound)
}

// The API server has bound a pod, but its response was lost, and the scheduler released the place.
func TestAPodThatIsBoundAfterAllHasWhatItsClaimSays(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	node := c.place(p)
	obj, at, err := c.b.toClaim(p.UID, node)
	require.NoError(t, err)
	require.NoError(t, c.b.writeClaim(t.Context(), obj, at))
	require.NoError(t, c.b.gather(t.Context(), p.UID, at))
	c.b.locked(func(s *state) { s.takeBack(s.pods[p.UID].gang, "it wasn't bound") })
	bound := c.pod(p).DeepCopy()
	bound.Spec.NodeName = node
	require.NoError(t, c.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), bound, "jobs"))
	c.wait(p, api.Bound)
	assert.Empty(t, c.state(&corev1.Pod{}))
	q := c.run(claiming(newPod("q", spec("A", 5, "q:1:1"))))
	assert.NotEqual(t, c.devices(p), c.devices(q))
}

// The former leader allocated the pod's claim and requested its binding, which takes effect late. By then, the new leader may
// have given the pod a different place.
func TestAPodThatTheLeaderBeforeHasBoundHasWhatItsClaimSays(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	node, at := c.place(p), c.placeOf(p)
	other := map[int32]int32{0: 1, 1: 0}[at.Indices[0]]
	made, err := c.client.ResourceV1().ResourceClaims("jobs").Create(t.Context(), claim.New(p, 1), metav1.CreateOptions{})
	require.NoError(t, err)
	details := strings.Replace(string(at.Details), fmt.Sprintf("%q,%d", node, at.Indices[0]), fmt.Sprintf("%q,%d", node, other), 1)
	made.Status = claim.Status(p, claim.Place{Node: node, Indices: []int32{other}, Details: []byte(details)}, metav1.Now())
	_, err = c.client.ResourceV1().ResourceClaims("jobs").UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.restart()
	require.Equal(t, node, c.place(p))
	require.Equal(t, at.Indices, c.placeOf(p).Indices, "it has other GPUs of the node than its claim says")

	bound := c.pod(p).DeepCopy()
	bound.Spec.NodeName = node
	require.NoError(t, c.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), bound, "jobs"))
	c.wait(p, api.Bound)
	assert.Equal(t, []int32{other}, c.placeOf(p).Indices)
	err = c.b.writeClaim(t.Context(), p, at)
	require.ErrorContains(t, err, "now has another placement", "a request that was under way changes nothing")
	assert.Equal(t, fmt.Sprintf("%s:%d", node, other), c.devices(p))
}

func TestNoPodIsBoundBeforeTheClaimsOfItsGangAreWritten(t *testing.T) {
	c := newCluster(t, twoTeams)
	a := c.create(claiming(newPod("p1", spec("A", 5, "g:2:2"))))
	b := c.create(claiming(newPod("p2", spec("A", 5, "g:2:2"))))
	nodes := []string{c.place(a), c.place(b)}
	first := make(chan error, 1)
	go func() { first <- c.b.Bind(t.Context(), a.UID, nodes[0]) }()
	c.eventually(func() bool {
		list, err := c.client.ResourceV1().ResourceClaims("jobs").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].Status.Allocation != nil
	})
	select {
	case err := <-first:
		require.Fail(t, "it went on alone", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	assert.Empty(t, c.pod(a).Spec.NodeName)
	c.bind(b, nodes[1])
	require.NoError(t, <-first)
	c.wait(a, api.Bound)
	c.wait(b, api.Bound)
}

// A gang was started before its pods had claims. Recreated pods have claims.
func TestAPodWithoutAClaimWaitsForTheClaimsOfItsGang(t *testing.T) {
	c := newCluster(t, twoTeams)
	plain := c.create(newPod("p1", spec("A", 5, "g:2:2")))
	b := c.create(claiming(newPod("p2", spec("A", 5, "g:2:2"))))
	nodes := []string{c.place(plain), c.place(b)}
	first := make(chan error, 1)
	go func() { first <- c.b.Bind(t.Context(), plain.UID, nodes[0]) }()
	select {
	case err := <-first:
		require.Fail(t, "it went on alone", "%v", err)
	case <-time.After(100 * time.Millisecond):
	}
	assert.Empty(t, c.pod(plain).Spec.NodeName)
	c.bind(b, nodes[1])
	require.NoError(t, <-first)
	c.wait(plain, api.Bound)
	c.wait(b, api.Bound)
}

// The pod's gang lost its place while the pod waited, and then got a place on the same node again.
func TestAPodWithoutAClaimThatHasANewPlaceWaitsAgain(t *testing.T) {
	c := newCluster(t, twoTeams)
	plain := c.create(newPod("p1", spec("A", 5, "g:2:2")))
	b := c.create(claiming(newPod("p2", spec("A", 5, "g:2:2"))))
	node := c.place(plain)
	c.place(b)
	first := make(chan error, 1)
	go func() { first <- c.b.Bind(t.Context(), plain.UID, node) }()
	c.eventually(func() (waits bool) {
		c.b.locked(func(s *state) { waits = s.pods[plain.UID].wrote })
		return waits
	})
	c.b.mu.Lock()
	s := c.b.state
	s.takeBack(s.pods[b.UID].gang, "it wasn't bound")
	s.try(s.pods[plain.UID].gang)
	now, ok := s.places.get(plain.UID)
	c.b.mu.Unlock()
	require.True(t, ok)
	require.Equal(t, node, now.Node)
	require.ErrorContains(t, <-first, "has lost its placement in the meantime")
	assert.Empty(t, c.pod(plain).Spec.NodeName)
}

// Other pods have waited for the claim of the pod.
func TestAPodThatSomeoneElseBindsKeepsItsGangFromWaiting(t *testing.T) {
	c := newCluster(t, twoTeams)
	a := c.create(claiming(newPod("p1", spec("A", 5, "g:2:2"))))
	b := c.create(claiming(newPod("p2", spec("A", 5, "g:2:2"))))
	node := c.place(a)
	at := c.place(b)
	first := make(chan error, 1)
	go func() { first <- c.b.Bind(t.Context(), a.UID, node) }()
	c.eventually(func() (claimed bool) {
		c.b.locked(func(s *state) { claimed = s.pods[a.UID].claimed })
		return claimed
	})
	bound := c.pod(b).DeepCopy()
	bound.Spec.NodeName = at
	require.NoError(t, c.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), bound, "jobs"))
	require.NoError(t, <-first)
}

func TestAGangIsBoundWithoutAPodThatGoesMeanwhile(t *testing.T) {
	c := newCluster(t, twoTeams)
	a := c.create(claiming(newPod("p1", spec("A", 5, "g:2:2"))))
	b := c.create(claiming(newPod("p2", spec("A", 5, "g:2:2"))))
	node := c.place(a)
	c.place(b)
	first := make(chan error, 1)
	go func() { first <- c.b.Bind(t.Context(), a.UID, node) }()
	c.eventually(func() bool {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		return c.b.state.pods[a.UID].claimed
	})
	c.delete(b)
	require.NoError(t, <-first)
}

// The place was released after the claim was written and before the pod was bound.
func TestAClaimIsFilledAnewWithAnotherPlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	node := c.place(p)
	other := "a0"
	if node == other {
		other = "a1"
	}
	made, err := c.client.ResourceV1().ResourceClaims("jobs").Create(t.Context(), claim.New(p, 1), metav1.CreateOptions{})
	require.NoError(t, err)
	made.Status = claim.Status(p, claim.Place{Node: other, Indices: []int32{1}, Details: []byte(`{}`)}, metav1.Now())
	_, err = c.client.ResourceV1().ResourceClaims("jobs").UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.bind(p, node)
	c.wait(p, api.Bound)
	assert.Equal(t, gpus(c.pod(p)), c.devices(p))
}

// Details on a claim apply only to the pod of this claim, and not to a later claim with the same name.
func TestDetailsAreWrittenToThePodsOwnClaimOnly(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	w, details := c.b.work, map[string]string{claim.DetailsKey: "{}"}
	uid := c.claim(p).UID
	c.client.PrependReactor("patch", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		assert.Contains(t, string(action.(clienttesting.PatchAction).GetPatch()), `"uid":"`+string(uid)+`"`)
		return false, nil, nil
	})
	require.NoError(t, w.patch(t.Context(), p, details))
	assert.Equal(t, "{}", c.claim(p).Annotations[claim.DetailsKey])
	other := c.claim(p).DeepCopy()
	other.OwnerReferences[0].UID, other.Annotations = "another", nil
	_, err := c.client.ResourceV1().ResourceClaims("jobs").Update(t.Context(), other, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, w.patch(t.Context(), p, details))
	assert.Empty(t, c.claim(p).Annotations, "it is another's")
}

func TestAClaimThatAsksForAnotherNumberOfGPUsIsNotFilled(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(claiming(newPod("p", spec("A", 5, "p:1:2"))))
	_, err := c.client.ResourceV1().ResourceClaims("jobs").Create(t.Context(), claim.New(p, 1), metav1.CreateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, c.b.Bind(t.Context(), p.UID, c.place(p)), "requests 1 GPUs, but p has 2")
	assert.Nil(t, c.claim(p).Status.Allocation)
}

// The pod's gang lost its place while the pod waited for the claims of other pods, and then got the same place again.
func TestAPodThatHasItsPlaceAgainWaitsForTheClaimsOfItsGangAgain(t *testing.T) {
	c := newCluster(t, twoTeams)
	a := c.create(claiming(newPod("p1", spec("A", 5, "g:2:2"))))
	b := c.create(claiming(newPod("p2", spec("A", 5, "g:2:2"))))
	node := c.place(a)
	c.place(b)
	at := c.placeOf(a)
	gathered := make(chan error, 1)
	go func() { gathered <- c.b.gather(t.Context(), a.UID, at) }()
	c.eventually(func() (claimed bool) {
		c.b.locked(func(s *state) {
			p := s.pods[a.UID]
			if claimed = p.claimed; claimed {
				p.claimError = "earlier"
				s.takeBack(p.gang, "it wasn't bound")
			}
		})
		return claimed
	})
	require.NoError(t, <-gathered)
	c.place(b)
	require.Equal(t, node, c.place(a))
	_, err := c.b.toBind(a.UID, node, c.placeOf(a), c.number(a))
	require.ErrorContains(t, err, "has lost its placement in the meantime")

	at.Indices = []int32{7}
	require.NoError(t, c.b.gather(t.Context(), a.UID, at))
	c.b.locked(func(s *state) { assert.False(t, s.pods[a.UID].claimed) })
}

func TestWhyAClaimCouldNotBeWrittenIsForgottenOnceItIs(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	node := c.place(p)
	c.b.unclaimed(p, errors.New("the API server is unavailable"))
	c.bind(p, node)
	c.b.locked(func(s *state) { assert.Empty(t, s.pods[p.UID].claimError) })
}

// If the claims of a gang are written slowly one after the other, the gang continues to wait.
func TestAGangWaitsForItsClaimsAsLongAsOneIsWrittenNowAndThen(t *testing.T) {
	c := newCluster(t, fourNodes)
	var pods []*corev1.Pod
	for i := range 3 {
		pods = append(pods, c.create(claiming(newPod(fmt.Sprintf("p%d", i), spec("A", 5, "g:3:2")))))
	}
	c.place(pods[0])
	done := make(chan error, 3)
	gather := func(i int) {
		at := c.placeOf(pods[i])
		go func() { done <- c.b.gather(t.Context(), pods[i].UID, at) }()
		c.eventually(func() (claimed bool) {
			c.b.locked(func(s *state) { claimed = s.pods[pods[i].UID].claimed })
			return claimed
		})
	}
	gather(0)
	c.clock.add(gatherLimit - time.Second)
	gather(1)
	c.clock.add(gatherLimit - time.Second)
	c.b.locked(func(s *state) { assert.True(t, s.pods[pods[0].UID].gathers(s.now()), "one was written meanwhile") })
	c.b.Withdraw(pods[1].UID)
	gather(1) // a second write for the same pod isn't progress
	c.clock.add(time.Second)
	for range 3 {
		require.ErrorContains(t, <-done, "the claims of other pods of its gang could not be written")
	}

	c.clock.add(placeLimit - 2*gatherLimit)
	c.b.Decide()
	assert.Equal(t, api.Binding, c.state(pods[2]), "its gang was being bound")
	c.clock.add(2 * gatherLimit)
	c.b.Decide()
	assert.Equal(t, api.Waiting, c.state(pods[2]))
}
