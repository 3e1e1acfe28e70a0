package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openpai/paictl/pkg/hint"
)

// revision returns a record in the format of Helm's secrets driver.
func revision(t *testing.T, name string, n int, status helmrelease.Status) record {
	t.Helper()
	raw, err := json.Marshal(helmrelease.Release{
		Name: name, Version: n, Info: &helmrelease.Info{Status: status}, Manifest: fmt.Sprintf("revision %d", n),
		Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "demo", Version: "0.1.0"}},
	})
	require.NoError(t, err)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(raw)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return record{namespace: "ns", name: name, revision: n, status: status, data: []byte(base64.StdEncoding.EncodeToString(b.Bytes()))}
}

func TestJudgeTellsWhatHasHappened(t *testing.T) {
	const (
		deployed, superseded, failed = helmrelease.StatusDeployed, helmrelease.StatusSuperseded, helmrelease.StatusFailed
		install, upgrade             = helmrelease.StatusPendingInstall, helmrelease.StatusPendingUpgrade
		rollback                     = helmrelease.StatusPendingRollback
	)
	for name, c := range map[string]struct {
		newestFirst        []helmrelease.Status
		base, next         int
		cut, leaving       bool
		install, isAttempt bool
	}{
		"nothing was ever installed":              {next: 1, install: true},
		"all is well":                             {newestFirst: []helmrelease.Status{deployed, superseded}, base: 2, next: 3},
		"the first install was killed":            {newestFirst: []helmrelease.Status{install}, next: 1, cut: true, install: true, isAttempt: true},
		"the first install failed":                {newestFirst: []helmrelease.Status{failed}, next: 1, cut: true, install: true, isAttempt: true},
		"an upgrade was killed":                   {newestFirst: []helmrelease.Status{upgrade, deployed}, base: 1, next: 3, cut: true, isAttempt: true},
		"an upgrade was killed after an old fail": {newestFirst: []helmrelease.Status{upgrade, failed, deployed}, base: 1, next: 4, cut: true, isAttempt: true},
		"an upgrade was killed at its very end":   {newestFirst: []helmrelease.Status{upgrade, superseded}, base: 2, next: 3, cut: true},
		"a rollback was killed":                   {newestFirst: []helmrelease.Status{rollback, deployed, superseded}, base: 2, next: 4, cut: true, isAttempt: true},
		"an uninstall was killed":                 {newestFirst: []helmrelease.Status{helmrelease.StatusUninstalling}, next: 1, cut: true, leaving: true, install: true},
		"it was uninstalled with its history":     {newestFirst: []helmrelease.Status{helmrelease.StatusUninstalled, superseded}, next: 1, install: true},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			for i, status := range c.newestFirst {
				h = append(h, revision(t, "demo", len(c.newestFirst)-i, status))
			}
			p, err := h.judge()
			require.NoError(t, err)
			assert.Equal(t, c.base, p.previous())
			assert.Equal(t, c.cut, p.cut)
			assert.Equal(t, c.leaving, p.leaving)
			assert.Equal(t, c.isAttempt, p.attempt() != nil)
			assert.Equal(t, c.next, p.next().Revision)
			assert.Equal(t, c.install, p.next().IsInstall)
			assert.Equal(t, !c.install, p.next().IsUpgrade)
		})
	}
}

func TestNewestIsOneRecordPerRelease(t *testing.T) {
	got := newest([]record{
		revision(t, "b", 1, helmrelease.StatusDeployed), revision(t, "a", 9, helmrelease.StatusDeployed),
		revision(t, "a", 10, helmrelease.StatusFailed), revision(t, "c", 3, helmrelease.StatusUninstalled),
	})
	require.Len(t, got, 2)
	assert.Equal(t, "a", got[0].name)
	assert.Equal(t, 10, got[0].revision)
	r, err := got[0].release()
	require.NoError(t, err)
	assert.Equal(t, Release{Name: "a", Namespace: "ns", Chart: "demo", Version: "0.1.0", Status: "failed", Revision: 10, Manifest: "revision 10", Updated: r.Updated}, r)
	assert.Equal(t, "b", got[1].name)
}

func TestABrokenRecordIsNamed(t *testing.T) {
	r := record{namespace: "ns", name: "demo", revision: 3, data: []byte("not base64!")}
	_, err := r.release()
	assert.ErrorContains(t, err, "read revision 3 of release ns/demo")
}

func TestHelmsErrorsBecomeOneLine(t *testing.T) {
	// Helm uses hashicorp/go-multierror, which writes errors in this form.
	many := errors.New("2 errors occurred:\n\t* first\n\t* second\nline\n\n")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"one line stays":   {errors.New("plain"), "install demo: plain"},
		"a list is joined": {many, "install demo: first; second line"},
		"a list inside":    {fmt.Errorf("warning: Hook a failed: %w", many), "install demo: warning: Hook a failed: first; second line"},
	} {
		t.Run(name, func(t *testing.T) {
			err := explain("install", "demo", hint.Wrap(c.err, "do this"))
			assert.Equal(t, c.want, err.Error())
			assert.Equal(t, "do this", hint.Of(err))
			assert.ErrorIs(t, err, c.err)
		})
	}
}

func TestManyRefusalsAreOneError(t *testing.T) {
	errs := []error{nil, hint.Errorf("remedy", "a"), errors.New("b"), errors.New("c"), errors.New("d"), errors.New("e")}
	err := oneLine(errs)
	assert.Equal(t, "a; b; c; and 2 more", err.Error())
	assert.Equal(t, "remedy", hint.Of(err))
	assert.NoError(t, oneLine(make([]error, 3)))
}

