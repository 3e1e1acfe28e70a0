package kubetest_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

func TestTheServerIsRealAndShared(t *testing.T) {
	first := kubetest.Start(t)
	version, err := first.Client.Discovery().ServerVersion()
	require.NoError(t, err)
	assert.NotEmpty(t, version.GitVersion)
	assert.Same(t, first, kubetest.Start(t))
	again, err := kube.Open(kube.Options{Kubeconfig: kubetest.Kubeconfig(t)})
	require.NoError(t, err)
	assert.Equal(t, first.Server, again.Server)
	nodes, err := again.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, nodes.Items)
}

func TestPodsRunInNameOnlyOnSimulatedNodes(t *testing.T) {
	tier.More(t, "five programs for one test")
	c := kubetest.StartNodes(t)
	nodes, err := c.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, nodes.Items, kubetest.Nodes)
}

// Controllers delete a pod and create another pod with the same name at once. The test's simulated kubelet deletes pods by name: it must not delete
// the new pod.
func TestAPodOutlivesAFormerOneOfItsName(t *testing.T) {
	tier.More(t, "five programs for one test")
	pods := kubetest.StartNodes(t).Client.CoreV1().Pods(metav1.NamespaceDefault)
	zero := int64(0)
	remove := func(ctx context.Context) error {
		return pods.Delete(ctx, "again", metav1.DeleteOptions{GracePeriodSeconds: &zero})
	}
	t.Cleanup(func() { _ = remove(context.WithoutCancel(t.Context())) })
	for i := range 50 {
		made, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "again"},
			Spec:       corev1.PodSpec{NodeName: "test-1", Containers: []corev1.Container{{Name: "main", Image: "example.org/none:v1"}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			now, err := pods.Get(t.Context(), "again", metav1.GetOptions{})
			return assert.NoError(t, err, "pod %d is gone", i) && assert.Equal(t, made.UID, now.UID) && now.Status.Phase == corev1.PodRunning
		}, time.Minute, 20*time.Millisecond)
		if t.Failed() {
			return
		}
		require.NoError(t, remove(t.Context()))
	}
}
