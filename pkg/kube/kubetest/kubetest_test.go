package kubetest_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
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
	if testing.Short() {
		t.Skip("five programs for one test: not with -short")
	}
	c := kubetest.StartNodes(t)
	nodes, err := c.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, nodes.Items, kubetest.Nodes)
}
