package services

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/cluster/nodelabels"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/services/facts"
)

func unavailable(clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewServiceUnavailable("the server is away")
}

func conflict(clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, facts.Lease, errors.New("changed"))
}

func node(name string, labels map[string]string, owned string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if owned != "" {
		n.Annotations = map[string]string{nodelabels.Annotation: owned}
	}
	return n
}

func TestAStartLabelsTheNodesOfAKubernetesThatPaictlDidNotInstall(t *testing.T) {
	l := newLab(t, node("w1", map[string]string{"old": "1", "theirs": "1"}, "gpu=yes:NoSchedule,old"))
	l.foreign()
	require.NoError(t, l.start("storage"))
	n, err := l.client.CoreV1().Nodes().Get(t.Context(), "w1", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"pai-worker": "true", "disk": "big", "theirs": "1"}, n.Labels)
	assert.Equal(t, "disk,pai-worker,gpu=yes:NoSchedule", n.Annotations[nodelabels.Annotation])
	absent := l.story.of(EventWarning)[0]
	assert.Equal(t, "1 machine of the layout not in the cluster: m1", absent.Message)
	assert.NotContains(t, absent.Hint, "cluster up", "it refuses such a cluster")
	assert.Equal(t, "label disk=big, label pai-worker=true, label old- on node w1", l.story.of(EventChanged)[1].Message)

	require.NoError(t, l.start("storage"))
	assert.Empty(t, l.story.of(EventChanged), "a second start changes nothing")
}

func TestNodesThatCannotBeLabelledStopTheStart(t *testing.T) {
	l := newLab(t, node("w1", nil, ""))
	l.foreign()
	l.client.PrependReactor("patch", "nodes", unavailable)
	require.ErrorContains(t, l.start("storage"), "label the node w1")
	assert.Empty(t, l.releases.changes(), "services find their machines by the labels")
	assert.Contains(t, l.story.summary().Error, "label the node w1", "the story has an end all the same")
}

func TestAStartLeavesTheLabelsThatClusterUpSet(t *testing.T) {
	// The folder's layout contains rack=b and a taint, and no longer contains disk=big. This layout wasn't pushed.
	w1 := node("w1", map[string]string{"pai-worker": "true", "rack": "b"}, "pai-worker,rack,gpu=yes:NoSchedule")
	w1.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	l := newLab(t, node("m1", map[string]string{"pai-master": "true"}, "pai-master"), w1)
	before := w1.DeepCopy()
	for name, run := range map[string]func(*Options){"start": func(*Options) {}, "dry run": func(o *Options) { o.DryRun = true }} {
		o := l.options("storage")
		run(&o)
		require.NoError(t, l.Start(t.Context(), o), name)
		now, err := l.client.CoreV1().Nodes().Get(t.Context(), "w1", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, before, now, name)
		require.Len(t, l.story.of(EventWarning), 1, name)
		told := l.story.of(EventWarning)[0]
		assert.Equal(t, "labels or taints differ from the cluster's copy of the layout, and are not changed: "+
			"w1 is missing label disk=big and has label rack, taint gpu:NoSchedule of an earlier or newer layout", told.Message)
		assert.Contains(t, told.Hint, "paictl config push -p DIR")
		assert.Contains(t, told.Hint, "paictl cluster up -p DIR")
	}
}

func TestAStartSaysNothingOfNodesThatAreAsTheCopySays(t *testing.T) {
	l := newLab(t, node("m1", map[string]string{"pai-master": "true"}, ""), node("w1", map[string]string{"pai-worker": "true", "disk": "big", "theirs": "1"}, "disk,pai-worker"))
	require.NoError(t, l.start())
	assert.Empty(t, l.story.of(EventWarning), "that a record is missing is cluster up's affair")
}

func TestNodesThatServicesWillNotFindAreNamedBeforeTheirPodsHang(t *testing.T) {
	l := newLab(t, node("m1", map[string]string{"pai-master": "true"}, "pai-master"), node("w1", map[string]string{"pai-worker": "yes", "disk": "big"}, ""))
	require.NoError(t, l.start("grafana"))
	require.Len(t, l.story.of(EventWarning), 1, "one word on one label")
	told := l.story.of(EventWarning)[0]
	assert.Equal(t, "w1 without the label pai-worker=true, so no pod of alerts, storage, prometheus, grafana is placed there", told.Message)
	assert.Equal(t, "make the nodes match the layout with: paictl cluster up -p DIR", told.Hint)
	kinds := []string{}
	for _, e := range l.story.events {
		kinds = append(kinds, e.Kind)
	}
	before(t, kinds, EventWarning, EventStarted)
}

func TestOneRoleOfThePlacementIsEnough(t *testing.T) {
	d := desired(t, "", "storage: {placement: [master, worker]}\n")
	both := layout.Machine{Hostname: "b", Roles: []string{"master", "worker"}}
	s, r := d.Catalogue.Get("storage"), &run{desired: d}
	assert.Empty(t, r.lost(s, both, node("b", map[string]string{"pai-worker": "true"}, "")))
	assert.Equal(t, []string{"pai-master=true", "pai-worker=true"}, r.lost(s, both, node("b", nil, "")))
	assert.Empty(t, r.lost(s, layout.Machine{Hostname: "c", Roles: []string{"other"}}, node("c", nil, "")), "it is not meant to run there")
}

func TestAWarningOfThousandsOfNodesIsShort(t *testing.T) {
	assert.Equal(t, "a, b, c, d, e and 2 more", someNodes([]string{"a", "b", "c", "d", "e", "f", "g"}))
	assert.Equal(t, "a, b", someNodes([]string{"a", "b"}))
}
