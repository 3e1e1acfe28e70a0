package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/version"
)

// gears returns a definition of the kind Gear in a separate group. Objects are stored in the last version. v2 contains the field color.
func gears(group string, versions ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Gear, plural: gears, singular: gear, listKind: GearList}
  versions:
`, group)
	for i, v := range versions {
		color := ""
		if v == "v2" {
			color = ", color: {type: string}"
		}
		fmt.Fprintf(&b, `  - name: %s
    served: true
    storage: %t
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}%s}}}}}
`, v, i == len(versions)-1, color)
	}
	return b.String()
}

func gear(group, version, name, spec string) string {
	return fmt.Sprintf("apiVersion: %s/%s\nkind: Gear\nmetadata: {name: %s}\nspec: {%s}\n", group, version, name, spec)
}

// upgrade returns a request for an upgrade to a chart with the given files.
func (w world) upgrade(files map[string]string) Request {
	return Request{Name: "demo", Namespace: w.namespace, Chart: load(w.T, files), Upgrade: true}
}

func (w world) dynamic() dynamic.Interface {
	w.Helper()
	d, err := dynamic.NewForConfig(w.cluster.Config)
	require.NoError(w, err)
	return d
}

func (w world) gears(group, version string) dynamic.ResourceInterface {
	return w.dynamic().Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: "gears"}).Namespace(w.namespace)
}

func (w world) definition(group string) *unstructured.Unstructured {
	w.Helper()
	crds := schema.GroupVersionResource{Group: definitions.Group, Version: "v1", Resource: "customresourcedefinitions"}
	u, err := w.dynamic().Resource(crds).Get(w.Context(), "gears."+group, metav1.GetOptions{})
	require.NoError(w, err)
	return u
}

// write creates an object like a user. write returns the stored value of the field color.
func (w world) write(group, version, name string) string {
	w.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version, "kind": "Gear", "metadata": map[string]any{"name": name}, "spec": map[string]any{"size": int64(1), "color": "red"},
	}}
	var made *unstructured.Unstructured
	require.EventuallyWithT(w, func(c *assert.CollectT) { // the API takes a moment to serve a kind that an install has just brought
		var err error
		made, err = w.gears(group, version).Create(w.Context(), u, metav1.CreateOptions{})
		require.NoError(c, err)
	}, 30*time.Second, 50*time.Millisecond)
	color, _, _ := unstructured.NestedString(made.Object, "spec", "color")
	return color
}

func TestAnUpgradeBringsDefinitionsThatHelmLeaves(t *testing.T) {
	w := newWorld(t)
	const group = "folder.test.paictl.example"
	w.apply(w.upgrade(map[string]string{"crds/gear.yaml": gears(group, "v1"), "templates/one.yaml": gear(group, "v1", "one", "size: 1")}))
	assert.Empty(t, w.write(group, "v1", "early"), "the field isn't there yet")

	next := w.upgrade(map[string]string{"crds/gear.yaml": gears(group, "v1", "v2"), "templates/one.yaml": gear(group, "v2", "one", "size: 2, color: blue")})
	plan, err := w.manager.Plan(t.Context(), next)
	require.NoError(t, err)
	assert.Equal(t, Upgraded, plan.Action)
	require.Len(t, plan.Changes, 2)
	assert.Equal(t, "CustomResourceDefinition gears."+group, plan.Changes[0].Object)
	assert.Contains(t, plan.Changes[0].Diff, "+              color:\n")
	assert.Contains(t, plan.Changes[1].Diff, "+  color: blue\n")
	assert.Equal(t, []string{"v1"}, versionsOf(w.definition(group), true), "a plan changes nothing")

	assert.Equal(t, Upgraded, w.apply(next).Action)
	assert.Equal(t, "red", w.write(group, "v2", "late"))
	one, err := w.gears(group, "v2").Get(t.Context(), "one", metav1.GetOptions{})
	require.NoError(t, err)
	color, _, _ := unstructured.NestedString(one.Object, "spec", "color")
	assert.Equal(t, "blue", color)
	assert.Equal(t, Unchanged, w.apply(next).Action)
	plan, err = w.manager.Plan(t.Context(), next)
	require.NoError(t, err)
	assert.Equal(t, Plan{Action: Unchanged}, plan)
}

func TestAStartLeavesDefinitionsOfTheFolder(t *testing.T) {
	w := newWorld(t)
	const group = "start.test.paictl.example"
	w.apply(w.upgrade(map[string]string{"crds/gear.yaml": gears(group, "v1")}))
	next := w.upgrade(map[string]string{"crds/gear.yaml": gears(group, "v1", "v2")})
	next.Upgrade = false
	w.apply(next)
	assert.Equal(t, []string{"v1"}, versionsOf(w.definition(group), true))
}

func TestADefinitionOfAnotherReleaseIsLeftToIt(t *testing.T) {
	w := newWorld(t)
	const group = "others.test.paictl.example"
	owner := w.upgrade(map[string]string{"templates/gear.yaml": gears(group, "v1")})
	owner.Name = "owner"
	w.apply(owner)
	r := w.upgrade(map[string]string{"crds/gear.yaml": gears(group, "v1", "v2"), "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\n"})
	assert.Equal(t, Installed, w.apply(r).Action)
	assert.Equal(t, Unchanged, w.apply(r).Action)
	assert.Equal(t, []string{"v1"}, versionsOf(w.definition(group), true))
}

func TestADefinitionAmongTheTemplatesComesBeforeItsObjects(t *testing.T) {
	w := newWorld(t)
	const group = "template.test.paictl.example"
	for _, upgrade := range []bool{true, false} {
		r := w.upgrade(map[string]string{"templates/gear.yaml": gears(group, "v1"), "templates/one.yaml": gear(group, "v1", "one", "size: 1")})
		w.apply(r)
		next := w.upgrade(map[string]string{"templates/gear.yaml": gears(group, "v1", "v2"), "templates/one.yaml": gear(group, "v2", "one", "size: 1, color: blue")})
		next.Upgrade = upgrade
		assert.Equal(t, Upgraded, w.apply(next).Action)
		one, err := w.gears(group, "v2").Get(t.Context(), "one", metav1.GetOptions{})
		require.NoError(t, err)
		color, _, _ := unstructured.NestedString(one.Object, "spec", "color")
		assert.Equal(t, "blue", color)
		assert.Equal(t, Unchanged, w.apply(next).Action)
		require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))
		w.manager = manager(t, w.cluster)
	}
}

func TestAVersionInWhichObjectsAreStoredIsNotDropped(t *testing.T) {
	w := newWorld(t)
	for place, group := range map[string]string{"crds": "storedfolder.test.paictl.example", "templates": "storedtemplate.test.paictl.example"} {
		t.Run(place, func(t *testing.T) {
			w := w
			w.T = t
			w.apply(w.upgrade(map[string]string{place + "/gear.yaml": gears(group, "v1"), "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\n"}))
			w.write(group, "v1", "one")
			before := w.end()
			next := w.upgrade(map[string]string{place + "/gear.yaml": gears(group, "v2")})
			_, planErr := w.manager.Plan(t.Context(), next)
			_, err := w.manager.Apply(t.Context(), next)
			for _, err := range []error{planErr, err} {
				require.ErrorContains(t, err, "customresourcedefinition gears."+group+": the chart no longer has version v1, in which the cluster stores objects")
				assert.Contains(t, hint.Of(err), "status.storedVersions")
			}
			assert.Equal(t, before, w.end())
			_, err = w.gears(group, "v1").Get(t.Context(), "one", metav1.GetOptions{})
			require.NoError(t, err)
			require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))
		})
	}
}

func TestADefinitionThatAChartDropsStaysAndIsNamed(t *testing.T) {
	w := newWorld(t)
	const folder, template = "keptfolder.test.paictl.example", "kepttemplate.test.paictl.example"
	rest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\n"
	w.apply(w.upgrade(map[string]string{"crds/a.yaml": gears(folder, "v1"), "templates/b.yaml": gears(template, "v1"), "templates/c.yaml": rest}))
	w.write(folder, "v1", "one")
	w.write(template, "v1", "one")
	next := w.upgrade(map[string]string{"templates/c.yaml": rest})
	plan, err := w.manager.Plan(t.Context(), next)
	require.NoError(t, err)
	assert.Equal(t, Plan{Action: Upgraded, Kept: []string{"CustomResourceDefinition gears." + template, "CustomResourceDefinition gears." + folder}}, plan)
	w.apply(next)
	for _, group := range []string{folder, template} {
		_, err := w.gears(group, "v1").Get(t.Context(), "one", metav1.GetOptions{})
		assert.NoError(t, err, group)
	}
}

func TestDefinitionsDoNotGoBackWithARollback(t *testing.T) {
	w := newWorld(t)
	const group = "back.test.paictl.example"
	first := map[string]string{"templates/gear.yaml": gears(group, "v1"), "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\ndata: {count: '1'}\n"}
	w.apply(w.upgrade(first))
	second := map[string]string{"templates/gear.yaml": gears(group, "v1", "v2"), "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\ndata: {count: '2'}\n"}
	out := w.apply(w.upgrade(second))
	assert.Equal(t, "red", w.write(group, "v2", "new"))

	require.NoError(t, w.manager.Rollback(t.Context(), w.namespace, "demo", out.Previous), "the API would refuse to drop the stored version")
	m, err := w.client.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "demo", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "1", m.Data["count"])
	one, err := w.gears(group, "v2").Get(t.Context(), "new", metav1.GetOptions{})
	require.NoError(t, err)
	color, _, _ := unstructured.NestedString(one.Object, "spec", "color")
	assert.Equal(t, "red", color)
	r, err := w.manager.Get(t.Context(), w.namespace, "demo")
	require.NoError(t, err)
	assert.Equal(t, "deployed", r.Status)
	assert.Equal(t, 3, r.Revision)
	assert.Equal(t, Upgraded, w.apply(w.upgrade(second)).Action, "the next try")
}

// becomes sets the version of paictl until the test ends.
func becomes(t *testing.T, v string) {
	t.Helper()
	was := version.Version
	version.Version = v
	t.Cleanup(func() { version.Version = was })
}

func (w world) by() string {
	w.Helper()
	r, err := w.manager.Get(w.Context(), w.namespace, "demo")
	require.NoError(w, err)
	return r.By
}

func TestAReleaseNotesWhichPaictlInstalledIt(t *testing.T) {
	w := newWorld(t)
	becomes(t, "v1.0.0+abc")
	r := w.demo(nil)
	w.apply(r)
	assert.Equal(t, "v1.0.0_abc", w.by())

	becomes(t, "v2.0.0")
	assert.Equal(t, Unchanged, w.apply(r).Action)
	assert.Equal(t, "v1.0.0_abc", w.by())
	require.NoError(t, w.manager.Settle(t.Context(), w.namespace, "demo"))
	assert.Equal(t, "v2.0.0", w.by())
	got, err := w.manager.Get(t.Context(), w.namespace, "demo")
	require.NoError(t, err)
	assert.Equal(t, 1, got.Revision, "a note is no revision")

	becomes(t, "v3.0.0")
	out := w.apply(w.demo(map[string]any{"greeting": "bye"}))
	assert.Equal(t, "v3.0.0", w.by())
	require.NoError(t, w.manager.Rollback(t.Context(), w.namespace, "demo", out.Previous))
	assert.Equal(t, "v2.0.0", w.by(), "the note goes back with the revision")

	becomes(t, strings.Repeat("x", 80))
	w.apply(w.demo(map[string]any{"greeting": "hello again"}))
	assert.Empty(t, w.by(), "what no label can say isn't noted")
}

func TestAnUpgradeThatNoRunHasSeenReadyIsUnproven(t *testing.T) {
	w := newWorld(t)
	w.apply(w.demo(nil))
	next := w.demo(map[string]any{"greeting": "two"})
	next.Upgrade = true
	assert.Equal(t, 1, w.apply(next).Previous)
	out := w.apply(next)
	assert.Equal(t, Unchanged, out.Action)
	assert.Equal(t, 1, out.Unproven)

	third := w.demo(map[string]any{"greeting": "three"})
	third.Upgrade = true
	assert.Equal(t, 1, w.apply(third).Previous, "the revision that worked, not the one that no run has seen ready")
	require.NoError(t, w.manager.Settle(t.Context(), w.namespace, "demo"))
	require.NoError(t, w.manager.Settle(t.Context(), w.namespace, "demo"))
	out = w.apply(third)
	assert.Zero(t, out.Unproven)
	assert.Equal(t, 3, out.Previous)

	// A start isn't an upgrade, so Previous is the revision directly before the new revision.
	assert.Equal(t, 3, w.apply(w.demo(map[string]any{"greeting": "four"})).Previous)
	assert.Zero(t, w.apply(w.demo(map[string]any{"greeting": "four"})).Unproven)
}

func TestOutdatedReleasesAreThoseOfAnotherChart(t *testing.T) {
	w := newWorld(t)
	becomes(t, "v1.0.0")
	r := w.demo(nil)
	w.apply(r)
	changed := demoFiles()
	changed["templates/config.yaml"] += "# another\n"
	other := Request{Name: "demo", Namespace: w.namespace, Chart: load(t, changed)}
	for _, c := range []struct {
		name    string
		request Request
		want    []string
	}{
		{"the same chart", r, nil},
		{"other values", w.demo(map[string]any{"greeting": "bye"}), nil},
		{"another chart", other, []string{"demo"}},
		{"not installed", Request{Name: "absent", Namespace: w.namespace, Chart: other.Chart}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, err := w.manager.Outdated(t.Context(), []Request{c.request})
			require.NoError(t, err)
			var got []string
			for _, rel := range old {
				got = append(got, rel.Name)
				assert.Equal(t, "v1.0.0", rel.By)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestAnUpgradeThatWasKilledAtAnyRequestIsContinued(t *testing.T) {
	w := newWorld(t)
	for k := int32(0); ; k++ {
		require.Less(t, k, int32(60))
		group := fmt.Sprintf("killed%d.test.paictl.example", k)
		files := demoFiles()
		files["crds/gear.yaml"], files["templates/one.yaml"] = gears(group, "v1"), gear(group, "v1", "one", "size: 1")
		w.apply(w.upgrade(files))
		require.NoError(t, w.manager.Settle(t.Context(), w.namespace, "demo"))
		first, err := w.manager.Get(t.Context(), w.namespace, "demo")
		require.NoError(t, err)

		files["crds/gear.yaml"], files["templates/one.yaml"] = gears(group, "v1", "v2"), gear(group, "v2", "one", "size: 1, color: blue")
		files["values.yaml"] = strings.Replace(files["values.yaml"], "hello", "bye", 1)
		next := w.upgrade(files)
		broken, count := breaking(w.cluster, k)
		_, err = manager(t, broken).Apply(t.Context(), next)
		whole := err == nil && count() <= k

		w.manager = manager(t, w.cluster) // the next run
		out := w.apply(next)
		if out.Action == Unchanged {
			assert.Equal(t, first.Revision, out.Unproven, "killed at request %d", k)
		} else {
			assert.Equal(t, first.Revision, out.Previous, "killed at request %d", k)
		}
		require.NoError(t, w.manager.Settle(t.Context(), w.namespace, "demo"))
		assert.Equal(t, Unchanged, w.apply(next).Action, "killed at request %d", k)
		assert.Equal(t, "red", w.write(group, "v2", "late"), "killed at request %d", k)
		m, err := w.client.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "demo", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "bye", m.Data["greeting"], "killed at request %d", k)
		require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))
		if whole {
			break
		}
	}
}

// record creates a Secret in the form of a revision's record.
func (w world) record(name string, revision int, data []byte) {
	w.Helper()
	_, err := w.client.CoreV1().Secrets(w.namespace).Create(w.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision),
			Labels: map[string]string{"owner": "helm", "name": name, "version": fmt.Sprint(revision), "status": "deployed"}},
		Type: "helm.sh/release.v1", Data: map[string][]byte{"release": data},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
}

func TestRecordsThatNoHelmWroteHurtTheirOwnReleaseAlone(t *testing.T) {
	w := newWorld(t)
	w.apply(w.demo(nil))
	w.record("evil", 1, []byte("garbage"))
	var bomb bytes.Buffer
	z, err := gzip.NewWriterLevel(&bomb, gzip.BestCompression)
	require.NoError(t, err)
	zeros := make([]byte, 1<<20)
	for range recordMax>>20 + 1 {
		_, err := z.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	w.record("bomb", 1, []byte(base64.StdEncoding.EncodeToString(bomb.Bytes())))

	old, err := w.manager.Outdated(t.Context(), []Request{w.demo(nil)})
	require.NoError(t, err)
	assert.Empty(t, old)
	next := w.demo(map[string]any{"greeting": "bye"})
	next.Upgrade = true
	assert.Equal(t, Upgraded, w.apply(next).Action)
	for name, want := range map[string]string{"evil": "read revision 1 of release", "bomb": "it has more than 64 MiB"} {
		r := w.demo(nil)
		r.Name, r.Upgrade = name, true
		_, err := w.manager.Plan(t.Context(), r)
		require.ErrorContains(t, err, want)
		_, err = w.manager.Outdated(t.Context(), []Request{r})
		require.ErrorContains(t, err, want)
	}
}
