package templates

import (
	"bytes"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	actions "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/kube"
	people "github.com/openpai/paictl/pkg/people/v1"
)

var update = flag.Bool("update", false, "write the copies of the library and the golden files")

// names returns the names of the services that have a chart.
func names(t *testing.T) []string {
	t.Helper()
	entries, err := fs.ReadDir(Charts(), "charts")
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	require.NotEmpty(t, out)
	return out
}

// eachChart runs f as a subtest for every chart.
func eachChart(t *testing.T, f func(t *testing.T, c *chart.Chart)) {
	t.Helper()
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) { f(t, load(t, name)) })
	}
}

// load reads a chart from its folder, so that -update sees what it has just written.
func load(t *testing.T, name string) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(filepath.Join("charts", name))
	require.NoError(t, err)
	require.Equal(t, name, c.Name(), "a chart is named as its folder")
	return c
}

// values returns the values in testdata/values/<file>.yaml, or an empty map if the file doesn't exist.
func values(t *testing.T, file string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "values", file+".yaml"))
	if os.IsNotExist(err) {
		return map[string]any{}
	}
	require.NoError(t, err)
	out := map[string]any{}
	require.NoError(t, yaml.UnmarshalStrict(data, &out))
	return out
}

// A variant is a set of values for rendering every chart.
type variant struct {
	name   string
	values func(t *testing.T, chart string) map[string]any
}

// variants lists the variants: a plain "helm install" with only the required values, and the values of paictl with every part of the chart enabled.
var variants = []variant{
	{"plain", func(t *testing.T, chart string) map[string]any { return values(t, chart+".plain") }},
	{"paictl", func(t *testing.T, chart string) map[string]any {
		v := values(t, chart)
		own, _ := v["global"].(map[string]any) // global values of this service only
		affinity, named := v["affinity"]
		maps.Copy(v, values(t, "paictl"))
		maps.Copy(v["global"].(map[string]any), own)
		switch load(t, chart).Metadata.Annotations[annotationPlacement] {
		case "none":
			delete(v, "affinity")
			delete(v, "tolerations")
		case "all":
			delete(v, "affinity")
			v["tolerations"] = []any{map[string]any{"operator": "Exists"}}
		}
		if named {
			v["affinity"] = affinity
		}
		return v
	}},
}

// render returns the manifests of a chart, sorted by the names that Helm's template engine gives them.
func render(t *testing.T, c *chart.Chart, vals map[string]any) (string, error) {
	t.Helper()
	return renderOn(t, c, vals, chartutil.DefaultCapabilities)
}

// renderOn renders a chart for a cluster with the given Kubernetes version and APIs.
func renderOn(t *testing.T, c *chart.Chart, vals map[string]any, capabilities *chartutil.Capabilities) (string, error) {
	t.Helper()
	require.NoError(t, chartutil.ProcessDependencies(c, vals))
	options := chartutil.ReleaseOptions{Name: c.Name(), Namespace: kube.SystemNamespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, vals, options, capabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(files[name])
		if text == "" || strings.HasSuffix(name, ".tpl") || strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		out.WriteString("---\n# Source: " + name + "\n" + strings.TrimPrefix(text, "---\n") + "\n")
	}
	return out.String(), nil
}

var documentEnd = regexp.MustCompile(`(?m)^---\s*$`)

// objects parses rendered manifests. It omits empty documents.
func objects(t *testing.T, manifest string) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for _, doc := range documentEnd.Split(manifest, -1) {
		o := map[string]any{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(doc), &o), doc)
		if len(o) > 0 {
			out = append(out, unstructured.Unstructured{Object: o})
		}
	}
	return out
}

// A rendering is a chart with the objects that one variant of values produces.
type rendering struct {
	chart   *chart.Chart
	objects []unstructured.Unstructured
}

// renderings caches the renderings for all tests, by chart and variant, because the definition of jobs alone takes 100 ms to parse.
var renderings = map[string]rendering{}

// eachRendering runs f as a subtest for the objects of every chart in every variant.
func eachRendering(t *testing.T, f func(t *testing.T, c *chart.Chart, objects []unstructured.Unstructured)) {
	t.Helper()
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			for _, v := range variants {
				t.Run(v.name, func(t *testing.T) {
					r, ok := renderings[name+"/"+v.name]
					if !ok {
						r.chart = load(t, name)
						manifest, err := render(t, r.chart, v.values(t, name))
						require.NoError(t, err)
						r.objects = objects(t, manifest)
						renderings[name+"/"+v.name] = r
					}
					f(t, r.chart, r.objects)
				})
			}
		})
	}
}

// golden compares text with a golden file. With -update, it writes the text to the file instead.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "write it with: go test ./templates -update")
	if text == string(want) {
		return
	}
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(want)), B: difflib.SplitLines(text), FromFile: file, ToFile: "now", Context: 2,
	})
	require.NoError(t, err)
	if diff != "" {
		t.Errorf("this is what the change does; record it with: go test ./templates -update\n%s", diff)
	}
}

