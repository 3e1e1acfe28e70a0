package gangs

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// The informer doesn't repeat events. Events that arrive between the list response and the creation of the state must not be
// lost.
func TestWhatHappensWhileALeaderListsPodsIsKnown(t *testing.T) {
	c := newCluster(t, twoTeams)
	ended := c.run(newPod("ended", spec("B", 1, "ended:1:2")))
	c.start(testOptions) // another replica has become the leader
	between := newPod("between", spec("A", 1, "between:1:2"))
	var listed bool
	if c.b.claims != nil { // the initial list of claims could still be in progress
		require.True(t, cache.WaitForCacheSync(t.Context().Done(), c.b.claims.HasSynced))
	}
	c.client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if listed {
			return false, nil, nil
		}
		listed = true
		gvr := action.GetResource()
		list, err := c.client.Tracker().List(gvr, corev1.SchemeGroupVersion.WithKind("Pod"), "")
		require.NoError(t, err)
		require.NoError(t, c.client.Tracker().Create(gvr, between, between.Namespace))
		done := ended.DeepCopy()
		done.Status.Phase = corev1.PodSucceeded
		require.NoError(t, c.client.Tracker().Update(gvr, done, done.Namespace))
		c.eventually(func() bool {
			p := c.b.podObject("jobs/ended")
			return c.b.podObject("jobs/between") != nil && p != nil && completed(p)
		})
		return true, list, nil
	})
	require.NoError(t, c.b.Lead(t.Context()))
	for range 3 {
		c.clock.add(2 * sweepEvery)
		c.b.Decide()
	}
	require.Equal(t, api.Binding, c.state(between), "it was made while pods were listed")
	next := c.create(newPod("next", spec("B", 1, "next:1:2")))
	c.place(next)
}
