package gangs

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// withCPUs is a configuration of two nodes with two GPUs each and two nodes with four CPU cells each. A owns GPUs and CPU
// cells. B owns only GPUs.
const withCPUs = `physicalCluster:
  skuTypes: {CPU: {cpu: 1}}
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: true}
    CPU-NODE: {childCellType: CPU, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: a0}
    - {cellType: NODE, cellAddress: a1}
    - {cellType: CPU-NODE, cellAddress: b0}
    - {cellType: CPU-NODE, cellAddress: b1}
virtualClusters:
  A: {virtualCells: [{cellType: NODE, cellNumber: 1}, {cellType: CPU-NODE, cellNumber: 1}]}
  B: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
`

// noGPU changes a pod so that it sees no GPU, and sets limits for processors and memory.
func noGPU(p *corev1.Pod, cpu, memory string) *corev1.Pod {
	c := &p.Spec.Containers[0]
	c.Env = []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "none"}}
	c.Resources.Limits[corev1.ResourceCPU], c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(cpu), resource.MustParse(memory)
	return p
}

func onCPU(text string) string {
	return strings.ReplaceAll(text, "leafCellType: G", "leafCellType: CPU")
}

func TestPodsOnCPUCellsAreToldOfNoGPUs(t *testing.T) {
	c := newCluster(t, withCPUs)
	p := c.run(noGPU(newPod("p", onCPU(spec("A", 5, "g:1:3"))), "2500m", "100Mi"))
	bound := c.pod(p)
	assert.Contains(t, []string{"b0", "b1"}, bound.Spec.NodeName)
	assert.NotContains(t, bound.Annotations, annotation.IsolationKey, "the numbers of its CPU cells are no GPUs")
	assert.Contains(t, bound.Annotations[annotation.BindInfoKey], `"leafCellIsolation":[0,1,2]`)
	var why api.Why
	c.get("/v1/why/A/g", &why)
	assert.Equal(t, "it has 3 CPU cells on 1 node", why.Sentence)

	c.start(testOptions) // a new leader, which reads only annotations
	require.NoError(t, c.b.Lead(t.Context()))
	c.wait(p, api.Bound)
	c.get("/v1/why/A/g", &why)
	assert.Equal(t, "it has 3 CPU cells on 1 node", why.Sentence)
	var vcs api.VirtualClusters
	c.get(api.PathVirtualClusters, &vcs)
	assert.Equal(t, &cell.CPUStats{Guaranteed: 4, Used: 3, Free: 1}, vcs.Items[0].CPU)
	assert.Nil(t, vcs.Items[1].CPU)

	waits := c.create(noGPU(newPod("w", onCPU(spec("A", 5, "w:1:2"))), "1500m", "64Mi"))
	c.waits(waits)
	c.get("/v1/why/A/w", &why)
	assert.Equal(t, "Virtual cluster A has 1 of 4 CPU cells free for jobs of priority 5, but the gang requests 2. 1 pod of 1 CPU cell would start now.", why.Sentence)
	assert.Equal(t, api.Request{CPUCells: 2, MilliCPU: 1500, MemoryMB: 64}, why.Asks)
	code, text := c.ask(http.MethodGet, "/metrics", nil)
	require.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, "\npai_scheduler_used_gpus 0\n")
	assert.Contains(t, text, "\npai_scheduler_used_cpu_cells 3\n")
	assert.Contains(t, text, "\npai_scheduler_vc_cpu_cells{kind=\"guaranteed\",vc=\"A\"} 4\n")
}

func TestAMachineWithoutGPUsLacksNone(t *testing.T) {
	c := newCluster(t, withCPUs)
	node := readyNode("b0")
	node.Annotations = map[string]string{api.DevicesAnnotation: `{"devices":[]}`}
	_, err := c.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool {
		var nodes api.Nodes
		c.get(api.PathNodes, &nodes)
		for _, n := range nodes.Items {
			if n.Name == "b0" && n.Reported {
				assert.Empty(t, n.Missing)
				return true
			}
		}
		return false
	})
	var vcs api.VirtualClusters
	c.get(api.PathVirtualClusters, &vcs)
	assert.Zero(t, vcs.Items[0].CPU.Bad)
}

