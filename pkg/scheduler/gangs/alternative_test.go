package gangs

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// orGPUs returns a request for CPU cells, with a share of GPUs as the alternative. gang and gpus have the format
// GANG:PODS:CELLS.
func orGPUs(vc string, priority int, gang, gpus string) string {
	part := strings.Split(gpus, ":")
	return onCPU(spec(vc, priority, gang)) + "orElse:\n  leafCellNumber: " + part[2] + "\n  affinityGroup:\n    name: " + part[0] +
		"\n    members: [{podNumber: " + part[1] + ", leafCellNumber: " + part[2] + "}]\n"
}

func prep(name, request string) *corev1.Pod { return noGPU(newPod(name, request), "2", "64Mi") }

func TestTasksWithoutGPUsTakeGPUsIfNoCPUCellsAreFree(t *testing.T) {
	c := newCluster(t, withCPUs)
	c.run(prep("full", onCPU(spec("A", 5, "full:1:4"))))
	p := c.run(prep("p", orGPUs("A", 5, "p:1:2", "p:1:1")))
	assert.Contains(t, []string{"a0", "a1"}, p.Spec.NodeName)
	assert.NotEmpty(t, p.Annotations[annotation.IsolationKey], "the share is written down like that of other tasks")

	for range 2 {
		var why api.Why
		c.get("/v1/why/A/p", &why)
		assert.Equal(t, "it has 1 GPU on 1 node", why.Sentence)
		assert.Equal(t, api.Request{ShareOfGPUs: 1, ShareReason: "no CPU cells were free where it may run", MilliCPU: 2000, MemoryMB: 64}, why.Asks)
		var vcs api.VirtualClusters
		c.get(api.PathVirtualClusters, &vcs)
		assert.Equal(t, []int{2, 1, 4}, []int{vcs.Items[0].Guaranteed, vcs.Items[0].Used, vcs.Items[0].CPU.Used}, "A owns what it owned")

		c.start(testOptions) // a new leader, which reads only annotations
		require.NoError(t, c.b.Lead(t.Context()))
		c.wait(p, api.Bound)
	}
}

func TestTasksWithoutGPUsRunOnCPUCellsIfTheyCan(t *testing.T) {
	c := newCluster(t, withCPUs)
	p := c.run(prep("p", orGPUs("A", 5, "p:1:2", "p:1:1")))
	assert.Contains(t, []string{"b0", "b1"}, p.Spec.NodeName)
	assert.NotContains(t, p.Annotations, annotation.IsolationKey)
	c.start(testOptions)
	require.NoError(t, c.b.Lead(t.Context()))
	c.wait(p, api.Bound)
	var why api.Why
	c.get("/v1/why/A/p", &why)
	assert.Equal(t, "it has 2 CPU cells on 1 node", why.Sentence)
}

// The task must run on the machine with its storage, even if another machine has no GPUs.
func TestATaskWhoseStorageIsOnAMachineWithGPUsRunsThere(t *testing.T) {
	c := newCluster(t, withCPUs)
	p := c.create(prep("p", orGPUs("A", 5, "p:1:2", "p:1:1")))
	var at string
	for range 4 { // only kube-scheduler checks volumes
		if at = c.place(p); at == "a1" {
			break
		}
		c.b.Refuse(p.UID, at, "node(s) had volume node affinity conflict")
	}
	assert.Equal(t, "a1", at)
	c.bind(p, at)
	c.wait(p, api.Bound)
}

func TestATaskThatALabelKeepsFromCPUCellsRunsOnGPUs(t *testing.T) {
	c := newCluster(t, withCPUs)
	node := readyNode("a1")
	node.Labels = map[string]string{"disk": "large"}
	_, err := c.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		return c.b.state.nodes["a1"].object.Labels != nil
	})
	selecting := func(name, request string) *corev1.Pod {
		p := prep(name, request)
		p.Spec.NodeSelector = map[string]string{"disk": "large"}
		return p
	}
	assert.Equal(t, "a1", c.run(selecting("p", orGPUs("A", 5, "p:1:2", "p:1:2"))).Spec.NodeName)

	q := c.create(selecting("q", orGPUs("A", 5, "q:2:2", "q:2:1")))
	c.create(selecting("q1", orGPUs("A", 5, "q:2:2", "q:2:1")))
	c.waits(q)
	var why api.Why
	c.get("/v1/why/A/q", &why)
	assert.NotContains(t, why.Sentence, "would start now", "a smaller one may not go where CPU cells are free either")
	assert.Nil(t, why.Explanation.Smaller)
}

