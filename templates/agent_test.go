package templates

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// RBAC allows an agent to change every Node. The policy in the agent's chart must restrict the agent to its own machine.
func TestAnAgentWritesHowTheGPUsOfItsOwnMachineDoAndNothingElse(t *testing.T) {
	c := kubetest.Start(t)
	ensureNamespaces(t, c)
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	manifest, err := renderOn(t, load(t, "agent"), map[string]any{}, capabilities)
	require.NoError(t, err)
	a := newApplier(t, c)
	for _, o := range objects(t, manifest) {
		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") || strings.HasPrefix(o.GetKind(), "ClusterRole") {
			require.NoError(t, a.apply(t, o, false), "%s %s", o.GetKind(), o.GetName())
			t.Cleanup(func() { a.remove(t, o) })
		}
	}
	for _, name := range []string{"gpu-1", "gpu-2"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"x": "y"}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}}}
		_, err := c.Client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, c.Client.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
		})
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:pai-system:agent", Groups: []string{"system:serviceaccounts", "system:authenticated"},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"gpu-1"}}}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	patch := func(ctx context.Context, node, body string, subresources ...string) error {
		kind := types.MergePatchType
		if len(subresources) > 0 {
			kind = types.StrategicMergePatchType
		}
		_, err := client.CoreV1().Nodes().Patch(ctx, node, kind, []byte(body), metav1.PatchOptions{}, subresources...)
		return err
	}
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Nodes().Patch(ctx, "gpu-1", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "and nothing else"), nil
	}), "the rules take no effect")

	ctx := t.Context()
	labels := func(all string) string { return `{"metadata":{"labels":{` + all + `}}}` }
	for _, mine := range []string{
		`"nvidia.com/gpu.present":"true","nvidia.com/gpu.product":"A100","nvidia.com/gpu.count":"8","nvidia.com/gpu.memory":"81920","nvidia.com/gpu.family":"ampere"`,
		`"nvidia.com/gpu.compute.major":"8","nvidia.com/gpu.compute.minor":"0","nvidia.com/gpu.machine":"X","nvidia.com/mig.capable":"true"`,
		`"nvidia.com/cuda.driver-version.full":"550.54.15","nvidia.com/cuda.driver-version.revision":"15","nvidia.com/cuda.driver.rev":"15","nvidia.com/cuda.runtime-version.major":"12"`,
		`"amd.com/gpu.vram":"192G","beta.amd.com/gpu.vram.192G":"8","amd.com/gpu.product-name":"AMD_Instinct_MI300X","amd.com/gpu.driver-version":"6.8.5"`,
		`"paictl.openpai.org/gpu-simulated":"true","nvidia.com/gpu.count":"7"`,
		`"paictl.openpai.org/gpu-simulated":null,"nvidia.com/gpu.count":null`,
	} {
		require.NoError(t, patch(ctx, "gpu-1", labels(mine)), mine)
	}
	for _, hostile := range []string{
		`"node-role.kubernetes.io/control-plane":""`, `"kubernetes.io/hostname":"gpu-2"`, `"a":"c"`, `"a":null`, `"new":""`, `"topology.kubernetes.io/zone":"x"`,
		`"node-restriction.kubernetes.io/x":"y"`, `"paictl.openpai.org/gpu":"x"`, `"paictl.openpai.org/gpu-simulated.more":"x"`, `"paictl.openpai.org/role":"x"`,
		`"nvidia.com/gpu.deploy.driver":"true"`, `"nvidia.com/gpu.workload.config":"vm-passthrough"`, `"nvidia.com/mig.config":"all-1g.5gb"`, `"nvidia.com/gpu.countx":"1"`,
		`"xnvidia.com/gpu.count":"1"`, `"nvidiaxcom/gpu.count":"1"`, `"feature.node.kubernetes.io/pci-10de.present":"true"`, `"amd.com/gpu.other":"1"`, `"gamma.amd.com/gpu.vram":"1"`,
		`"nvidia.com/gpu.count":"8","node-role.kubernetes.io/master":""`, // a forbidden label beside an allowed label
	} {
		require.ErrorContains(t, patch(ctx, "gpu-1", labels(hostile)), "labels of a Node that say which GPUs it has, and nothing else", hostile)
		require.Error(t, patch(ctx, "gpu-1", labels(hostile), "status"), hostile)
	}
	require.ErrorContains(t, patch(ctx, "gpu-2", labels(`"nvidia.com/gpu.count":"8"`)), "only the Node of its own machine")
	applied := func(node, key string) error {
		_, err := client.CoreV1().Nodes().Apply(ctx, applycorev1.Node(node).WithLabels(map[string]string{key: "1"}), metav1.ApplyOptions{FieldManager: "pai-agent-labels"})
		return err
	}
	require.NoError(t, applied("gpu-1", "nvidia.com/gpu.count"), "as the agent writes it")
	require.ErrorContains(t, applied("gpu-1", "node-role.kubernetes.io/worker"), "and nothing else")
	require.Error(t, applied("gpu-3", "nvidia.com/gpu.count"), "it may make no Node")

	const sick = `{"status":{"conditions":[{"type":"GPUsUnhealthy","status":"True","reason":"Unhealthy","message":"GPU 3: XID 79"}]}}`
	require.NoError(t, patch(ctx, "gpu-1", `{"metadata":{"annotations":{"paictl.openpai.org/gpus":"{}"}}}`))
	require.NoError(t, patch(ctx, "gpu-1", `{"metadata":{"annotations":{"paictl.openpai.org/gpus":"{\"devices\":[]}"}}}`))
	require.NoError(t, patch(ctx, "gpu-1", `{"metadata":{"annotations":{"paictl.openpai.org/gpu-answers":"[]","paictl.openpai.org/restart-answer":"{}"}}}`))
	require.ErrorContains(t, patch(ctx, "gpu-1", `{"metadata":{"annotations":{"paictl.openpai.org/gpu-orders":"[]"}}}`), "and nothing else", "orders are for people")
	require.NoError(t, patch(ctx, "gpu-1", sick, "status"))
	require.NoError(t, patch(ctx, "gpu-1", strings.Replace(sick, `"True"`, `"False"`, 1), "status"))
	require.NoError(t, patch(ctx, "gpu-1", strings.Replace(sick, "GPUsUnhealthy", "GPUDriverMissingAtNextBoot", 1), "status"))
	for body, says := range map[string]string{
		`{"metadata":{"annotations":{"x":"z"}}}`:                            "and nothing else",
		`{"metadata":{"annotations":{"x":null}}}`:                           "and nothing else",
		`{"metadata":{"annotations":{"empty":""}}}`:                         "and nothing else",
		`{"metadata":{"annotations":{"more":"z"}}}`:                         "and nothing else",
		`{"metadata":{"labels":{"node-role.kubernetes.io/master":""}}}`:     "and nothing else",
		`{"metadata":{"finalizers":["a.example/b"]}}`:                       "and nothing else",
		`{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`:            "and nothing else",
		`{"metadata":{"annotations":{"paictl.openpai.org/gpus":"[]"}}} of2`: "only the Node of its own machine",
	} {
		node := "gpu-1"
		if rest, other := strings.CutSuffix(body, " of2"); other {
			node, body = "gpu-2", rest
		}
		require.ErrorContains(t, patch(ctx, node, body), says, body)
	}
	for body, says := range map[string]string{
		`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`:         "and nothing else",
		`{"status":{"conditions":[{"type":"DiskPressure","status":"True"}]}}`:   "and nothing else",
		`{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":6666}}}}`:      "and nothing else",
		`{"status":{"images":[{"names":["a"],"sizeBytes":1}]}}`:                 "and nothing else",
		`{"status":{"nodeInfo":{"kubeletVersion":"v9"}}}`:                       "and nothing else",
		`{"status":{"volumesAttached":[{"name":"x","devicePath":"y"}]}}`:        "and nothing else",
		`{"status":{"volumesInUse":["x"]}}`:                                     "and nothing else",
		`{"status":{"declaredFeatures":["MyFeature"]}}`:                         "and nothing else",
		`{"status":{"phase":"Terminated"}}`:                                     "and nothing else",
		`{"status":{"runtimeHandlers":[{"name":"x"}]}}`:                         "and nothing else",
		`{"status":{"capacity":{"cpu":"64"}}}`:                                  "and nothing else",
		`{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}`: "and nothing else",
	} {
		require.ErrorContains(t, patch(ctx, "gpu-1", body, "status"), says, body)
	}
	require.ErrorContains(t, patch(ctx, "gpu-2", sick, "status"), "only the Node of its own machine")
}

