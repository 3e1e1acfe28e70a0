package doctor

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// If a pod of the doctor waits for its image, the remedy is about the image, although the evidence contains the kubelet's reason.
func TestAPodOfTheDoctorWithoutItsImageNeedsTheImage(t *testing.T) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	waits := corev1.Pod{Spec: corev1.PodSpec{NodeName: "w1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull", Message: "no image"}}}}}}
	c := patient(t, 1, 0)
	c.pods = newProbe(c, Options{})
	assert.False(t, c.pods.sort([]corev1.Pod{waits}, []corev1.Node{node}))
	found, err := podsStart(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "image is not on the machine (ErrImageNeverPull): no image", found[0].Evidence)
	assert.Contains(t, found[0].Remedy, "imports the bundle's images again")
	c.Spec = nil
	found, err = podsStart(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Message, "the nodes can't get the image")
}

// TestWhatTheDoctorMakesIsTakenByARealAPIServerAndRemoved runs without a kubelet, so it also covers pods that don't start.
func TestWhatTheDoctorMakesIsTakenByARealAPIServerAndRemoved(t *testing.T) {
	k := kubetest.StartNodes(t)
	spaces := func() (live []string) {
		list, err := k.Client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: labelProbe})
		require.NoError(t, err)
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				live = append(live, list.Items[i].Name)
			}
		}
		return live
	}
	newOne := func() *probe {
		return newProbe(&Cluster{Kube: k, Now: time.Now, Image: ProbeImage}, Options{Owner: "ada@" + hostname(t) + ", pid 4194000"})
	}

	p := newOne()
	nodes, err := p.c.Nodes(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.make(t.Context(), k.Client, nodes))
	require.Len(t, spaces(), 1)
	assert.NotEmpty(t, p.svc.Spec.ClusterIP)

	t.Run("the next run removes what one that was killed has left", func(t *testing.T) {
		require.NoError(t, removeAbandoned(t.Context(), k.Client, time.Now()))
		assert.Empty(t, spaces())
	})
	t.Run("a run that is cancelled removes its own", func(t *testing.T) {
		p := newOne()
		ctx, cancel := context.WithCancelCause(t.Context())
		go p.run(ctx)
		require.Eventually(t, func() bool { return len(spaces()) == 1 }, time.Minute, 50*time.Millisecond)
		cancel(errors.New("Ctrl-C"))
		p.end(context.WithoutCancel(ctx))
		assert.Empty(t, spaces())
	})
}
