package gangs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

// swapped is twoTeams with swapped cells: B owns the rack and A owns the node.
var swapped = strings.NewReplacer("  A:", "  B:", "  B:", "  A:").Replace(twoTeams)

func TestAChangeOfTheConfigurationTakesEffectAtOnce(t *testing.T) {
	c := newCluster(t, twoTeams)
	first := c.run(newPod("p1", spec("A", 5, "g1:2:2")))
	c.run(newPod("p2", spec("A", 5, "g1:2:2")))
	w := c.create(newPod("w", spec("B", 5, "w:2:2")))
	assert.NotEmpty(t, c.waits(w), "B owns one node")
	c.reconfigure(swapped)
	var got api.VirtualClusters
	c.get("/v1/virtualclusters", &got)
	assert.Equal(t, int64(2), got.Generation)
	assert.Equal(t, 4, got.Items[1].Guaranteed)
	c.eventually(func() bool {
		return strings.Contains(c.pod(first).Annotations[annotation.PlacementKey], "true") // the gang is downgraded
	})
	assert.Equal(t, api.Bound, c.state(first), "it keeps running")
	c.hears("Downgraded", "ConfigurationApplied")
	c.place(w) // the other rack is free
}

func TestAWrongConfigurationIsRefusedAndTheLastOneStays(t *testing.T) {
	for name, tt := range map[string]struct{ yaml, want string }{
		"no YAML":                   {"virtualClusters: [", "hivedscheduler.yaml:1"},
		"more cells than there are": {strings.Replace(twoTeams, "cellType: RACK, cellNumber: 1", "cellType: RACK, cellNumber: 3", 1), "virtualClusters"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, twoTeams)
			c.run(newPod("p", spec("A", 5, "g:1:2")))
			c.said()
			c.reconfigure(tt.yaml)
			var got api.VirtualClusters
			c.get("/v1/virtualclusters", &got)
			assert.Contains(t, got.Problem, tt.want)
			assert.Equal(t, int64(1), got.Generation)
			assert.Equal(t, 2, got.Items[0].Used)
			c.hears("Warning ConfigurationRefused ")
			_, metrics := c.ask(http.MethodGet, "/metrics", nil)
			assert.Contains(t, metrics, "pai_scheduler_config_valid 0")
			c.reconfigure(twoTeams)
			c.eventually(func() bool {
				var now api.VirtualClusters
				c.get("/v1/virtualclusters", &now)
				return now.Problem == ""
			})
		})
	}
}

func TestAConfigMapThatIsDeletedChangesNothing(t *testing.T) {
	c := newCluster(t, twoTeams)
	require.NoError(t, c.client.CoreV1().ConfigMaps("pai-system").Delete(t.Context(), "scheduler-configuration", metav1.DeleteOptions{}))
	c.eventually(func() bool { return c.b.configObject() == nil })
	assert.NotEmpty(t, c.run(newPod("p", spec("A", 5, "g:1:2"))).Spec.NodeName)
}

func TestADryRunSaysWhatAChangeWouldDo(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("p1", spec("A", 5, "g1:2:2")))
	c.run(newPod("p2", spec("A", 5, "g1:2:2")))
	c.create(newPod("w", spec("A", 5, "w:1:2")))
	validate := func(text string) api.Validation {
		t.Helper()
		code, answer := c.ask(http.MethodPost, api.PathValidate, text)
		require.Equal(t, http.StatusOK, code, answer)
		var out api.Validation
		require.NoError(t, json.Unmarshal([]byte(answer), &out))
		return out
	}
	same := validate(twoTeams)
	assert.Equal(t, api.Validation{Valid: true}, same)

	_, division, _ := strings.Cut(swapped, "virtualClusters:")
	onlyVCs := "virtualClusters:" + division
	for name, text := range map[string]string{"whole": swapped, "virtual clusters alone": onlyVCs} {
		got := validate(text)
		require.True(t, got.Valid, "%s: %+v", name, got.Problems)
		require.Len(t, got.Changes, 1, name)
		assert.Equal(t, api.Downgraded, got.Changes[0].Effect)
		assert.Equal(t, "g1", got.Changes[0].Group)
		assert.Equal(t, []string{"jobs/p1", "jobs/p2"}, got.Changes[0].Pods)
		assert.Equal(t, 4, got.Changes[0].GPUs)
		require.Len(t, got.VirtualClusters, 2)
		assert.Equal(t, 4, got.VirtualClusters[0].Before.Guaranteed)
		assert.Equal(t, 2, got.VirtualClusters[0].After.Guaranteed)
	}

	gone := validate("virtualClusters:\n  B:\n    virtualCells: [{cellType: RACK.NODE, cellNumber: 1}]\n")
	require.True(t, gone.Valid)
	var effects []string
	for _, change := range gone.Changes {
		effects = append(effects, change.Group+" "+change.Effect)
	}
	assert.ElementsMatch(t, []string{"g1 downgraded", "w refused"}, effects)
	require.Len(t, gone.VirtualClusters, 1)
	assert.Nil(t, gone.VirtualClusters[0].After)

	wrong := validate("virtualClusters:\n  B:\n    virtualCells: [{cellType: RACKET, cellNumber: 1}]\n")
	assert.False(t, wrong.Valid)
	require.NotEmpty(t, wrong.Problems)
	assert.Equal(t, 3, wrong.Problems[0].Line, "%+v", wrong.Problems)
	assert.False(t, validate("a: [").Valid)

	var after groups
	c.get("/v1/inspect/affinitygroups/", &after)
	require.Len(t, after.Items, 1)
	assert.Nil(t, after.Items[0].Status.LazyPreemptionStatus, "nothing was changed")
	var vcs api.VirtualClusters
	c.get("/v1/virtualclusters", &vcs)
	assert.Equal(t, int64(1), vcs.Generation)
}

