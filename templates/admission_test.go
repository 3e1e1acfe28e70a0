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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

// guarded starts an API server, installs the admission rules for jobs, and returns the server with a new applier.
func guarded(t *testing.T) (*kube.Cluster, applier) {
	t.Helper()
	c := kubetest.Start(t)
	ensureNamespaces(t, c)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(JobDefinition, &crd.Object))
	require.NoError(t, newApplier(t, c).apply(t, *crd, false))
	vals := map[string]any{"global": map[string]any{"imagePullSecrets": []any{"pai-registry"}}}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	manifest, err := renderOn(t, load(t, "cluster-configuration"), vals, capabilities)
	require.NoError(t, err)
	a := newApplier(t, c)
	for _, o := range objects(t, manifest) {
		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") || o.GetKind() == "PriorityClass" {
			require.NoError(t, a.apply(t, o, false), "%s %s", o.GetKind(), o.GetName())
			t.Cleanup(func() { a.remove(t, o) })
		}
	}
	for _, name := range []string{"default", "other"} {
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: kube.JobNamespace}}
		if _, err := c.Client.CoreV1().ServiceAccounts(kube.JobNamespace).Create(t.Context(), sa, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	// The API server enforces the rules only some time after their creation.
	for _, kind := range []string{"Pod", "Framework"} {
		require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			newer := newApplier(t, c)
			err := newer.apply(t, jobObject(t, kind, "", "nodeName: n1"), true)
			return err != nil && strings.Contains(err.Error(), "passes the scheduler"), nil
		}), kind)
	}
	return c, newApplier(t, c)
}

// jobObject returns a Pod, or a Framework with such a pod. The pod's metadata and spec contain the given lines. The pod of a controller has the
// fields that the controller adds.
func jobObject(t *testing.T, kind, metadata, spec string) unstructured.Unstructured {
	t.Helper()
	if !strings.Contains(spec, "containers:") {
		spec = "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}]}]\n" + spec
	}
	pod := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte("metadata: {"+metadata+"}\nspec:\n  "+strings.ReplaceAll(spec, "\n", "\n  ")), &pod))
	o := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{}, "spec": pod["spec"]}}
	if m, ok := pod["metadata"].(map[string]any); ok {
		o.Object["metadata"] = m
	}
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	if labels[frameworkv1.LabelFramework] == "" {
		labels[frameworkv1.LabelFramework] = "mine"
	}
	o.SetLabels(labels)
	if kind == "Framework" {
		o = unstructured.Unstructured{Object: map[string]any{"apiVersion": frameworkv1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{},
			"spec": map[string]any{"executionType": "Start", "taskRoles": []any{
				map[string]any{"name": "fine", "taskNumber": int64(1), "task": map[string]any{"pod": map[string]any{"spec": map[string]any{
					"containers": []any{map[string]any{"name": "app", "image": "i"}}}}}},
				map[string]any{"name": "a", "taskNumber": int64(1), "task": map[string]any{"pod": pod}},
			}}}}
	}
	o.SetName("mine")
	o.SetNamespace(kube.JobNamespace)
	return o
}

