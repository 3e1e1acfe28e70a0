package templates

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/kube"
)

const (
	annotationRequires  = "paictl.openpai.org/requires"
	annotationPlacement = "paictl.openpai.org/placement"
	annotationClaims    = "paictl.openpai.org/claims"
	annotationEnabled   = "paictl.openpai.org/enabled"
	annotationHostPorts = "paictl.openpai.org/host-ports"
)

func TestChartsPassHelmLint(t *testing.T) {
	for _, name := range names(t) {
		for _, v := range variants {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				found := lint.AllWithKubeVersion(filepath.Join("charts", name), v.values(t, name), kube.SystemNamespace, &chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"})
				for _, m := range found.Messages {
					if m.Severity > support.InfoSev {
						t.Error(m.Error())
					}
				}
			})
		}
	}
}

func TestChartsDescribeTheirService(t *testing.T) {
	roles := regexp.MustCompile(`^(all|none|[a-z][a-z-]*(, ?[a-z][a-z-]*)*)$`)
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		m := c.Metadata
		require.Equal(t, "v2", m.APIVersion)
		require.Equal(t, "application", m.Type)
		require.NotEmpty(t, m.AppVersion)
		require.Greater(t, len(m.Description), 20, "say what the service is for")
		for key := range m.Annotations {
			require.Contains(t, []string{annotationRequires, annotationPlacement, annotationClaims, annotationEnabled, annotationHostPorts}, key)
		}
		require.Contains(t, m.Annotations, annotationRequires)
		require.Regexp(t, roles, m.Annotations[annotationPlacement])
		require.Contains(t, []string{"", "true", "false"}, m.Annotations[annotationEnabled])
		var claims []struct {
			Name  string `json:"name"`
			Owner int64  `json:"owner"`
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(m.Annotations[annotationClaims]), &claims))
		for _, claim := range claims {
			require.NotEmpty(t, claim.Name)
			require.Positive(t, claim.Owner)
		}
	})
}

func TestPrerequisitesExistAndFormNoCircle(t *testing.T) {
	all := names(t)
	requires := map[string][]string{}
	for _, name := range all {
		requires[name] = list(load(t, name).Metadata.Annotations[annotationRequires])
		for _, r := range requires[name] {
			require.Contains(t, all, r, "%s requires a service that there isn't", name)
		}
	}
	var visit func(name string, above []string)
	visit = func(name string, above []string) {
		require.NotContains(t, above, name, "circle of prerequisites")
		for _, r := range requires[name] {
			visit(r, append(slices.Clone(above), name))
		}
	}
	for _, name := range all {
		visit(name, nil)
	}
}

// list splits an annotation at commas and spaces.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