func TestTheQueueKeepsSharesOfGPUsAndGPUsApart(t *testing.T) {
	for name, c := range map[string]struct {
		vc, request string
		gpu         bool // whether another pod of the gang sees its GPUs
		want        api.Request
	}{
		"a gang without GPUs":           {"B", strings.Replace(spec("B", 5, "w:2:1"), "leafCellType: G\n", "", 1), false, api.Request{ShareOfGPUs: 2, ShareReason: "B owns no machine without GPUs", MilliCPU: 8000, MemoryMB: 256}},
		"one that names a type of GPUs": {"B", spec("B", 5, "w:2:1"), false, api.Request{ShareOfGPUs: 2, ShareReason: "it requires machines with G", MilliCPU: 8000, MemoryMB: 256}},
		"one beside GPUs":               {"A", strings.Replace(spec("A", 5, "w:2:1"), "leafCellType: G\n", "", 1), true, api.Request{GPUs: 1, ShareOfGPUs: 1, ShareReason: "other tasks of its group use GPUs", MilliCPU: 4000, MemoryMB: 128}},
		"one from before":               {"A", strings.Replace(spec("A", 5, "w:2:1"), "leafCellType: G\n", "", 1), false, api.Request{ShareOfGPUs: 2, ShareReason: "A owned no machine without GPUs when it was submitted", MilliCPU: 8000, MemoryMB: 256}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t, withCPUs)
			cl.create(noGPU(newPod("w-0", c.request), "4", "128Mi"))
			other := newPod("w-1", c.request)
			if !c.gpu {
				noGPU(other, "4", "128Mi")
			}
			cl.create(other)
			var q api.Queue
			cl.get(api.PathQueue, &q)
			require.Len(t, q.Items, 1)
			assert.Equal(t, c.want, q.Items[0].Request)
		})
	}
}

// without is the configuration withCPUs without A.
var without = strings.Split(withCPUs, "  A:")[0] + "  B:" + strings.Split(withCPUs, "  B:")[1]

func TestADeletedVirtualClusterIsShownWhileGangsNameIt(t *testing.T) {
	c := newCluster(t, withCPUs)
	c.run(newPod("r", spec("A", 5, "runs:1:2")))
	c.run(noGPU(newPod("p", onCPU(spec("A", 5, "prep:1:3"))), "3", "64Mi"))
	c.run(newPod("o", spec("A", -1, "idle:1:1")))
	w := c.create(newPod("w", spec("A", 5, "waits:1:2")))

	code, text := c.ask(http.MethodPost, api.PathValidate, without)
	require.Equal(t, http.StatusOK, code, text)
	for _, part := range []string{
		`"vc":"A","group":"runs","effect":"downgraded","pods":["jobs/r"],"gpus":2`, `"group":"prep","effect":"downgraded","pods":["jobs/p"],"gpus":0,"cpuCells":3`,
		`"group":"waits","effect":"refused"`, `"group":"idle","effect":"orphaned","pods":["jobs/o"],"gpus":1`,
	} {
		assert.Contains(t, text, part)
	}

	c.reconfigure(without)
	var vcs api.VirtualClusters
	c.eventually(func() bool {
		vcs = api.VirtualClusters{}
		c.get(api.PathVirtualClusters, &vcs)
		return len(vcs.Items) == 1
	})
	assert.Equal(t, []api.VirtualCluster{{Name: "A", Opportunistic: 3, CPU: &cell.CPUStats{Opportunistic: 3}, WaitingGangs: 1, WaitingPods: 1}}, vcs.Deleted)
	var why api.Why
	c.get("/v1/why/A/waits", &why)
	assert.Equal(t, cell.NoVirtualCluster, why.Explanation.Code)
	assert.Contains(t, why.Sentence, "The virtual cluster A doesn't exist; there are B")
	assert.Equal(t, 2, why.Asks.GPUs)
	_, text = c.ask(http.MethodPost, api.PathValidate, without)
	assert.NotContains(t, text, "orphaned", "it is already gone")
	c.delete(w)
}
