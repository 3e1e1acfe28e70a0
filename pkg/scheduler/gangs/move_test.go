package gangs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// fourNodes is a configuration with four separate nodes in one virtual cluster.
const fourNodes = `physicalCluster:
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
    - {cellType: RACK, cellChildren: [{cellAddress: a0}, {cellAddress: a1}]}
    - {cellType: RACK, cellChildren: [{cellAddress: b0}, {cellAddress: b1}]}
virtualClusters:
  A:
    virtualCells: [{cellType: RACK.NODE, cellNumber: 4}]
`

func avoiding(p *corev1.Pod, nodes ...string) *corev1.Pod {
	var not []corev1.NodeSelectorRequirement
	for _, name := range nodes { // Kubernetes accepts one name in each requirement
		not = append(not, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{name}})
	}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: not}},
	}}}
	return p
}

func TestAPodThatMustAvoidItsNodeMovesAndARestartKnowsBothPlaces(t *testing.T) {
	for name, companion := range map[string]string{"the one that moved is listed last": "a", "it is listed first": "z"} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, fourNodes)
			stays := c.run(newPod(companion, spec("A", 5, "g:2:2")))
			first := c.run(newPod("m", spec("A", 5, "g:2:2")))
			c.finish(first, corev1.PodFailed)
			moved := c.run(avoiding(newPod("m2", spec("A", 5, "g:2:2")), first.Spec.NodeName))
			assert.NotEqual(t, first.Spec.NodeName, moved.Spec.NodeName)
			assert.NotEqual(t, stays.Spec.NodeName, moved.Spec.NodeName)
			assert.Equal(t, gpus(stays), gpus(c.pod(stays)), "its companion stays")
			guest := c.run(newPod("guest", spec("A", 5, "guest:1:2")))

			var before, after groups
			var cells, cellsAfter clusterStatus
			c.get("/v1/inspect/affinitygroups/", &before)
			c.get("/v1/inspect/clusterstatus", &cells)
			c.restart()
			c.get("/v1/inspect/affinitygroups/", &after)
			c.get("/v1/inspect/clusterstatus", &cellsAfter)
			assert.Equal(t, before, after)
			assert.Equal(t, cells, cellsAfter)
			for _, p := range []*corev1.Pod{stays, moved, guest} {
				assert.Equal(t, "Bound", c.state(p), p.Name)
			}
			pods, err := c.client.CoreV1().Pods("jobs").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			noDoubleUse(t, pods.Items)
		})
	}
}

func TestAPodThatCanMoveNowhereIsToldWhyAndKeepsNoOtherFromItsPlace(t *testing.T) {
	c := newCluster(t, twoTeams) // A owns only the rack of a0 and a1
	one := c.run(newPod("p1", spec("A", 5, "g:2:2")))
	two := c.run(newPod("p2", spec("A", 5, "g:2:2")))
	c.finish(two, corev1.PodFailed)
	again := c.create(avoiding(newPod("p3", spec("A", 5, "g:2:2")), two.Spec.NodeName))
	reason := c.waits(again)
	assert.Contains(t, reason, "node "+two.Spec.NodeName+" isn't one that it may run on")
	assert.Contains(t, reason, "no idle cells of virtual cluster A")
	c.delete(again)
	back := c.run(newPod("p4", spec("A", 5, "g:2:2")))
	assert.Equal(t, gpus(two), gpus(back), "its place was kept")
	assert.Equal(t, gpus(one), gpus(c.pod(one)))
}

func TestPodsThatComeBackTogetherGetTheNodesThatEachMayRunOn(t *testing.T) {
	c := newCluster(t, fourNodes)
	var ran []*corev1.Pod
	for _, name := range []string{"p1", "p2", "p3"} {
		ran = append(ran, c.run(newPod(name, spec("A", 5, "g:3:2"))))
	}
	c.finish(ran[1], corev1.PodFailed)
	c.finish(ran[2], corev1.PodFailed)
	q := c.create(avoiding(newPod("q", spec("A", 5, "g:3:2")), ran[1].Spec.NodeName))
	r := c.create(avoiding(newPod("r", spec("A", 5, "g:3:2")), ran[2].Spec.NodeName))
	assert.Equal(t, ran[2].Spec.NodeName, c.place(q), "they change places")
	assert.Equal(t, ran[1].Spec.NodeName, c.place(r))
}

func TestADowngradeAfterAMoveLeavesAnnotationsThatFitEachOther(t *testing.T) {
	c := newCluster(t, fourNodes)
	lazy := "lazyPreemptionEnable: true\n"
	stays := c.run(newPod("p1", spec("A", 1, "g:2:2", lazy)))
	first := c.run(newPod("p2", spec("A", 1, "g:2:2", lazy)))
	c.finish(first, corev1.PodFailed)
	moved := c.run(avoiding(newPod("p3", spec("A", 1, "g:2:2", lazy)), first.Spec.NodeName))
	c.b.mu.Lock()
	s := c.b.state
	p := s.pods[stays.UID]
	at, _, err := annotation.ReadBound(p.request, c.pod(moved).Annotations)
	require.NoError(t, err)
	p.retell(at)
	s.todo(task{annotate, p.uid})
	c.b.mu.Unlock()
	c.eventually(func() bool {
		obj := c.pod(stays)
		now, slot, err := annotation.ReadBound(p.request, obj.Annotations)
		return err == nil && now.Moves == 1 && now.Pods[slot].Node == stays.Spec.NodeName && now.Pods[1-slot].Node == moved.Spec.NodeName
	})
}
