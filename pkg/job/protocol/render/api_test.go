package render

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// A real API server validates each field of the pods and Secrets.
func TestKubernetesAcceptsThePodsAndSecrets(t *testing.T) {
	cluster := kubetest.Start(t)
	client := cluster.Client.CoreV1()
	kubetest.PriorityClasses(t, cluster)
	const namespace = "render-test"
	_, err := client.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	// The test runs without the controller that creates service accounts.
	for _, name := range []string{"default", v1.ObjectName("alice", "train")} {
		_, err := client.ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	rest := `extras:
  storages: [{name: models}, {name: home, mountPath: /home/me}]
  %s
  com.microsoft.pai.runtimeplugin: [{plugin: ssh}]
`
	for name, c := range map[string]struct {
		cluster Cluster
		extras  string
	}{
		"with the scheduler":       {facts(), "maxDurationSec: 10"},
		"without":                  {Cluster{RuntimeImage: "pai-runtime"}, "gangAllocation: false"},
		"on the machine's network": {facts(), "hostNetwork: true"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Namespace, o.Cluster, o.Group = namespace, c.cluster, "vision"
			out := mustRender(t, job(t, worker("Main_Role", 1, 8)+worker("ps", 1, 0), fmt.Sprintf(rest, c.extras)), o)
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
			for _, s := range out.Secrets {
				_, err := client.Secrets(namespace).Create(t.Context(), s, dry)
				require.NoError(t, err)
			}
			for _, role := range out.Framework.Spec.TaskRoles {
				pod := &corev1.Pod{ObjectMeta: role.Task.Pod.ObjectMeta, Spec: role.Task.Pod.Spec}
				pod.Name = "p-" + role.Name
				_, err := client.Pods(namespace).Create(t.Context(), pod, dry)
				require.NoError(t, err)
			}
		})
	}
}
