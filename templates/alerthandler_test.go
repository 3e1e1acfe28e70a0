package templates

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/alerthandler"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
)

// The rights in the alert handler's chart suffice for its work, and its account can't change anything else in jobs and machines.
func TestTheAlertHandlerHasTheRightsForItsWorkAndNoMore(t *testing.T) {
	c := kubetest.Start(t)
	ensureNamespaces(t, c)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(JobDefinition, &crd.Object))
	require.NoError(t, newApplier(t, c).apply(t, *crd, false))
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	manifest, err := renderOn(t, load(t, "alert-handler"), map[string]any{"restartMachines": true}, capabilities)
	require.NoError(t, err)
	require.Contains(t, manifest, "restart-order")
	off, err := renderOn(t, load(t, "alert-handler"), map[string]any{}, capabilities)
	require.NoError(t, err)
	require.NotContains(t, off, "restart-order", "no right that it doesn't need")
	a := newApplier(t, c)
	for _, o := range objects(t, manifest) {
		if k := o.GetKind(); strings.HasPrefix(k, "ValidatingAdmissionPolicy") || strings.Contains(k, "Role") || k == "CustomResourceDefinition" {
			require.NoError(t, a.apply(t, o, false), "%s %s", k, o.GetName())
			if k != "CustomResourceDefinition" {
				t.Cleanup(func() { a.remove(t, o) })
			}
		}
	}
	sick, err := c.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sick-1", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"x": "y"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	sick.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: checks.ConditionGPUsUnhealthy, Status: corev1.ConditionFalse}}
	_, err = c.Client.CoreV1().Nodes().UpdateStatus(t.Context(), sick, metav1.UpdateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Client.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), "sick-1", metav1.DeleteOptions{}))
	})
	objects, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": jobv1.GroupVersion.String(), "kind": "Framework",
		"metadata": map[string]any{"name": jobv1.ObjectName("ann", "idle"), "labels": map[string]any{jobv1.LabelUser: "ann"}, "annotations": map[string]any{jobv1.AnnotationJobName: "idle"}},
		"spec": map[string]any{"executionType": "Start", "retryPolicy": map[string]any{}, "taskRoles": []any{map[string]any{"name": "worker", "taskNumber": int64(1), "frameworkAttemptCompletionPolicy": map[string]any{},
			"task": map[string]any{"retryPolicy": map[string]any{}, "pod": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "x"}}}}}}}},
	}}
	jobs := objects.Resource(jobv1.Resource).Namespace(kube.JobNamespace)
	require.Eventually(t, func() bool {
		_, err := jobs.Create(t.Context(), job, metav1.CreateOptions{})
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	t.Cleanup(func() {
		require.NoError(t, jobs.Delete(context.WithoutCancel(t.Context()), job.GetName(), metav1.DeleteOptions{}))
		require.NoError(t, objects.Resource(actionsv1.Actions).DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{}))
	})

	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:pai-system:alert-handler", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	own, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	// The patches are dry runs, so that they change nothing even before the rules hold.
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	patchNode := func(ctx context.Context, body string) error {
		_, err := client.CoreV1().Nodes().Patch(ctx, "sick-1", types.MergePatchType, []byte(body), dry)
		return err
	}
	patchJob := func(ctx context.Context, body string) error {
		_, err := own.Resource(jobv1.Resource).Namespace(kube.JobNamespace).Patch(ctx, job.GetName(), types.MergePatchType, []byte(body), dry)
		return err
	}
	var node, refused error
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		node, refused = patchNode(ctx, `{"metadata":{"labels":{"a":"c"}}}`), patchJob(ctx, `{"metadata":{"labels":{"a":"c"}}}`)
		return node != nil && strings.Contains(node.Error(), "and nothing else") && refused != nil && strings.Contains(refused.Error(), "and nothing else"), nil
	}), "the rules take no effect: %v, %v", node, refused)
	for _, body := range []string{
		`{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`, `{"metadata":{"annotations":{"x":"z"}}}`, `{"metadata":{"annotations":{"x":null}}}`, `{"metadata":{"finalizers":["a/b"]}}`,
		`{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, `{"spec":{"providerID":"x"}}`, `{"spec":{"podCIDR":"10.1.0.0/24","podCIDRs":["10.1.0.0/24"]}}`, `{"metadata":{"annotations":{"paictl.openpai.org/gpu-answers":"[]"}}}`, `{"metadata":{"annotations":{"paictl.openpai.org/restart-answer":"{}"}}}`,
	} {
		require.ErrorContains(t, patchNode(t.Context(), body), "and nothing else", body)
	}
	require.NoError(t, patchNode(t.Context(), `{"metadata":{"annotations":{"paictl.openpai.org/restart-order":"{}"}}}`))
	for _, body := range []string{
		`{"spec":{"description":"x"}}`, `{"spec":{"executionType":"Stop","description":"x"}}`, `{"metadata":{"annotations":{"jobName":"x"}}}`, `{"spec":{"executionType":"Stop","retryPolicy":{"maxRetryCount":3}}}`,
		`{"spec":{"executionType":"Stop","taskRoles":[]}}`, `{"metadata":{"labels":{"userName":"eve"}}}`,
		`{"spec":{"executionType":"Stop"},"metadata":{"annotations":{"paictl.openpai.org/restart":"x"}}}`, `{"metadata":{"annotations":{"paictl.openpai.org/stopped-because":"x"}}}`,
		`{"metadata":{"annotations":{"paictl.openpai.org/restart":"x","jobName":"x"}}}`, `{"spec":{"description":"x"},"metadata":{"annotations":{"paictl.openpai.org/restart":"x"}}}`,
	} {
		require.ErrorContains(t, patchJob(t.Context(), body), "and nothing else", body)
	}
	_, err = client.CoreV1().Secrets(kube.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "forbidden")

	policies, err := policy.Read([]byte(`{"limits":{"stopsPerHour":1,"stopsPerHourPerVirtualCluster":1,"requeuesPerHour":1,"requeuesPerHourPerVirtualCluster":1,"requeuesPerJob":1,"machinesPerHour":1,"machinesOutPercent":100,"returns":3,"returnsWithin":"1h"},"drainTimeout":"1m","keep":"24h","policies":[
		{"name":"idle","alerts":{"alertname":"Idle"},"steps":[{"do":"stop-job"}]},
		{"name":"broken","alerts":{"alertname":"Broken"},"steps":[{"do":"requeue-job"}]},
		{"name":"sick","alerts":{"alertname":"Sick"},"steps":[{"do":"drain"},{"do":"uncordon"},{"do":"reset-gpu"}]}]}`))
	require.NoError(t, err)
	h, err := alerthandler.New(alerthandler.Options{Config: config, JobNamespace: kube.JobNamespace, Policies: policies, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { _ = h.Run(ctx); done <- struct{}{} }()
	go func() { h.Lead(ctx); done <- struct{}{} }()
	defer func() { cancel(); <-done; <-done }()
	send := func(alerts ...policy.Alert) {
		body, err := json.Marshal(map[string]any{"alerts": alerts})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			out := httptest.NewRecorder()
			h.ServeAlerts(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/alerts", bytes.NewReader(body)))
			return out.Code == http.StatusNoContent
		}, time.Minute, 50*time.Millisecond)
	}
	send(policy.Alert{Status: "firing", Labels: map[string]string{"alertname": "Broken", "user": "ann", "job_name": "idle"}, StartsAt: time.Now()})
	require.Eventually(t, func() bool {
		j, err := jobs.Get(t.Context(), job.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		return strings.HasPrefix(j.GetAnnotations()[jobv1.AnnotationRestart], "action-")
	}, time.Minute, 50*time.Millisecond)
	send(policy.Alert{Status: "firing", Labels: map[string]string{"alertname": "Idle", "user": "ann", "job_name": "idle"}, StartsAt: time.Now()},
		policy.Alert{Status: "firing", Labels: map[string]string{"alertname": "Sick", "node": "sick-1", "gpu": "0"}, StartsAt: time.Now()})
	require.Eventually(t, func() bool {
		j, err := jobs.Get(t.Context(), job.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		execution, _, _ := unstructured.NestedString(j.Object, "spec", "executionType")
		n, err := c.Client.CoreV1().Nodes().Get(t.Context(), "sick-1", metav1.GetOptions{})
		require.NoError(t, err)
		return execution == "Stop" && !n.Spec.Unschedulable && strings.Contains(n.Annotations["paictl.openpai.org/gpu-orders"], `"by":"policy sick"`)
	}, time.Minute, 50*time.Millisecond)
}

// The REST server's account creates requests only in the name of persons, and can only cancel existing requests.
func TestTheServerRequestsForPersonsAlone(t *testing.T) {
	c := kubetest.Start(t)
	ensureNamespaces(t, c)
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	a := newApplier(t, c)
	for chart, kinds := range map[string][]string{"alert-handler": {"CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}, "rest-server": {"ClusterRole", "ClusterRoleBinding"}} {
		manifest, err := renderOn(t, load(t, chart), map[string]any{}, capabilities)
		require.NoError(t, err)
		for _, o := range objects(t, manifest) {
			if k := o.GetKind(); slices.Contains(kinds, k) {
				require.NoError(t, a.apply(t, o, false), "%s %s", k, o.GetName())
				if k != "CustomResourceDefinition" {
					t.Cleanup(func() { a.remove(t, o) })
				}
			}
		}
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:pai-system:rest-server", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	own, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	actions := own.Resource(actionsv1.Actions)
	request := func(kind string, more map[string]any) *unstructured.Unstructured {
		by := map[string]any{"kind": kind, "name": "root"}
		if kind == "person" {
			by["uid"] = "u"
		}
		meta := map[string]any{"name": "cordon-1"}
		maps.Copy(meta, more)
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": actionsv1.GroupVersion.String(), "kind": actionsv1.Kind, "metadata": meta, "spec": map[string]any{
			"do": "cordon", "machine": map[string]any{"name": "n1", "uid": "m"}, "by": by, "reason": "a test", "notAfter": "2030-01-01T00:00:00Z"}}}
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	require.Eventually(t, func() bool {
		_, err = actions.Create(t.Context(), request("operator", nil), dry)
		return err != nil && strings.Contains(err.Error(), "and nothing else")
	}, time.Minute, 50*time.Millisecond, "the rule takes no effect: %v", err)
	for name, o := range map[string]*unstructured.Unstructured{
		"a policy": request("policy", nil), "labels": request("person", map[string]any{"labels": map[string]any{"paictl.openpai.org/policy": "x"}}),
		"a finalizer": request("person", map[string]any{"finalizers": []any{"a/b"}}),
	} {
		_, err := actions.Create(t.Context(), o, dry)
		require.ErrorContains(t, err, "and nothing else", name)
	}
	_, err = actions.Create(t.Context(), request("person", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	all, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, all.Resource(actionsv1.Actions).Delete(context.WithoutCancel(t.Context()), "cordon-1", metav1.DeleteOptions{}))
	})
	patch := func(body string, sub ...string) error {
		_, err := actions.Patch(t.Context(), "cordon-1", types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
		return err
	}
	for _, body := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"finalizers":["a/b"]}}`} {
		require.ErrorContains(t, patch(body), "and nothing else", body)
	}
	require.ErrorContains(t, patch(`{"status":{"phase":"Succeeded"}}`, "status"), "forbidden")
	require.ErrorContains(t, actions.Delete(t.Context(), "cordon-1", metav1.DeleteOptions{}), "forbidden")
	require.NoError(t, patch(`{"spec":{"canceled":"not today (root)"}}`))
}
