package controller_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/templates"
)

// define replaces the CustomResourceDefinition of Frameworks. If checked is false, the definition accepts any pod template, like the definition
// before version 0.2.
func (w *cluster) define(checked bool) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context()) // it is called at the end of a test, too
	want := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal(templates.JobDefinition, &want.Object))
	if !checked {
		versions, _, _ := unstructured.NestedSlice(want.Object, "spec", "versions")
		pod := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "taskRoles", "items", "properties", "task", "properties", "pod"}
		require.NoError(w.t, unstructured.SetNestedMap(versions[0].(map[string]any),
			map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}, pod...))
		roles, _, _ := unstructured.NestedMap(versions[0].(map[string]any), pod[:6]...)
		delete(roles, "x-kubernetes-validations")
		require.NoError(w.t, unstructured.SetNestedMap(versions[0].(map[string]any), roles, pod[:6]...))
		require.NoError(w.t, unstructured.SetNestedSlice(want.Object, versions, "spec", "versions"))
	}
	require.NoError(w.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		have := &unstructured.Unstructured{}
		have.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		require.NoError(w.t, w.c.Get(ctx, client.ObjectKeyFromObject(want), have))
		have.Object["spec"] = want.Object["spec"]
		return w.c.Update(ctx, have)
	}))
}

// lax makes the API accept any pod template, and creates a Framework with the given template.
func (w *cluster) lax(name, pod string) {
	w.t.Helper()
	w.define(false)
	w.t.Cleanup(func() { w.define(true) })
	o := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal([]byte(`
apiVersion: frameworkcontroller.microsoft.com/v1
kind: Framework
metadata: {name: `+name+`, namespace: `+w.namespace+`}
spec:
  executionType: Start
  retryPolicy: {fancyRetryPolicy: true, maxRetryCount: -2}
  taskRoles: [{name: a, taskNumber: 1, task: {pod: `+pod+`}}]
`), &o.Object))
	w.eventually("the API takes any template", func() bool { return w.c.Create(w.t.Context(), o.DeepCopy()) == nil })
}

func TestAFrameworkThatCannotBeReadEndsAndTheOthersLive(t *testing.T) {
	for name, pod := range map[string]string{"metadata": `{metadata: [1, 2]}`, "ports": `{spec: {containers: [{name: a, ports: "80"}]}}`} {
		t.Run(name, func(t *testing.T) {
			w := simulate(t)
			w.lax("bad", pod)
			w.define(true) // a definition that is newer than the object
			w.start()
			w.submit("good", workers(1))
			w.exits("good-worker-0", 0)
			w.reaches("good", v1.Completed)
			f := w.reaches("bad", v1.Completed)
			assert.Equal(t, int32(-201), f.Status.AttemptStatus.CompletionStatus.Code)
			assert.Contains(t, f.Status.AttemptStatus.CompletionStatus.Diagnostics, "spec: ")
			assert.Zero(t, f.Status.RetryPolicyStatus.TotalRetriedCount)
			assert.NotNil(t, w.store.job("bad"), "it is in the history")
		})
	}
}

func TestARunningJobWhoseTemplateIsDamagedEnds(t *testing.T) {
	w := begin(t)
	f := w.submit("damaged", workers(2))
	w.until("damaged", "runs", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == 2 })
	w.define(false)
	t.Cleanup(func() { w.define(true) })
	w.eventually("the API takes the change", func() bool {
		return w.c.Patch(t.Context(), f, client.RawPatch("application/json-patch+json",
			[]byte(`[{"op": "replace", "path": "/spec/taskRoles/0/task/pod", "value": {"spec": 5}}]`))) == nil
	})
	f = w.reaches("damaged", v1.Completed)
	assert.Equal(t, int32(-201), f.Status.AttemptStatus.CompletionStatus.Code)
	pods := &corev1.PodList{}
	require.NoError(t, w.c.List(t.Context(), pods, client.InNamespace(w.namespace)))
	assert.Empty(t, pods.Items)
}

func TestAFrameworkOfTooManyTasksEndsBeforeAnyIsMade(t *testing.T) {
	w := simulate(t)
	w.lax("small", "{spec: {}}")
	r := workers(6000)
	other := *r.DeepCopy()
	other.Name = "other"
	w.submit("huge", r, other)
	w.define(true)
	w.start()
	f := w.reaches("huge", v1.Completed)
	assert.Equal(t, int32(-201), f.Status.AttemptStatus.CompletionStatus.Code)
	assert.Contains(t, f.Status.Message, "12000 tasks")
	maps := &corev1.ConfigMapList{}
	require.NoError(t, w.c.List(t.Context(), maps, client.InNamespace(w.namespace), client.MatchingLabels{v1.LabelFramework: "huge"}))
	assert.Empty(t, maps.Items)
}
