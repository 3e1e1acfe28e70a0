package release

import (
	"fmt"
	"regexp"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/openpai/paictl/pkg/hint"
)

type rendering struct {
	manifest string
	hooks    []*helmrelease.Hook
}

// render renders a chart like Helm does before an install. The order and the text are equal to Helm's.
func render(e engine.Engine, c *chart.Chart, values map[string]any, o chartutil.ReleaseOptions, caps *chartutil.Capabilities) (rendering, error) {
	if v := c.Metadata.KubeVersion; v != "" && !chartutil.IsCompatibleRange(v, caps.KubeVersion.String()) {
		return rendering{}, hint.Errorf("choose a version of the chart that fits the cluster, in services-configuration.yaml",
			"chart %s %s needs Kubernetes %s; the cluster has %s", c.Name(), c.Metadata.Version, v, caps.KubeVersion.String())
	}
	all, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, o, caps, false)
	if err != nil {
		return rendering{}, fmt.Errorf("values of %s: %w", o.Name, err)
	}
	files, err := e.Render(c, all)
	if err != nil {
		return rendering{}, templateError(o.Name, err)
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return rendering{}, fmt.Errorf("templates of %s: %w", o.Name, err)
	}
	var b strings.Builder
	for _, m := range manifests {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	return rendering{b.String(), hooks}, nil
}

// refusedByTemplate matches errors of the template functions "fail" and "required".
var refusedByTemplate = regexp.MustCompile(`execution error at \(([^)]*)\): `)

// templateError returns the message of the chart's author, without the position in the template.
func templateError(name string, err error) error {
	text := err.Error()
	if at := refusedByTemplate.FindStringIndex(text); at != nil {
		return hint.Wrap(plain{"its chart says: " + text[at[1]:], err}, "correct the service's section in services-configuration.yaml; see: paictl service values -n "+name)
	}
	return fmt.Errorf("templates of %s: %w", name, err)
}

func (r rendering) text() string {
	var b strings.Builder
	b.WriteString(r.manifest)
	for _, h := range r.hooks {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", h.Path, h.Manifest)
	}
	return b.String()
}

func releaseOptions(r Request, revision int, upgrade bool) chartutil.ReleaseOptions {
	return chartutil.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: revision, IsInstall: !upgrade, IsUpgrade: upgrade}
}

// RenderOffline returns the manifest of a first install, followed by the hooks. kubeVersion is the version of Kubernetes, such as "1.36.3".
// RenderOffline sends no requests, so lookups in templates return no objects.
func RenderOffline(r Request, kubeVersion string) (string, error) {
	version, err := chartutil.ParseKubeVersion(kubeVersion)
	if err != nil {
		return "", fmt.Errorf("kubernetes version %q: %w", kubeVersion, err)
	}
	caps := chartutil.DefaultCapabilities.Copy()
	caps.KubeVersion = *version
	c, err := prepareChart(r.Chart, r.Values)
	if err != nil {
		return "", explain("render", r.Name, err)
	}
	out, err := render(engine.Engine{}, c, r.Values, releaseOptions(r, 1, false), caps)
	if err != nil {
		return "", explain("render", r.Name, err)
	}
	return out.text(), nil
}