func TestATaskWithoutGPUsIsToldOfBoth(t *testing.T) {
	c := newCluster(t, withCPUs)
	cpu := c.run(prep("cpu", onCPU(spec("A", 5, "cpu:1:4"))))
	gpu := c.run(newPod("gpu", spec("A", 5, "gpu:1:2")))
	p := c.create(prep("p", orGPUs("A", 5, "p:1:2", "p:1:1")))
	const both = "insufficient capacity: virtual cluster A has 0 CPU cells for priority 5, the gang requests 2; instead of CPU cells it may take 1 GPU: insufficient capacity: virtual cluster A has 0 GPUs for priority 5, the gang requests 1"
	assert.Equal(t, both, c.waits(p))
	var why api.Why
	c.get("/v1/why/A/p", &why)
	assert.Equal(t, "Virtual cluster A has 0 of 4 CPU cells free for jobs of priority 5, but the gang requests 2."+
		" Instead of CPU cells it may take 1 GPU: Virtual cluster A has 0 of 2 GPUs free for jobs of priority 5, but the gang requests 1.", why.Sentence)
	assert.Equal(t, api.Request{CPUCells: 2, OrShareOfGPUs: 1, MilliCPU: 2000, MemoryMB: 64}, why.Asks)
	require.NotNil(t, why.Alternative)
	assert.Equal(t, cell.NoCapacity, why.Alternative.Code)
	assert.Equal(t, []cell.Holder{{VC: "A", Gang: "gpu", Priority: 5, GPUs: 2}}, why.Alternative.Holders)

	c.delete(gpu)
	assert.Contains(t, []string{"a0", "a1"}, c.place(p), "the first that becomes free")
	c.delete(p)
	c.run(newPod("gpu2", spec("A", 5, "gpu2:1:2")))
	p = c.create(prep("p2", orGPUs("A", 5, "p2:1:2", "p2:1:1")))
	c.waits(p)
	c.delete(cpu)
	assert.Contains(t, []string{"b0", "b1"}, c.place(p))
}

// If the operator reserves the machines with GPUs, tasks without GPUs wait only for CPU cells.
func TestMachinesWithGPUsCanBeReserved(t *testing.T) {
	c := newCluster(t, withCPUs+"reserveGPUMachines: true\n")
	c.run(prep("full", onCPU(spec("A", 5, "full:1:4"))))
	p := c.create(prep("p", orGPUs("A", 5, "p:1:2", "p:1:1")))
	assert.Equal(t, "insufficient capacity: virtual cluster A has 0 CPU cells for priority 5, the gang requests 2", c.waits(p))
	var why api.Why
	c.get("/v1/why/A/p", &why)
	assert.Nil(t, why.Alternative)
	assert.Zero(t, why.Asks.OrShareOfGPUs)

	_, virtual, _ := strings.Cut(withCPUs, "virtualClusters:")
	code, text := c.ask(http.MethodPost, api.PathValidate, "virtualClusters:"+strings.Replace(virtual, ", {cellType: CPU-NODE, cellNumber: 1}", "", 1))
	require.Equal(t, http.StatusOK, code, text)
	assert.Contains(t, text, `"group":"p","effect":"refused"`, "a change of virtual clusters alone keeps the setting")

	c.reconfigure(withCPUs)
	assert.Contains(t, []string{"a0", "a1"}, c.place(p), "once it isn't set any more, what waits starts")
}

