package gangs

import (
	"errors"
	"net/http"
	"strings"
	"testing"

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
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// checkClaims makes the Store check claims often enough to accept the result.
func (c *cluster) checkClaims() {
	c.t.Helper()
	for range 2 {
		c.clock.add(claimsEvery)
		c.b.Decide()
	}
}

func TestAClaimThatIsLostUnderARunningPodIsWrittenAgain(t *testing.T) {
	for name, lose := range map[string]func(*cluster, *resourceapi.ResourceClaim) error{
		"deleted": func(c *cluster, was *resourceapi.ResourceClaim) error {
			return c.client.ResourceV1().ResourceClaims("jobs").Delete(c.t.Context(), was.Name, metav1.DeleteOptions{})
		},
		"emptied": func(c *cluster, was *resourceapi.ResourceClaim) error {
			was.Status = resourceapi.ResourceClaimStatus{}
			_, err := c.client.ResourceV1().ResourceClaims("jobs").UpdateStatus(c.t.Context(), was, metav1.UpdateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, twoTeams)
			p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
			at, was := c.devices(p), c.claim(p)
			c.eventually(func() bool {
				seen := c.b.claimObject("jobs/" + was.Name)
				return seen != nil && seen.Status.Allocation != nil
			})
			require.NoError(t, lose(c, was.DeepCopy()))
			c.eventually(func() bool {
				seen := c.b.claimObject("jobs/" + was.Name)
				return seen == nil || seen.Status.Allocation == nil
			})
			c.checkClaims()
			c.eventually(func() bool {
				list, err := c.client.ResourceV1().ResourceClaims("jobs").List(t.Context(), metav1.ListOptions{})
				return err == nil && len(list.Items) == 1 && list.Items[0].Status.Allocation != nil
			})
			assert.Equal(t, at, c.devices(p))
			c.hears("Warning ClaimLost its claim ")
			_, metrics := c.ask(http.MethodGet, "/metrics", nil)
			assert.Contains(t, metrics, "pai_scheduler_lost_claims_total 1")
			c.restart()
			assert.Equal(t, api.Bound, c.state(p))
		})
	}
}

// Kubernetes removes the claims of finished pods. The informer of claims may report the removal first.
func TestTheClaimOfAPodThatHasEndedIsNotWrittenAgain(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	was := c.claim(p).Name
	require.NoError(t, c.client.ResourceV1().ResourceClaims("jobs").Delete(t.Context(), was, metav1.DeleteOptions{}))
	var known *pod
	c.b.locked(func(s *state) { known = s.pods[p.UID] })
	c.finish(p, corev1.PodSucceeded)
	c.b.locked(func(s *state) { s.pods[p.UID] = known; known.state = api.Bound }) // the state doesn't know yet that the pod has ended
	require.NoError(t, c.b.reclaim(t.Context(), p.UID))
	c.b.locked(func(s *state) { delete(s.pods, p.UID) })
	list, err := c.client.ResourceV1().ResourceClaims("jobs").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, list.Items)
}

func TestNobodyGetsANodeWhereAClaimContradictsTheBooks(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	forged := c.claim(p).DeepCopy()
	device := &forged.Status.Allocation.Devices.Results[0].Device
	*device = map[string]string{"gpu-0": "gpu-1", "gpu-1": "gpu-0"}[*device]
	_, err := c.client.ResourceV1().ResourceClaims("jobs").UpdateStatus(t.Context(), forged, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool {
		seen := c.b.claimObject("jobs/" + forged.Name)
		return seen != nil && seen.Status.Allocation != nil && seen.Status.Allocation.Devices.Results[0].Device == *device
	})
	c.checkClaims()
	c.wait(p, api.Ignored)
	c.hears("no cell of " + p.Spec.NodeName + " is allocated to others")
	q := c.run(claiming(newPod("q", spec("A", 5, "q:1:1"))))
	assert.NotEqual(t, p.Spec.NodeName, q.Spec.NodeName)

	// Only this leader's memory contains the allocated GPUs.
	c.eventually(func() bool { return c.claim(p).Annotations[claim.DoubtKey] != "" })
	c.restart()
	c.wait(p, api.Ignored)
	c.hears("but it was allocated")
	for _, name := range []string{"r", "s", "t", "u"} {
		node, _ := c.decide(c.create(claiming(newPod(name, spec("A", 5, name+":1:1")))))
		assert.NotEqual(t, p.Spec.NodeName, node)
	}
}

