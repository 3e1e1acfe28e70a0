package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func existingCluster(t *testing.T, want kube.Options, names ...string) func(kube.Options) (*kube.Cluster, error) {
	t.Helper()
	return func(o kube.Options) (*kube.Cluster, error) {
		assert.Equal(t, want, o)
		client := fake.NewClientset()
		for _, name := range names {
			_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		return &kube.Cluster{Client: client, Context: "lab", Server: "https://10.0.0.1:6443"}, nil
	}
}

func TestAnExistingClusterBecomesAFolder(t *testing.T) {
	io, _, out, errOut := iostreams.Test()
	dir := filepath.Join(t.TempDir(), "c")
	opts := &GenerateOptions{
		IO: io, OutDir: dir, Existing: true, Cluster: kube.Options{Kubeconfig: "k", Context: "lab"}, Masters: []string{"b"},
		Open: existingCluster(t, kube.Options{Kubeconfig: "k", Context: "lab"}, "a", "b"),
	}
	require.NoError(t, generateRun(t.Context(), opts))
	assert.Empty(t, out.String())
	assert.Contains(t, errOut.String(), "wrote "+filepath.Join(dir, config.LayoutFile))
	assert.Contains(t, errOut.String(), "then run: paictl config push -p "+dir)
	c, _, err := config.LoadValid(dir)
	require.NoError(t, err)
	assert.Equal(t, "b", c.Layout.MachineList[0].Hostname)
	assert.False(t, c.IsManaged())
	b, err := os.ReadFile(filepath.Join(dir, config.ServicesFile))
	require.NoError(t, err)
	assert.Contains(t, string(b), "# prometheus:\n", "the services' sections are documented")
	opts.Open = existingCluster(t, opts.Cluster, "a")
	require.ErrorContains(t, generateRun(t.Context(), opts), "4 files already exist")
}

func TestADryRunOfAnExistingClusterPrintsTheFiles(t *testing.T) {
	io, _, out, errOut := iostreams.Test()
	opts := &GenerateOptions{IO: io, DryRun: true, Existing: true, Open: existingCluster(t, kube.Options{}, "a")}
	t.Chdir(t.TempDir())
	require.NoError(t, generateRun(t.Context(), opts))
	assert.Contains(t, out.String(), "---\n# layout.yaml\n")
	assert.Contains(t, out.String(), "managed: false\n")
	assert.Contains(t, errOut.String(), "a was chosen to run the platform's services [layout/no-control-plane]")
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, left)
}
