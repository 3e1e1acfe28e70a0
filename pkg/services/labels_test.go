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
)

func unavailable(clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewServiceUnavailable("the server is away")
}

func conflict(clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, LockName, errors.New("changed"))
}

func node(name string, labels map[string]string, owned string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if owned != "" {
		n.Annotations = map[string]string{annotationOwned: owned}
	}
	return n
}

func TestNodeLabelsFollowTheLayout(t *testing.T) {
	want := map[string]string{"pai-worker": "true", "disk": "big"}
	for _, tc := range []struct {
		name  string
		node  *corev1.Node
		did   string // "" where nothing is done
		owned string
	}{
		{"a new node gets all", node("n", nil, ""), "label disk=big, pai-worker=true", "disk,pai-worker"},
		{"a node as it should be is left alone", node("n", want, "disk,pai-worker"), "", ""},
		{"a value that differs is set", node("n", map[string]string{"pai-worker": "true", "disk": "small"}, "disk,pai-worker"), "label disk=big", "disk,pai-worker"},
		{"what the layout lost goes", node("n", map[string]string{"pai-worker": "true", "disk": "big", "old": "1"}, "disk,old,pai-worker"), "label old-", "disk,pai-worker"},
		{"labels of others stay", node("n", map[string]string{"pai-worker": "true", "disk": "big", "theirs": "1"}, "disk,pai-worker"), "", ""},
		{"a label that is gone already needs no removal", node("n", want, "disk,gone,pai-worker"), "note which labels are of the layout", "disk,pai-worker"},
		{"taints are the affair of cluster up", node("n", want, "disk,pai-worker,gpu=yes:NoSchedule"), "", ""},
		{"taints stay in the annotation", node("n", map[string]string{"disk": "big"}, "disk,gpu:NoSchedule"), "label pai-worker=true", "disk,pai-worker,gpu:NoSchedule"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := compareLabels(tc.node, want)
			if tc.did == "" {
				require.Nil(t, x)
				return
			}
			require.NotNil(t, x)
			assert.Equal(t, tc.did, x.String())
			assert.Equal(t, tc.owned, x.owned)
		})
	}
}

func TestAStartLabelsTheNodesAndNamesThoseThatAreMissing(t *testing.T) {
	l := newLab(t, node("w1", map[string]string{"old": "1", "theirs": "1"}, "old"))
	require.NoError(t, l.start("storage"))
	n, err := l.client.CoreV1().Nodes().Get(t.Context(), "w1", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"pai-worker": "true", "disk": "big", "theirs": "1"}, n.Labels)
	assert.Equal(t, "disk,pai-worker", n.Annotations[annotationOwned])
	assert.Equal(t, "1 machine of the layout not in the cluster: m1", l.story.of(EventWarning)[0].Message)
}

func TestNodesThatCannotBeLabelledStopTheStart(t *testing.T) {
	l := newLab(t, node("w1", nil, ""))
	l.client.PrependReactor("patch", "nodes", unavailable)
	require.ErrorContains(t, l.start("storage"), "label the node w1")
	assert.Empty(t, l.releases.changes(), "services find their machines by the labels")
	assert.Contains(t, l.story.summary().Error, "label the node w1", "the story has an end all the same")
}