func TestALostClaimIsToldOnceHoweverLongItTakesToWriteItAgain(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	claims := c.client.ResourceV1().ResourceClaims("jobs")
	away := true
	c.client.PrependReactor("create", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away, nil, errors.New("etcd is unavailable")
	})
	for i, lost := range []string{"pai_scheduler_lost_claims_total 1", "pai_scheduler_lost_claims_total 2"} {
		require.NoError(t, claims.Delete(t.Context(), c.claim(p).Name, metav1.DeleteOptions{}))
		away = true
		c.said()
		for range 3 {
			require.ErrorContains(t, c.b.reclaim(t.Context(), p.UID), "etcd is unavailable")
		}
		said := c.hears("Warning ClaimLost", "etcd is unavailable")
		assert.Equal(t, 1, strings.Count(said, "Warning ClaimLost"), "%d: %s", i, said) // also the second time
		assert.Equal(t, 1, strings.Count(said, "etcd is unavailable"), "%d: %s", i, said)
		_, metrics := c.ask(http.MethodGet, "/metrics", nil)
		assert.Contains(t, metrics, lost)
		assert.NotContains(t, metrics, `pai_scheduler_bindings_total{result="error"}`)
		away = false
		require.NoError(t, c.b.reclaim(t.Context(), p.UID))
	}
}

// Another pod with a place on the node could get the GPUs of the pod whose claim was changed.
func TestNothingIsBoundToANodeThatAContradictionHasClosed(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	q := c.create(claiming(newPod("q", spec("A", 5, "q:1:1"))))
	node := c.place(q)
	require.Equal(t, p.Spec.NodeName, node)
	c.contradict(p)
	require.NoError(t, c.b.reclaim(t.Context(), p.UID))
	c.wait(p, api.Ignored)
	require.Error(t, c.b.Bind(t.Context(), q.UID, node))
	assert.Contains(t, c.queue.rejected, q.UID)
	assert.NotEqual(t, node, c.place(q))
}

func TestAContradictionIsWrittenAlsoWhereSomeoneElseWritesAtTheSameTime(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	first := true
	c.client.PrependReactor("patch", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		was := first
		first = false
		return was, nil, apierrors.NewConflict(schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}, "c", errors.New("the object has been modified"))
	})
	c.contradict(p)
	require.NoError(t, c.b.reclaim(t.Context(), p.UID))
	c.eventually(func() bool { return c.claim(p).Annotations[claim.DoubtKey] != "" })
}

// The agent uses only its own devices on a claim, even if the claim also contains other devices.
func TestDevicesOfOtherDriversHideNoContradiction(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(claiming(newPod("p", spec("A", 5, "p:1:1"))))
	forged := c.claim(p).DeepCopy()
	forged.Status.Allocation.Devices.Results = append(forged.Status.Allocation.Devices.Results,
		resourceapi.DeviceRequestAllocationResult{Request: "nic", Driver: "nic.example.org", Pool: "p", Device: "nic0"})
	_, err := c.client.ResourceV1().ResourceClaims("jobs").UpdateStatus(t.Context(), forged, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.b.reclaim(t.Context(), p.UID))
	assert.Equal(t, api.Bound, c.state(p), "its GPUs are the same")
	c.contradict(p)
	require.NoError(t, c.b.reclaim(t.Context(), p.UID))
	c.wait(p, api.Ignored)
}

// contradict changes the claim of a pod with one of a node's two GPUs to the other GPU.
func (c *cluster) contradict(p *corev1.Pod) {
	c.t.Helper()
	forged := c.claim(p).DeepCopy()
	device := &forged.Status.Allocation.Devices.Results[0].Device
	*device = map[string]string{"gpu-0": "gpu-1", "gpu-1": "gpu-0"}[*device]
	_, err := c.client.ResourceV1().ResourceClaims("jobs").UpdateStatus(c.t.Context(), forged, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}
