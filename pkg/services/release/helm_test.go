package release

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
)

func TestASecondApplyChangesNothing(t *testing.T) {
	w := newWorld(t)
	first := w.apply(w.demo(map[string]any{"replicas": 2}))
	assert.Equal(t, Outcome{Action: Installed, Revision: 1, Manifest: first.Manifest}, first)
	assert.Contains(t, first.Manifest, "kind: Deployment")

	again := w.apply(w.demo(map[string]any{"replicas": 2}))
	assert.Equal(t, Outcome{Action: Unchanged, Revision: 1, Previous: 1, Manifest: first.Manifest}, again)

	changed := w.apply(w.demo(map[string]any{"replicas": 3}))
	assert.Equal(t, Upgraded, changed.Action)
	assert.Equal(t, 2, changed.Revision)
	assert.Equal(t, 1, changed.Previous)

	// Removed values return to the chart's values, not to the values of the last revision.
	bare := w.apply(w.demo(nil))
	assert.Equal(t, Upgraded, bare.Action)
	d, err := w.client.AppsV1().Deployments(w.namespace).Get(t.Context(), "demo", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, int32(1), *d.Spec.Replicas)

	r, err := w.manager.Get(t.Context(), w.namespace, "demo")
	require.NoError(t, err)
	assert.Equal(t, "deployed", r.Status)
	assert.Equal(t, 3, r.Revision)
	assert.Equal(t, "demo", r.Chart)
	assert.Equal(t, "0.1.0", r.Version)
	assert.Equal(t, bare.Manifest, r.Manifest)
	assert.False(t, r.Updated.IsZero())
}

func TestOnlyTheLastTenRevisionsAreKept(t *testing.T) {
	w := newWorld(t)
	chart := load(t, map[string]string{"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {n: {{ .Values.n | quote }}}\n"})
	for n := range 13 {
		w.apply(Request{Name: "demo", Namespace: w.namespace, Chart: chart, Values: map[string]any{"n": n}})
	}
	s, err := w.client.CoreV1().Secrets(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	require.NoError(t, err)
	assert.Len(t, s.Items, historyMax)
	all, err := w.manager.List(t.Context(), w.namespace)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, 13, all[0].Revision)
}

