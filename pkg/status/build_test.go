package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

func TestASickGPUThatAJobHasIsBadForItsVirtualCluster(t *testing.T) {
	b := newTables()
	b.setQueue(&schedulerapi.Queue{}, &schedulerapi.VirtualClusters{Items: []schedulerapi.VirtualCluster{{Name: "default", Guaranteed: 8, Used: 3, Bad: 1}, {Name: "vision", Guaranteed: 8}}})
	has := func(vc string, opportunistic bool) *Owner {
		return &Owner{Pod: "pai-jobs/p", VirtualCluster: vc, Opportunistic: opportunistic}
	}
	b.machineList = []Machine{{Name: "gpu-1", State: MachineReady, GPUs: []GPU{
		{Index: 0, Health: GPUHealthy, Owner: has("default", false)}, {Index: 1, Health: GPUHealthy, Owner: has("default", false)},
		{Index: 2, Health: GPUSick}, {Index: 3, Health: GPUIgnored, Owner: has("default", false)}, {Index: 4, Health: GPUSick, Owner: has("vision", true)},
	}}}
	b.refresh()
	before := b.ownerList
	require.Len(t, before, 2)
	assert.Equal(t, 1, before[0].Bad, "one that no one has is counted by the scheduler")
	assert.Zero(t, before[1].Bad, "it has no guarantee there")

	b.machineList = []Machine{b.machineList[0]}
	b.machineList[0].GPUs = append([]GPU{{Index: 0, Health: GPUSick, Reason: "XID 79", Owner: has("default", false)}}, b.machineList[0].GPUs[1:]...)
	b.refresh()
	assert.Equal(t, 2, b.ownerList[0].Bad)
	assert.Equal(t, 1, before[0].Bad, "a model that was published never changes")
	b.refresh()
	assert.Equal(t, 2, b.ownerList[0].Bad, "nor is it counted twice")
}

// Any program may have written a node's annotations. Invalid numbers of parts count as one.
func TestNumbersOfPartsThatNoAgentWritesAreOne(t *testing.T) {
	for _, parts := range []string{"4294967296", "-4", "0", "9223372036854775807", "1025"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{schedulerapi.DevicesAnnotation: `{"devices":[{"index":0,"healthy":true},{"index":1}],"parts":` + parts + `}`}}}
		b := newTables()
		b.nodes["n"] = newNodeRow(n)
		assert.Len(t, b.gpus("n", b.nodes["n"], nil), 2, parts)
	}
}

func TestOnlyConditionsOfTroubleArePressure(t *testing.T) {
	n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: "EtcdIsVoter", Status: "True"}, {Type: "DiskPressure", Status: "True"}, {Type: "KernelDeadlock", Status: "True"}, {Type: "FrequentKubeletRestart", Status: "True"},
		{Type: "MemoryPressure", Status: "False"}, {Type: "Ready", Status: "True"},
	}}}
	assert.Equal(t, []string{"DiskPressure", "KernelDeadlock", "FrequentKubeletRestart"}, newNodeRow(n).pressure)
}

// A machine that isn't ready has the state NotReady, whether or not layout.yaml lists the machine.
func TestAMachineOutsideTheLayoutThatIsNotReadyIsNotReady(t *testing.T) {
	b := newTables()
	b.layout = map[string]*layoutRow{}
	for ready, want := range map[corev1.ConditionStatus]string{"True": MachineUnlisted, "False": MachineNotReady, "Unknown": MachineUnknown} {
		b.nodes["n"] = newNodeRow(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: ready}}}})
		m, _ := b.machine("n")
		assert.Equal(t, want, m.State)
		assert.Contains(t, m.Message, "not in layout.yaml")
	}
}

// Otherwise Once would return an error for a source without an error.
func TestAKindIsLoadingUntilItsWatchBegins(t *testing.T) {
	f := large(t)
	for _, k := range f.kinds {
		if k.source == SourceJobs {
			k.loaded, k.live, k.heard, k.err = true, false, time.Time{}, nil
		}
	}
	assert.Equal(t, StateLoading, f.watchedSource(SourceJobs).State)
}

func TestAMachineSaysWhichActionCordonedIt(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{actionsv1.MarkAnnotation: `{"by":{"kind":"policy","name":"sick"},"reason":"XID\u001b[31m 79"}`}}}
	of := func() Machine {
		b := newTables()
		b.nodes["n"] = newNodeRow(n)
		m, known := b.machine("n")
		require.True(t, known)
		return m
	}
	m := of()
	assert.Empty(t, m.CordonText(), "kubectl uncordon leaves the mark")
	n.Spec.Unschedulable = true
	m = of()
	assert.Equal(t, "policy sick", m.CordonedBy)
	assert.NotContains(t, m.CordonReason, "\x1b")
	assert.Regexp(t, `^cordoned by policy sick: XID.* 79$`, m.CordonText())
}