func TestRenderOfflineNeedsNoCluster(t *testing.T) {
	c := load(t, map[string]string{
		"values.schema.json":  `{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`,
		"templates/b.yaml":    "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\n",
		"templates/a.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: {{ .Capabilities.KubeVersion.Version }}, found: \"{{ len (lookup \"v1\" \"Secret\" \"x\" \"y\") }}\"}\n",
		"templates/h.yaml":    "apiVersion: v1\nkind: Pod\nmetadata: {name: h, annotations: {helm.sh/hook: post-install}}\n",
		"templates/NOTES.txt": "thanks",
	})
	text, err := RenderOffline(Request{Name: "demo", Namespace: "ns", Chart: c}, "1.36.3")
	require.NoError(t, err)
	assert.Equal(t, `---
# Source: demo/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {v: v1.36.3, found: "0"}
---
# Source: demo/templates/b.yaml
apiVersion: v1
kind: Service
metadata: {name: demo, namespace: ns}
---
# Source: demo/templates/h.yaml
apiVersion: v1
kind: Pod
metadata: {name: h, annotations: {helm.sh/hook: post-install}}
`, text)

	_, err = RenderOffline(Request{Name: "demo", Namespace: "ns", Chart: c, Values: map[string]any{"x": 1}}, "1.36.3")
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "\n")
	_, err = RenderOffline(Request{Name: "demo", Chart: c}, "new")
	assert.Error(t, err)

	says := load(t, map[string]string{"templates/a.yaml": `{{ required "set password in its section" .Values.password }}`})
	_, err = RenderOffline(Request{Name: "demo", Namespace: "ns", Chart: says}, "1.36.3")
	assert.EqualError(t, err, "render demo: its chart says: set password in its section")
	assert.Contains(t, hint.Of(err), "paictl service values -n demo")

	c.Metadata.KubeVersion = ">=2"
	_, err = RenderOffline(Request{Name: "demo", Chart: c}, "1.36.3")
	assert.EqualError(t, err, "render demo: chart demo 0.1.0 needs Kubernetes >=2; the cluster has v1.36.3")
}

func TestAChartIsNotChangedByItsUse(t *testing.T) {
	c := load(t, map[string]string{
		"Chart.yaml":                   "apiVersion: v2\nname: demo\nversion: 0.1.0\ndependencies:\n  - {name: sub, version: 0.1.0, repository: \"\", condition: sub.enabled}\n",
		"values.yaml":                  "sub: {enabled: true, list: [1]}\n",
		"charts/sub/Chart.yaml":        "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
		"charts/sub/templates/s.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sub}\n",
		"charts/sub/values.yaml":       "a: 1\n",
		"templates/config-of-own.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n",
	})
	before, err := json.Marshal(c)
	require.NoError(t, err)
	off := map[string]any{"sub": map[string]any{"enabled": false}}
	text, err := RenderOffline(Request{Name: "demo", Chart: c, Values: off}, "1.36.3")
	require.NoError(t, err)
	assert.NotContains(t, text, "name: sub")
	text, err = RenderOffline(Request{Name: "demo", Chart: c}, "1.36.3")
	require.NoError(t, err)
	assert.Contains(t, text, "name: sub")
	after, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, string(before), string(after))
	require.Len(t, c.Dependencies(), 1)
}

func TestManifestsAreTakenApart(t *testing.T) {
	got, err := parseObjects("---\n# nothing\n---\n# Source: demo/templates/l.yaml\napiVersion: v1\nkind: List\nitems:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n  - {apiVersion: v1, kind: Secret, metadata: {name: b}}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: c}\nspec: {ports: [{port: 80}]}\n")
	require.NoError(t, err)
	require.Len(t, got, 3)
	assert.Equal(t, "Secret", got[1].GetKind())
	ports, _, err := unstructured.NestedSlice(got[2].Object, "spec", "ports")
	require.NoError(t, err)
	assert.Equal(t, []any{map[string]any{"port": int64(80)}}, ports)

	_, err = parseObjects("---\n# Source: demo/templates/bad.yaml\na: b\n")
	assert.EqualError(t, err, "read the manifest of demo/templates/bad.yaml: an object has no kind or no apiVersion")
}

func TestAPatchIsOnlyWhatDiffers(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		got, err := parseObjects(text)
		require.NoError(t, err)
		return got[0]
	}
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, c := range map[string]struct{ base, want, live, patch string }{
		"nothing":                {"data: {a: \"1\"}", "data: {a: \"1\"}", "data: {a: \"1\"}", ""},
		"others' fields stay":    {"data: {a: \"1\"}", "data: {a: \"1\"}", "data: {a: \"1\", b: \"2\"}", ""},
		"a field by hand":        {"data: {a: \"1\"}", "data: {a: \"1\"}", "data: {a: \"9\"}", `{"data":{"a":"1"}}`},
		"a field is taken away":  {"data: {a: \"1\", b: \"2\"}", "data: {a: \"1\"}", "data: {a: \"1\", b: \"2\"}", `{"data":{"b":null}}`},
		"a field that went away": {"data: {a: \"1\"}", "data: {a: \"1\"}", "data: {}", `{"data":{"a":"1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			patch, _, err := threeWay(object(head+c.base), object(head+c.want), object(head+c.live))
			require.NoError(t, err)
			if c.patch == "" {
				assert.Nil(t, patch)
				return
			}
			assert.JSONEq(t, c.patch, string(patch))
		})
	}
}