func TestWhatWasDeletedOrChangedByHandIsRepaired(t *testing.T) {
	w := newWorld(t)
	w.apply(w.demo(nil))
	want := w.end()
	ctx := t.Context()

	require.NoError(t, w.client.CoreV1().ConfigMaps(w.namespace).Delete(ctx, "demo", metav1.DeleteOptions{}))
	out := w.apply(w.demo(nil))
	assert.Equal(t, Repaired, out.Action)
	assert.Equal(t, want, w.end())

	_, err := w.client.AppsV1().Deployments(w.namespace).Patch(ctx, "demo", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	plan, err := w.manager.Plan(ctx, w.demo(nil))
	require.NoError(t, err)
	assert.Equal(t, Repaired, plan.Action)
	require.Len(t, plan.Changes, 1)
	assert.Contains(t, plan.Changes[0].Diff, "-  replicas: 7\n+  replicas: 1\n")
	assert.Equal(t, Repaired, w.apply(w.demo(nil)).Action)
	assert.Equal(t, want, w.end())

	// Changes of other programs are kept.
	_, err = w.client.AppsV1().Deployments(w.namespace).Patch(ctx, "demo", types.MergePatchType, []byte(`{"metadata":{"annotations":{"note":"x"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	assert.Equal(t, Unchanged, w.apply(w.demo(nil)).Action)
}

func TestUninstallKeepsDataAndCanBeRepeated(t *testing.T) {
	w := newWorld(t)
	w.apply(w.demo(nil))
	for range 2 {
		require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))
	}
	end := w.end()
	assert.Contains(t, end, "claim/demo-data")
	assert.NotContains(t, end, "deployment/demo")
	r, err := w.manager.Get(t.Context(), w.namespace, "demo")
	require.NoError(t, err)
	assert.Nil(t, r)

	// The release adopts the kept claim again.
	assert.Equal(t, Installed, w.apply(w.demo(nil)).Action)
}

func TestClaimsOutliveTheirReleaseWhateverTheChartSays(t *testing.T) {
	w := newWorld(t)
	files := demoFiles()
	files["templates/upstream.yaml"] = `{{ if not .Values.extra }}apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: upstream-data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
{{ end }}`
	request := func(values map[string]any) Request {
		return Request{Name: "demo", Namespace: w.namespace, Chart: load(t, files), Values: values}
	}
	w.apply(request(nil))
	require.Contains(t, w.end(), "claim/upstream-data")
	without := request(map[string]any{"extra": true})
	plan, err := w.manager.Plan(t.Context(), without)
	require.NoError(t, err)
	for _, c := range plan.Changes {
		assert.NotEqual(t, Delete, c.Action, c.Object)
	}
	w.apply(without)
	require.Contains(t, w.end(), "claim/upstream-data", "an upgrade that has no claim any more")
	w.apply(request(nil))
	require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))
	require.Contains(t, w.end(), "claim/upstream-data", "a stop")
	w.apply(request(nil))
	require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))
}

func TestRollbackGoesBack(t *testing.T) {
	w := newWorld(t)
	w.apply(w.demo(nil))
	want := w.end()
	out := w.apply(w.demo(map[string]any{"replicas": 4, "extra": true}))
	require.NoError(t, w.manager.Rollback(t.Context(), w.namespace, "demo", out.Previous))
	assert.Equal(t, want, w.end())
	assert.Equal(t, Unchanged, w.apply(w.demo(nil)).Action)

	err := w.manager.Rollback(t.Context(), w.namespace, "demo", 77)
	require.Error(t, err)
	assert.Equal(t, "go back to revision 77 of demo: release has no 77 version", err.Error())
}

func TestARefusedObjectChangesNothing(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		values map[string]any
		file   string
		want   string
	}{
		"a value of a field": {values: map[string]any{"memory": "64Foo"}, want: `deployment NS/demo is refused: `},
		"an unknown field": {
			file: "apiVersion: v1\nkind: Service\nmetadata: {name: other}\nspec: {prots: [], ports: [{port: 1}]}\n",
			want: `service NS/other is refused: `,
		},
		"a missing namespace": {
			file: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: nowhere}\n",
			want: `configmap nowhere/other is refused: namespaces "nowhere" not found`,
		},
		"an unknown kind": {
			file: "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: other}\n",
			want: `thing other: the cluster has no Thing of example.org/v1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.demo(c.values)
			if c.file != "" {
				files := demoFiles()
				files["templates/other.yaml"] = c.file
				r.Chart = load(t, files)
			}
			_, err := w.manager.Apply(t.Context(), r)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "install demo: "+strings.ReplaceAll(c.want, "NS", w.namespace))
			assert.NotContains(t, err.Error(), "\n")
			assert.NotEmpty(t, hint.Of(err))
			assert.Empty(t, w.end())
			_, err = w.manager.Plan(t.Context(), r)
			assert.Error(t, err)
		})
	}
}

