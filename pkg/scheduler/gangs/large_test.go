package gangs

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

func bigMachines(n int) string {
	var b strings.Builder
	b.WriteString("physicalCluster:\n  skuTypes: {CPU: {cpu: 1}}\n  cellTypes:\n    standard-d256-NODE: {childCellType: CPU, childCellNumber: 255, isNodeLevel: true}\n  physicalCells:\n")
	for i := range n {
		fmt.Fprintf(&b, "    - {cellType: standard-d256-NODE, cellAddress: big-%d}\n", i)
	}
	fmt.Fprintf(&b, "virtualClusters:\n  A: {virtualCells: [{cellType: standard-d256-NODE, cellNumber: %d}]}\n", n)
	return b.String()
}

func TestAGangWhoseAnnotationsNoPodHoldsIsRefused(t *testing.T) {
	var nodes []runtime.Object
	for i := range 100 {
		nodes = append(nodes, readyNode(fmt.Sprintf("big-%d", i)))
	}
	c := newCluster(t, bigMachines(100), nodes...)
	idle := c.run(noGPU(newPod("idle", onCPU(spec("A", -1, "idle:1:1"))), "1", "1Mi"))
	p := c.create(noGPU(newPod("p", onCPU(spec("A", 5, "mpi:100:255"))), "250", "1Mi"))
	text := c.waits(p)
	assert.Contains(t, text, "the limit is 240 KiB; make the gang smaller")
	assert.Contains(t, text, "gangAllocation: false")
	c.wait(p, api.Waiting)
	assert.Equal(t, api.Bound, c.state(idle), "nothing is preempted for it")

	p = c.create(noGPU(newPod("q", onCPU(spec("A", 5, "half:40:255"))), "250", "1Mi"))
	c.place(p)
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	known := c.b.state.pods[p.UID]
	require.Equal(t, api.Binding, known.state, known.reason)
	assert.Less(t, len(known.bound.BindInfo)+len(known.bound.Placement), annotation.MaxSize)
	assert.NotContains(t, known.bound.BindInfo, "preassignedCellTypes")
	at, slot, err := annotation.ReadBound(known.request, map[string]string{annotation.BindInfoKey: known.bound.BindInfo, annotation.PlacementKey: known.bound.Placement})
	require.NoError(t, err)
	assert.Equal(t, "standard-d256-NODE", at.Pods[slot].Preassigned[254])
}

func TestAMachineOfCPUCellsGetsGPUs(t *testing.T) {
	c := newCluster(t, withCPUs)
	node := c.run(noGPU(newPod("p", onCPU(spec("A", 5, "prep:1:2"))), "2", "100Mi")).Spec.NodeName
	used := func() (gpus, cells int) {
		var v api.VirtualClusters
		c.get(api.PathVirtualClusters, &v)
		if cpu := v.Items[0].CPU; cpu != nil {
			cells = cpu.Used + cpu.Opportunistic
		}
		return v.Items[0].Used + v.Items[0].Opportunistic, cells
	}
	c.reconfigure(strings.NewReplacer("{cellType: CPU-NODE, cellAddress: "+node+"}", "{cellType: NODE, cellAddress: "+node+"}",
		"[{cellType: NODE, cellNumber: 1}, {cellType: CPU-NODE, cellNumber: 1}]", "[{cellType: NODE, cellNumber: 2}]").Replace(withCPUs))
	c.eventually(func() bool {
		var v api.VirtualClusters
		c.get(api.PathVirtualClusters, &v)
		return v.Items[0].Guaranteed == 4
	})
	for _, when := range []string{"after the change", "after a restart"} {
		gpus, cells := used()
		assert.Zero(t, gpus, when)
		assert.Equal(t, 2, cells, when)
		var why api.Why
		c.get("/v1/why/A/prep", &why)
		assert.Equal(t, "it has 2 CPU cells on 1 node, without its guarantee", why.Sentence, when)
		c.start(testOptions)
		require.NoError(t, c.b.Lead(t.Context()))
	}
}

func TestAJobOfAnotherShapeInheritsNoPlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	early := c.create(newPod("early", spec("A", 1, "ann/x/default:1:1")))
	c.clock.add(time.Minute)
	c.create(newPod("bob", spec("A", 1, "bob/y/default:1:1")))
	c.delete(early)
	c.clock.add(time.Minute)
	c.create(newPod("large", spec("A", 1, "ann/x/default:2:2")))
	var q api.Queue
	c.get("/v1/queue", &q)
	require.Len(t, q.Items, 2)
	assert.Equal(t, "bob/y/default", q.Items[0].Group)
}

func TestPlacesAreForgottenOnceAMinute(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	s := c.b.state
	lose := func(name string) {
		p := newPod(name, spec("A", 1, name+":1:1"))
		s.remove(s.add(p))
	}
	lose("first")
	for i := range 100 {
		s.left[gangKey{"A", strconv.Itoa(i)}] = place{lost: s.now().Add(-2 * placeKept)}
	}
	lose("second")
	assert.Len(t, s.left, 102, "looking at all for each of many gangs that go at a time would take seconds")
	c.clock.add(2 * time.Minute)
	lose("third")
	assert.Len(t, s.left, 3)
}