func TestTheClassOfOrdinaryPodsIsThereWhereSomeGPUIsGivenToThem(t *testing.T) {
	c := kubetest.Start(t)
	machine := func(forPods ...any) map[string]any {
		return map[string]any{"model": "A100", "count": 8, "simulated": true, "forPods": forPods}
	}
	classes := func(gpus map[string]any) (out []unstructured.Unstructured) {
		manifest, err := render(t, load(t, "agent"), map[string]any{"global": map[string]any{"gpus": gpus}})
		require.NoError(t, err)
		for _, o := range objects(t, manifest) {
			if o.GetKind() == "DeviceClass" {
				out = append(out, o)
			}
		}
		return out
	}
	assert.Empty(t, classes(map[string]any{"n1": machine(), "n2": map[string]any{"model": "A100", "count": 8}}))
	one := classes(map[string]any{"n1": machine(), "n2": machine(6, 7), "n3": machine(0)})
	require.Len(t, one, 1)
	a := newApplier(t, c)
	require.NoError(t, a.apply(t, one[0], false))
	t.Cleanup(func() { a.remove(t, one[0]) })
	got, err := c.Client.ResourceV1().DeviceClasses().Get(t.Context(), claim.PodsClass, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, got.Spec.ExtendedResourceName)
	assert.Equal(t, "nvidia.com/gpu", *got.Spec.ExtendedResourceName)
}
