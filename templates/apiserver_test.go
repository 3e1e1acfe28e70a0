package templates

import (
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	people "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/services/release"
)

// applier sends objects to an API server.
type applier struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newApplier(t *testing.T, c *kube.Cluster) applier {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(c.Client.Discovery())
	require.NoError(t, err)
	return applier{client, restmapper.NewDiscoveryRESTMapper(groups)}
}

// apply sends one object by server-side apply; dry means that the server only checks it.
func (a applier) apply(t *testing.T, o unstructured.Unstructured, dry bool) error {
	t.Helper()
	gvk := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: "test", Force: true}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = a.client.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	_, err = resource.Apply(t.Context(), o.GetName(), &o, options)
	return err
}

// remove deletes one object and fails the test on an error.
func (a applier) remove(t *testing.T, o unstructured.Unstructured) {
	t.Helper()
	gvk := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	require.NoError(t, err)
	var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = a.client.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	require.NoError(t, resource.Delete(context.WithoutCancel(t.Context()), o.GetName(), metav1.DeleteOptions{}))
}

func ensureNamespaces(t *testing.T, c *kube.Cluster) {
	t.Helper()
	for _, name := range []string{kube.SystemNamespace, kube.JobNamespace, people.Namespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := c.Client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
}

// The API server only returns a warning about unknown fields. apply returns an error, because server-side apply checks objects against the schema.
func TestARealAPIServerTakesTheManifests(t *testing.T) {
	c := kubetest.Start(t)
	ensureNamespaces(t, c)
	a := newApplier(t, c)
	eachRendering(t, func(t *testing.T, _ *chart.Chart, all []unstructured.Unstructured) {
		for _, o := range all {
			require.NoError(t, a.apply(t, o, true), "%s %s", o.GetKind(), o.GetName())
		}
	})
}

// A change of values may let a volume grow. Under the same name, all other fields of a volume must remain the same.
func TestVolumesGrowAndMoveWithoutAnError(t *testing.T) {
	c := kubetest.Start(t)
	ensureNamespaces(t, c)
	a := newApplier(t, c)
	storage := load(t, "storage")
	send := func(change func(volume map[string]any)) []string {
		volume := map[string]any{"claim": "data", "namespace": kube.SystemNamespace, "node": "n1", "path": "/data/test/data", "owner": 1, "size": "1Gi"}
		change(volume)
		manifest, err := render(t, storage, map[string]any{"local": map[string]any{"serviceVolumes": []any{volume}}})
		require.NoError(t, err)
		var volumes []string
		for _, o := range objects(t, manifest) {
			require.NoError(t, a.apply(t, o, false), "%s %s", o.GetKind(), o.GetName())
			if o.GetKind() == "PersistentVolume" || o.GetKind() == "Job" {
				volumes = append(volumes, o.GetName())
			}
		}
		return volumes
	}
	removeClassAfter(t, c)
	made := send(func(map[string]any) {})
	require.Equal(t, made, send(func(v map[string]any) { v["size"] = "2Gi" }), "a larger size is the same volume, and its folder needs nothing")
	owner := send(func(v map[string]any) { v["owner"] = 2 })
	require.NotEqual(t, made[0], owner[0], "the folder is prepared anew")
	require.Equal(t, made[1], owner[1])
	for _, key := range []string{"node", "path"} {
		moved := send(func(v map[string]any) { v[key] = map[string]string{"node": "n2", "path": "/other/test/data"}[key] })
		require.NotEqual(t, made[1], moved[1], "another %s is another volume", key)
	}
}

// removeClassAfter deletes the storage class pai-local at the end of the test, because the next test may get the same API server.
func removeClassAfter(t *testing.T, c *kube.Cluster) {
	t.Helper()
	t.Cleanup(func() {
		err := c.Client.StorageV1().StorageClasses().Delete(context.WithoutCancel(t.Context()), "pai-local", metav1.DeleteOptions{})
		require.NoError(t, err)
	})
}

// When the service storage is stopped, Helm leaves the volumes. When the service is started again, Helm adopts the volumes and the claim that uses
// them.
func TestStoppedStorageKeepsItsVolumesAndTakesThemBack(t *testing.T) {
	c := kubetest.Start(t)
	ensureNamespaces(t, c)
	helm, err := release.NewHelm(c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	removeClassAfter(t, c)
	request := release.Request{Name: "storage", Namespace: kube.SystemNamespace, Chart: load(t, "storage"), Values: map[string]any{
		"local": map[string]any{"serviceVolumes": []any{
			map[string]any{"service": "db", "claim": "stays", "namespace": kube.SystemNamespace, "node": "n1", "path": "/data/db/stays", "owner": 5, "size": "1Gi"},
		}},
	}}
	apply := func(want string) {
		t.Helper()
		out, err := helm.Apply(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, want, out.Action)
	}
	volume := func() *corev1.PersistentVolume {
		t.Helper()
		list, err := c.Client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{LabelSelector: "paictl.openpai.org/service=db"})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		return &list.Items[0]
	}
	apply(release.Installed)
	bound := volume()
	bound.Spec.ClaimRef.UID, bound.Spec.ClaimRef.ResourceVersion = "some-claim", "7"
	_, err = c.Client.CoreV1().PersistentVolumes().Update(t.Context(), bound, metav1.UpdateOptions{})
	require.NoError(t, err)
	apply(release.Unchanged)

	require.NoError(t, helm.Uninstall(t.Context(), kube.SystemNamespace, "storage"))
	require.EqualValues(t, "some-claim", volume().Spec.ClaimRef.UID)
	apply(release.Installed)
	require.EqualValues(t, "some-claim", volume().Spec.ClaimRef.UID)
	apply(release.Unchanged)
}

// When persistence.size of a service grows, paictl applies the service's claim again with the larger size. The API server accepts the change only if
// the claim's storage class allows expansion.
func TestClaimsOfLocalVolumesMayGrow(t *testing.T) {
	c := kubetest.Start(t)
	ensureNamespaces(t, c)
	a := newApplier(t, c)
	removeClassAfter(t, c)
	manifest, err := render(t, load(t, "storage"), map[string]any{})
	require.NoError(t, err)
	for _, o := range objects(t, manifest) {
		require.NoError(t, a.apply(t, o, false), "%s %s", o.GetKind(), o.GetName())
	}
	claim := func(size string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim",
			"metadata": map[string]any{"name": "grows", "namespace": kube.SystemNamespace},
			"spec": map[string]any{
				"storageClassName": "pai-local", "volumeName": "some-volume", "accessModes": []any{"ReadWriteOnce"},
				"resources": map[string]any{"requests": map[string]any{"storage": size}},
			},
		}}
	}
	require.NoError(t, a.apply(t, claim("1Gi"), false))
	claims := c.Client.CoreV1().PersistentVolumeClaims(kube.SystemNamespace)
	bound, err := claims.Get(t.Context(), "grows", metav1.GetOptions{})
	require.NoError(t, err)
	bound.Status.Phase = corev1.ClaimBound
	bound.Status.Capacity = bound.Spec.Resources.Requests
	_, err = claims.UpdateStatus(t.Context(), bound, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, a.apply(t, claim("2Gi"), false))
}

// The test compares the metrics of a real API server with the recorded list, which tests on machines without a bundle use.
func TestTheAPIServersMetricsAreAsRecorded(t *testing.T) {
	c := kubetest.Start(t)
	// Some metrics exist only after a first request.
	_, err := c.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	body, err := c.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	now := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+ \S+)$`).FindAllStringSubmatch(string(body), -1) {
		now[m[1]] = true
	}
	const file = "testdata/metrics/apiserver.txt"
	if *update {
		golden(t, file, "# What the API server of Kubernetes 1.36 answered to a test: name and type.\n"+strings.Join(slices.Sorted(maps.Keys(now)), "\n")+"\n")
	}
	told := map[string]bool{}
	for line := range now {
		name, _, _ := strings.Cut(line, " ")
		told[name] = true
	}
	base := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, q := range queries(t) {
		for _, name := range metricsOf(q.expr) {
			if strings.HasPrefix(name, "apiserver_") || strings.HasPrefix(name, "etcd_") {
				require.True(t, told[name] || told[base.ReplaceAllString(name, "")], "%s: %s asks for %s, which the API server doesn't tell", q.dashboard, q.panel, name)
			}
		}
	}
}