func TestPlanChangesNothingAndShowsNoSecret(t *testing.T) {
	w := newWorld(t)
	plan, err := w.manager.Plan(t.Context(), w.demo(map[string]any{"password": "hunter2"}))
	require.NoError(t, err)
	assert.Equal(t, Installed, plan.Action)
	assert.Len(t, plan.Changes, 5)
	assert.Empty(t, w.end())

	w.apply(w.demo(map[string]any{"password": "hunter2", "extra": true}))
	before := w.end()
	plan, err = w.manager.Plan(t.Context(), w.demo(map[string]any{"password": "hunter3", "greeting": "bye"}))
	require.NoError(t, err)
	assert.Equal(t, before, w.end())
	assert.Equal(t, Upgraded, plan.Action)
	var text strings.Builder
	for _, c := range plan.Changes {
		fmt.Fprintf(&text, "%s %s\n%s", c.Action, strings.ReplaceAll(c.Object, w.namespace, "NS"), strings.ReplaceAll(c.Diff, w.namespace, "NS"))
	}
	assert.NotContains(t, text.String(), "hunter")
	assert.Equal(t, `update Secret NS/demo-credentials
--- Secret NS/demo-credentials
+++ Secret NS/demo-credentials
@@ -4,4 +4,4 @@
   name: demo-credentials
   namespace: NS
 stringData:
-  password: '********'
+  password: '******** (changed)'
update ConfigMap NS/demo
--- ConfigMap NS/demo
+++ ConfigMap NS/demo
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  greeting: hello
+  greeting: bye
 kind: ConfigMap
 metadata:
   name: demo
delete ConfigMap NS/demo-extra
`, text.String())

	same, err := w.manager.Plan(t.Context(), w.demo(map[string]any{"password": "hunter2", "extra": true}))
	require.NoError(t, err)
	assert.Equal(t, Plan{Action: Unchanged}, same)

	// A manually changed Secret is also masked.
	_, err = w.client.CoreV1().Secrets(w.namespace).Patch(t.Context(), "demo-credentials", types.MergePatchType, []byte(`{"stringData":{"password":"hunter4"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	plan, err = w.manager.Plan(t.Context(), w.demo(map[string]any{"password": "hunter2", "extra": true}))
	require.NoError(t, err)
	require.Len(t, plan.Changes, 1)
	assert.Contains(t, plan.Changes[0].Diff, "+  password: '******** (changed)'")
	assert.NotContains(t, plan.Changes[0].Diff, "aHVudGVy") // base64 of "hunter"
}

func TestForeignObjectsAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Data: map[string]string{"greeting": "mine"}}
	_, err := w.client.CoreV1().ConfigMaps(w.namespace).Create(ctx, mine, metav1.CreateOptions{})
	require.NoError(t, err)
	before := w.end()
	_, err = w.manager.Apply(ctx, w.demo(nil))
	require.Error(t, err)
	assert.Equal(t, "install demo: configmap "+w.namespace+"/demo already exists and is not this service's", err.Error())
	assert.Contains(t, hint.Of(err), "kubectl delete configmaps demo -n "+w.namespace)
	assert.Equal(t, before, w.end())

	_, err = w.client.CoreV1().ConfigMaps(w.namespace).Patch(ctx, "demo", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"meta.helm.sh/release-name":"other","meta.helm.sh/release-namespace":"there"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = w.manager.Apply(ctx, w.demo(nil))
	assert.ErrorContains(t, err, "already exists and belongs to release there/other")

	// An object of the platform without Helm's labels and annotations is adopted.
	_, err = w.client.CoreV1().ConfigMaps(w.namespace).Patch(ctx, "demo", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":null,"labels":{"app.kubernetes.io/part-of":"paictl"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	w.apply(w.demo(nil))
	m, err := w.client.CoreV1().ConfigMaps(w.namespace).Get(ctx, "demo", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "hello", m.Data["greeting"])
	assert.Equal(t, "demo", m.Annotations["meta.helm.sh/release-name"])
}

func TestAChartThatMakesUpPasswordsIsNotUpgradedForThem(t *testing.T) {
	w := newWorld(t)
	chart := load(t, map[string]string{"templates/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: one}\nstringData: {p: {{ randAlphaNum 12 }}, n: {{ .Values.n | quote }}}\n"})
	r := Request{Name: "demo", Namespace: w.namespace, Chart: chart, Values: map[string]any{"n": 1}}
	w.apply(r)
	assert.Equal(t, Unchanged, w.apply(r).Action)
	r.Values = map[string]any{"n": 2}
	assert.Equal(t, Upgraded, w.apply(r).Action)
}

func TestManyReleasesAreAppliedAtOnce(t *testing.T) {
	w := newWorld(t)
	chart := load(t, demoFiles())
	var group errgroup.Group
	for n := range 8 {
		group.Go(func() error {
			name := fmt.Sprintf("many-%d", n)
			files := load(t, map[string]string{"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"})
			_, err := w.manager.Apply(t.Context(), Request{Name: name, Namespace: w.namespace, Chart: files})
			if err != nil {
				return err
			}
			_, err = w.manager.Plan(t.Context(), Request{Name: "shared", Namespace: w.namespace, Chart: chart})
			return err
		})
	}
	require.NoError(t, group.Wait())
	all, err := w.manager.List(t.Context(), w.namespace)
	require.NoError(t, err)
	assert.Len(t, all, 8)
}

func TestRenderIsWhatApplySends(t *testing.T) {
	w := newWorld(t)
	text, err := w.manager.Render(t.Context(), w.demo(nil))
	require.NoError(t, err)
	assert.Equal(t, text, w.apply(w.demo(nil)).Manifest)
}

func TestACancelledApplyEndsAtOnce(t *testing.T) {
	w := newWorld(t)
	files := demoFiles()
	files["templates/hook.yaml"] = `apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.org/a:1}]}}}
`
	ctx, cancel := context.WithCancel(t.Context())
	done, demo := make(chan error, 1), load(t, files)
	go func() {
		_, err := w.manager.Apply(ctx, Request{Name: "demo", Namespace: w.namespace, Chart: demo})
		done <- err
	}()
	require.Eventually(t, func() bool {
		_, err := w.client.BatchV1().Jobs(w.namespace).Get(t.Context(), "hook", metav1.GetOptions{})
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
	cancel()
	assert.ErrorIs(t, <-done, context.Canceled)

	// The chart no longer contains the hook, so the release is repaired.
	assert.Equal(t, Repaired, w.apply(w.demo(nil)).Action)
}