func TestANodeThatGoesBadIsAvoidedUntilItIsGood(t *testing.T) {
	c := newCluster(t, twoTeams)
	nodes := c.client.CoreV1().Nodes()
	health := func(name string) string {
		var got api.Nodes
		c.get("/v1/nodes", &got)
		for _, n := range got.Items {
			if n.Name == name {
				return fmt.Sprintf("%v %s", n.Healthy, n.Reason)
			}
		}
		return "unknown"
	}
	assert.Equal(t, "true ", health("b0"))
	node := readyNode("b0")
	node.Spec.Unschedulable = true
	_, err := nodes.Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool { return health("b0") == "false the node is cordoned" })
	node = readyNode("b1")
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	_, err = nodes.Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool { return health("b1") == "false the node isn't ready" })
	c.run(newPod("p1", spec("A", 5, "g:2:2")))
	c.run(newPod("p2", spec("A", 5, "g:2:2")))
	w := c.create(newPod("w", spec("B", 5, "w:1:2")))
	c.waits(w)
	require.NoError(t, nodes.Delete(t.Context(), "b1", metav1.DeleteOptions{}))
	c.eventually(func() bool { return health("b1") == "false Kubernetes has no such node" })
	_, err = nodes.Update(t.Context(), readyNode("b0"), metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool { return health("b0") == "true " })
	assert.Equal(t, "b0", c.place(w))
}

func TestOnlyTheGPUsThatANodeReallyHasAreUsed(t *testing.T) {
	c := newCluster(t, twoTeams)
	tell := func(name, text string) {
		t.Helper()
		node := readyNode(name)
		node.Annotations = map[string]string{api.DevicesAnnotation: text}
		_, err := c.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	report := func(name string) api.Node {
		var got api.Nodes
		c.get("/v1/nodes", &got)
		for _, n := range got.Items {
			if n.Name == name {
				return n
			}
		}
		return api.Node{}
	}
	tell("a0", `{"devices":[{"index":0,"healthy":true,"model":"G"},{"index":7,"healthy":true}]}`)
	tell("a1", `{"devices":[{"index":0,"healthy":false,"reason":"XID 79: gone"},{"index":1,"healthy":true}]}`)
	tell("b0", `{"devices":`)
	tell("b1", `{"devices":[{"index":0,"healthy":true},{"index":1,"healthy":true}]}`)
	c.eventually(func() bool { return report("b1").Reported })
	c.eventually(func() bool { return report("a0").Reported && report("a1").Reported && report("b0").Problem != "" })
	assert.Equal(t, []int32{1}, report("a0").Missing)
	assert.Equal(t, []int32{7}, report("a0").Unexpected)
	assert.Equal(t, []int32{0}, report("a1").Unhealthy)
	assert.Empty(t, report("b0").Missing, "what can't be read changes nothing")
	c.hears("Warning DifferentGPUs GPUs [1] of the configuration are missing; GPUs [7] are not in the configuration and not used",
		"Warning DifferentGPUs GPUs [0] are not healthy; GPU 0: XID 79: gone", "can't be read")
	_, metrics := c.ask(http.MethodGet, "/metrics", nil)
	assert.Contains(t, metrics, `pai_scheduler_node_gpus_different{kind="missing",node="a0"} 1`)
	assert.Contains(t, metrics, "pai_scheduler_bad_gpus 2")
	for range 2 {
		c.run(newPod(fmt.Sprintf("p%d", c.n), spec("A", 5, fmt.Sprintf("g%d:1:2", c.n))))
	}
	pods, err := c.client.CoreV1().Pods("jobs").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range pods.Items {
		assert.Contains(t, []string{"b0", "b1"}, pods.Items[i].Spec.NodeName)
	}

	// Pods that wait for these pods get the problem as their reason.
	for i := range pods.Items {
		c.delete(&pods.Items[i])
	}
	c.run(newPod("other", spec("B", 5, "other:1:2")))
	c.waits(c.create(newPod("waits1", spec("A", 5, "waits:2:2"))))
	c.waits(c.create(newPod("waits2", spec("A", 5, "waits:2:2"))))
	var why api.Why
	c.get("/v1/why/A/waits", &why)
	assert.Equal(t, "BadNodes", why.Explanation.Code)
	assert.Contains(t, why.Sentence, "a0: GPUs [1] of the configuration are missing; GPUs [7] are not in the configuration and not used; a1: GPU 0: XID 79: gone.")
}