func TestAChangeRefusesOnlyWhatHasNoOtherCells(t *testing.T) {
	c := newCluster(t, withCPUs)
	c.run(prep("full", onCPU(spec("A", 5, "full:1:4"))))
	c.run(newPod("gpu", spec("A", 5, "gpu:1:2")))
	c.create(prep("p", orGPUs("A", 5, "p:1:2", "p:1:1")))
	c.create(prep("q", onCPU(spec("A", 5, "q:1:2"))))
	code, text := c.ask(http.MethodPost, api.PathValidate, strings.Replace(withCPUs, ", {cellType: CPU-NODE, cellNumber: 1}", "", 1))
	require.Equal(t, http.StatusOK, code, text)
	assert.Contains(t, text, `"group":"q","effect":"refused"`)
	assert.NotContains(t, text, `"group":"p","effect":"refused"`)
}

// Tasks without GPUs can't keep the processors of a machine from gangs that own its GPUs.
func TestGuaranteedGPUsReplaceOpportunisticTasksWithoutGPUs(t *testing.T) {
	c := newCluster(t, withCPUs)
	c.run(prep("cpu", onCPU(spec("A", -1, "cpu:2:4"))))
	c.run(prep("cpu2", onCPU(spec("A", -1, "cpu:2:4"))))
	for _, name := range []string{"o0", "o1"} {
		assert.Contains(t, []string{"a0", "a1"}, c.run(prep(name, orGPUs("A", -1, name+":1:4", name+":1:2"))).Spec.NodeName)
	}
	deleted := c.holdDeletes()
	p := c.create(newPod("p", spec("B", 0, "p:1:2")))
	assert.Contains(t, c.waits(p), "A/o")
	c.eventually(func() bool { return len(deleted()) == 1 })
}

// A gang starts on free cells before it preempts another gang, as with several types of GPUs.
func TestNothingEndsForCPUCellsIfGPUsAreFree(t *testing.T) {
	c := newCluster(t, withCPUs)
	c.run(prep("o0", onCPU(spec("B", -1, "o0:1:4"))))
	c.run(prep("o1", onCPU(spec("B", -1, "o1:1:4"))))
	deleted := c.holdDeletes()
	p := c.create(prep("p", orGPUs("A", 5, "p:1:2", "p:1:1")))
	assert.Contains(t, []string{"a0", "a1"}, c.place(p))
	assert.Empty(t, deleted())
}

// Pods that are created later use the request of the cells that their gang has or reserves.
func TestAllPodsOfAGangTakeTheSame(t *testing.T) {
	c := newCluster(t, withCPUs)
	full := c.run(prep("full", onCPU(spec("A", 5, "full:1:4"))))
	c.run(newPod("o0", spec("B", -1, "o0:1:2")))
	c.run(newPod("o1", spec("B", -1, "o1:1:2")))
	p0 := c.create(prep("p0", orGPUs("A", 5, "p:2:2", "p:2:1")))
	c.decide(p0)
	assert.Equal(t, api.Preempting, c.state(p0))
	p1 := c.create(prep("p1", orGPUs("A", 5, "p:2:2", "p:2:1")))
	c.delete(full) // its CPU cells would now be enough, but the gang has reserved GPUs
	c.eventually(func() bool { node, _ := c.decide(p0); return node != "" })
	c.bind(p0, c.place(p0))
	c.bind(p1, c.place(p1))
	c.wait(p0, api.Bound)
	c.wait(p1, api.Bound)
	assert.Contains(t, []string{"a0", "a1"}, c.pod(p1).Spec.NodeName)

	c.delete(p1)
	again := c.create(prep("p2", orGPUs("A", 5, "p:2:2", "p:2:1")))
	assert.Contains(t, []string{"a0", "a1"}, c.place(again), "where its gang is")
}

// A missing node also has a taint, and its cells count as bad.
func TestADeadNodeLeavesTheOfferOfASmallerGang(t *testing.T) {
	c := newCluster(t, withCPUs)
	node := readyNode("a1")
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	node.Status.Conditions = nil
	_, err := c.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		return !c.b.state.nodes["a1"].healthy
	})
	c.run(prep("some", onCPU(spec("A", 5, "some:1:3"))))
	p := c.create(prep("p", onCPU(spec("A", 5, "p:2:1"))))
	c.create(prep("p1", onCPU(spec("A", 5, "p:2:1"))))
	c.waits(p)
	var why api.Why
	c.get("/v1/why/A/p", &why)
	assert.Contains(t, why.Sentence, "1 pod of 1 CPU cell would start now.")
}