func TestJobsMayNotTakeWhatBelongsToOthers(t *testing.T) {
	_, a := guarded(t)
	for name, test := range map[string]struct{ metadata, spec, says string }{
		"a machine":               {"", "nodeName: pai-3", "nodeName"},
		"a placement":             {`annotations: {hivedscheduler.microsoft.com/pod-bind-info: "x"}`, "", "annotations with the GPUs of a pod"},
		"an isolation":            {`annotations: {hivedscheduler.microsoft.com/pod-leaf-cell-isolation: "0"}`, "", "annotations with the GPUs of a pod"},
		"a device":                {`annotations: {cdi.k8s.io/x: nvidia.com/gpu=all}`, "", "annotations with the GPUs of a pod"},
		"a finalizer":             {"finalizers: [evil.example/x]", "", "finalizers"},
		"the platform's priority": {"", "priorityClassName: system-node-critical", "priorityClassName"},
		"a service's priority":    {"", "priorityClassName: pai-critical", "priorityClassName"},
		"all taints":              {"", "tolerations: [{operator: Exists}]", "tolerations"},
		"a master":                {"", "tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]", "tolerations"},
		"cells, past the queue":   {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}], resources: {limits: {hivedscheduler.microsoft.com/pod-scheduling-enable: 1}}}]", "needs schedulerName"},
		"all GPUs":                {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]", "NVIDIA_VISIBLE_DEVICES gives access to GPUs of others"},
		"all GPUs, at the start":  {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}]}]\ninitContainers: [{name: b, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: \"0\"}]}]", "NVIDIA_VISIBLE_DEVICES gives access to GPUs of others"},
		"GPUs by another field":   {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['mine']\"}}}]}]", "NVIDIA_VISIBLE_DEVICES gives access to GPUs of others"},
		"GPUs by a ConfigMap":     {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, valueFrom: {configMapKeyRef: {name: a, key: b}}}]}]", "NVIDIA_VISIBLE_DEVICES gives access to GPUs of others"},
		"an account":              {"", "serviceAccountName: other", "serviceAccountName is a different account"},
		"a Secret":                {"", "volumes: [{name: v, secret: {secretName: other-spec}}]", "a volume uses a Secret of another job"},
		"a Secret like its own":   {"", "volumes: [{name: v, secret: {secretName: mine2-spec}}]", "a volume uses a Secret of another job"},
		"a projected Secret":      {"", "volumes: [{name: v, projected: {sources: [{secret: {name: other-spec}}]}}]", "a volume uses a Secret of another job"},
		"a Secret's key":          {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}, {name: A, valueFrom: {secretKeyRef: {name: other-spec, key: spec.json}}}]}]", "a variable comes from a Secret"},
		"a Secret's keys":         {"", "containers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}], envFrom: [{secretRef: {name: other-spec}}]}]", "a variable comes from a Secret"},
		"a login":                 {"", "imagePullSecrets: [{name: other-regcred}]", "imagePullSecrets names a Secret"},
		"an export":               {"", "volumes: [{name: v, nfs: {server: s, path: /}}]", "volumes of a job are"},
		"a driver":                {"", "volumes: [{name: v, csi: {driver: d}}]", "volumes of a job are"},
	} {
		for _, kind := range []string{"Pod", "Framework"} {
			t.Run(name+" in a "+kind, func(t *testing.T) {
				err := a.apply(t, jobObject(t, kind, test.metadata, test.spec), true)
				require.Error(t, err)
				assert.True(t, apierrors.IsInvalid(err), "%v", err)
				assert.ErrorContains(t, err, test.says)
			})
		}
	}
	t.Run("all GPUs, by the image", func(t *testing.T) {
		err := a.apply(t, jobObject(t, "Pod", "", "containers: [{name: app, image: i}]"), true)
		assert.ErrorContains(t, err, `is not set`)
		err = a.apply(t, jobObject(t, "Pod", "", "containers: [{name: app, image: i, envFrom: [{configMapRef: {name: a}}], resources: {limits: {nvidia.com/gpu: 1}}}]"), true)
		assert.ErrorContains(t, err, `envFrom can override NVIDIA_VISIBLE_DEVICES`)
	})
}

func TestJobsMayTakeWhatIsTheirs(t *testing.T) {
	_, a := guarded(t)
	isolation := `valueFrom: {fieldRef: {fieldPath: "metadata.annotations['hivedscheduler.microsoft.com/pod-leaf-cell-isolation']"}}`
	for name, test := range map[string]struct{ metadata, spec string }{
		"nothing":            {"", ""},
		"its own Secrets":    {"", "volumes: [{name: v, secret: {secretName: mine-spec}}]\nimagePullSecrets: [{name: mine-regcred}, {name: pai-registry}]"},
		"a priority":         {"", "priorityClassName: pai-job-crit"},
		"a taint of its own": {"", "tolerations: [{key: gpu, operator: Exists}]"},
		"cells":              {"", "schedulerName: pai-scheduler\ncontainers: [{name: app, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, " + isolation + "}], resources: {limits: {hivedscheduler.microsoft.com/pod-scheduling-enable: 1}}}]"},
		"the device plugin":  {"", "containers: [{name: app, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]"},
		"common volumes":     {"", "volumes: [{name: a, emptyDir: {}}, {name: b, configMap: {name: c}}, {name: d, persistentVolumeClaim: {claimName: e}}, {name: f, image: {reference: i}}]"},
	} {
		for _, kind := range []string{"Pod", "Framework"} {
			t.Run(name+" in a "+kind, func(t *testing.T) {
				assert.NoError(t, a.apply(t, jobObject(t, kind, test.metadata, test.spec), true))
			})
		}
	}
}

// A Framework that was created before the rules can still be stopped, and its finalizer can still be removed.
func TestFrameworksOfBeforeTheRulesCanBeStopped(t *testing.T) {
	c := kubetest.Start(t)
	ensureNamespaces(t, c)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(JobDefinition, &crd.Object))
	require.NoError(t, newApplier(t, c).apply(t, *crd, false))
	old := jobObject(t, "Framework", "", "nodeName: n1")
	old.SetName("old")
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return newApplier(t, c).apply(t, old, false) == nil, nil
	}))
	_, a := guarded(t)
	old.SetFinalizers([]string{frameworkv1.Finalizer})
	require.NoError(t, a.apply(t, old, false), "the controller adds its finalizer")
	require.NoError(t, unstructured.SetNestedField(old.Object, "Stop", "spec", "executionType"))
	require.NoError(t, a.apply(t, old, false), "and a user stops it")
	old.SetFinalizers(nil)
	require.NoError(t, a.apply(t, old, false))
	a.remove(t, old)
}