// abridged replaces contents of chart files in a manifest (specs of definitions, dashboards, alert rules) with the names of these files. Text that a
// template has changed remains.
func abridged(t *testing.T, c *chart.Chart, manifest string) string {
	t.Helper()
	replace := func(text, name string) {
		manifest = strings.ReplaceAll(manifest, "\n"+text+"\n", "\n"+name+"\n")
	}
	value := func(text, name string) {
		replace("    "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    "), "    <"+name+">")
	}
	for _, f := range c.Files {
		text := string(f.Data)
		switch {
		case f.Name == "files/crd.yaml":
			for _, o := range objects(t, text) {
				spec := toYAML(t, map[string]any{"spec": o.Object["spec"]})
				replace(strings.TrimSpace(spec), "spec: <"+o.GetName()+" in "+f.Name+">")
			}
		case strings.HasPrefix(f.Name, "files/rules/"):
			var rules any
			require.NoError(t, yaml.Unmarshal(f.Data, &rules))
			value(toYAML(t, rules), f.Name)
		case strings.HasPrefix(f.Name, "files/"):
			value(text, f.Name)
		}
	}
	return manifest
}

func toYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// Every chart carries a copy of the library, so that it also installs without paictl.
func TestChartsCarryTheLibraryAsItIs(t *testing.T) {
	library, err := os.ReadFile("library/_pai.tpl")
	require.NoError(t, err)
	for _, name := range names(t) {
		golden(t, filepath.Join("charts", name, "templates", "_pai.tpl"), string(library))
	}
}

func TestTheDefinitionsOfPeopleAreThoseOfTheirTypes(t *testing.T) {
	golden(t, filepath.Join("charts", "rest-server", "files", "crd.yaml"), string(people.CRD))
}

func TestTheDefinitionOfActionsIsThatOfTheirType(t *testing.T) {
	golden(t, filepath.Join("charts", "alert-handler", "files", "crd.yaml"), string(actions.CRD))
}

func TestRenderedManifestsAreAsRecorded(t *testing.T) {
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		for _, v := range variants {
			manifest, err := render(t, c, v.values(t, c.Name()))
			require.NoError(t, err)
			file := c.Name() + ".yaml"
			if v.name == "plain" {
				file = c.Name() + ".plain.yaml"
			}
			golden(t, filepath.Join("testdata", "golden", file), abridged(t, c, manifest))
		}
	})
}

// "paictl service delete" empties the folders of volumes that have the label of the service. Volumes of the operator must not have this label.
func TestVolumesOfTheOperatorBelongToNoService(t *testing.T) {
	volume := map[string]any{"service": "prometheus", "claim": "mine", "namespace": "pai-system", "owner": 1000, "size": "1Gi", "node": "a", "path": "/mnt/mine"}
	manifest, err := render(t, load(t, "storage"), map[string]any{"local": map[string]any{"volumes": []any{volume}}})
	require.NoError(t, err)
	require.Contains(t, manifest, "path: \"/mnt/mine\"")
	require.NotContains(t, manifest, "paictl.openpai.org/service")
}

// Virtual clusters change while gangs run. Such a change must not replace the scheduler's pods, which count GPUs.
func TestAChangeOfVirtualClustersRestartsNoScheduler(t *testing.T) {
	deployment := func(change map[string]any) (config string, template any) {
		v := variants[0].values(t, "scheduler")
		maps.Copy(v, change)
		manifest, err := render(t, load(t, "scheduler"), v)
		require.NoError(t, err)
		for _, o := range objects(t, manifest) {
			switch o.GetKind() {
			case "ConfigMap":
				if o.GetName() == "scheduler-configuration" {
					config = o.Object["data"].(map[string]any)["hivedscheduler.yaml"].(string)
				}
			case "Deployment":
				template = o.Object["spec"]
			}
		}
		return config, template
	}
	config, before := deployment(nil)
	changed, after := deployment(map[string]any{"virtualClusters": map[string]any{"other": map[string]any{}}})
	require.NotEqual(t, config, changed)
	require.Equal(t, before, after)
	_, after = deployment(map[string]any{"kubeScheduler": map[string]any{"maxBackoffSeconds": 11}})
	require.NotEqual(t, before, after, "kube-scheduler reads its configuration when it starts")
}

func TestAnApiServerThatIsNotScrapedIsNotToldToBeDown(t *testing.T) {
	for scraped, tell := range map[bool]func(require.TestingT, any, any, ...any){true: require.Contains, false: require.NotContains} {
		manifest, err := render(t, load(t, "prometheus"), map[string]any{"scrape": map[string]any{"apiserver": scraped}})
		require.NoError(t, err)
		tell(t, manifest, "alert: ApiServerDown")
		require.Contains(t, manifest, "alert: ApiServerSlow")
	}
}
