package release

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// copyChart copies the parts of a chart that Helm changes: the values and the lists of dependencies. The copy shares the templates and files.
func copyChart(c *chart.Chart) *chart.Chart {
	out := *c
	out.Values = copyMap(c.Values)
	if c.Metadata != nil {
		m := *c.Metadata
		m.Dependencies = slices.Clone(m.Dependencies)
		for i, d := range m.Dependencies {
			if d != nil {
				m.Dependencies[i] = new(*d)
			}
		}
		out.Metadata = &m
	}
	var below []*chart.Chart
	for _, d := range c.Dependencies() {
		below = append(below, copyChart(d))
	}
	out.SetDependencies(below...)
	return &out
}

// prepareChart returns a copy of a chart without disabled subcharts. The copy contains the values that the chart imports from subcharts.
func prepareChart(c *chart.Chart, values map[string]any) (*chart.Chart, error) {
	out := copyChart(c)
	return out, chartutil.ProcessDependenciesWithMerge(out, values)
}

func copyMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = copyValue(v)
	}
	return out
}

func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return copyMap(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyValue(v[i])
		}
		return out
	}
	return v
}

// sameChart compares the chart in a release's record with another chart. A record stores numbers as floats and contains no subcharts. The comparison
// of the manifests covers the subcharts. sameChart ignores the order of files, which depends on the archive.
func sameChart(stored, wanted *chart.Chart) bool {
	if stored == nil {
		return false
	}
	raw, err := json.Marshal(wanted)
	if err != nil {
		return false
	}
	var read chart.Chart
	if json.Unmarshal(raw, &read) != nil {
		return false
	}
	return sameJSON(inOrder(stored), inOrder(&read))
}

func inOrder(c *chart.Chart) *chart.Chart {
	out := *c
	byName := func(a, b *chart.File) int { return strings.Compare(a.Name, b.Name) }
	out.Templates, out.Files = slices.Clone(c.Templates), slices.Clone(c.Files)
	slices.SortFunc(out.Templates, byName)
	slices.SortFunc(out.Files, byName)
	return &out
}

func sameValues(a, b map[string]any) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	return sameJSON(a, b)
}

func sameJSON(a, b any) bool {
	left, err := json.Marshal(a)
	if err != nil {
		return false
	}
	right, err := json.Marshal(b)
	return err == nil && bytes.Equal(left, right)
}
