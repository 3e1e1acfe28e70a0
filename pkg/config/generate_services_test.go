package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

const quickServices = `machines: [10.0.0.1]
services:
  prometheus:
    image: {repository: paictl.openpai.org/prometheus, tag: v1}
    retention: 15d
  grafana: {enabled: false, admin-password: hidden}
  node-exporter:
`

func generateOffline(t *testing.T, text string, g Generation) (*Generated, error) {
	t.Helper()
	dir := t.TempDir()
	g.QuickStart, g.Offline = write(t, dir, "q.yaml", text), true
	if g.OutDir == "" {
		g.OutDir = filepath.Join(dir, "c")
	}
	return Generate(t.Context(), g)
}

func TestSectionsOfServicesAreWrittenAsTheyAre(t *testing.T) {
	g, err := generateOffline(t, quickServices, Generation{})
	require.NoError(t, err)
	c := valid(t, g.Cluster.Dir)
	assert.Equal(t, map[string]any{
		"prometheus":    map[string]any{"image": map[string]any{"repository": "paictl.openpai.org/prometheus", "tag": "v1"}, "retention": "15d"},
		"grafana":       map[string]any{"enabled": false, "admin-password": "hidden"},
		"node-exporter": map[string]any{},
	}, c.Services.Sections)
}

func TestTheReferenceEndsTheServicesFileAndIsNoPartOfIt(t *testing.T) {
	const reference = "# prometheus:\n#   retention: 15d\n"
	g, err := generateOffline(t, quickServices, Generation{Reference: []byte(reference)})
	require.NoError(t, err)
	b, err := os.ReadFile(g.Path(ServicesFile))
	require.NoError(t, err)
	assert.Contains(t, string(b), "  retention: 15d\n\n"+reference)
	assert.Len(t, valid(t, g.Cluster.Dir).Services.Sections, 3)
	masked, err := g.Masked(strictyaml.Path{"prometheus", "retention"})
	require.NoError(t, err)
	assert.Contains(t, string(masked[ServicesFile]), "\n\n"+reference)
	assert.NotContains(t, string(masked[ServicesFile]), "hidden")
	assert.Contains(t, string(masked[ServicesFile]), "  retention: '********'")
}

func TestFindingsOfChecksNameThePlaceInTheQuickStartFile(t *testing.T) {
	check := func(c *Cluster) Findings {
		return Findings{
			c.Finding(ServicesFile, strictyaml.Error, fieldPath{"prometheus", "image", "tag"}, "services/value", "bad", "mend it"),
			c.Finding(ServicesFile, strictyaml.Error, fieldPath{"prometheus", "missing"}, "services/value", "absent", "add it"),
			c.Finding(ServicesFile, strictyaml.Error, fieldPath{"watchdog"}, "services/value", "not from here", "look"),
		}
	}
	derived := func(c *Cluster) Findings { return check(c)[2:] }
	g, err := generateOffline(t, quickServices, Generation{Checks: []Check{check}})
	require.ErrorContains(t, err, "q.yaml:4:61: services.prometheus.image.tag: bad [services/value]")
	require.ErrorContains(t, err, "q.yaml:4:5: services.prometheus.missing: absent [services/value]")
	require.NotContains(t, err.Error(), "watchdog", "which may follow from the others")
	assert.Nil(t, g)
	_, err = generateOffline(t, quickServices, Generation{Checks: []Check{derived}})
	require.ErrorContains(t, err, ServicesFile+": watchdog: not from here [services/value]")
}

func TestWhatIsNoSectionOfAServiceIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"services: [prometheus]":                           "q.yaml:2:11: services: expected",
		"services: {prometheus: on}":                       "q.yaml:2:24: services.prometheus: expected",
		"services: {cluster: {common: {cluster-id: pai}}}": `q.yaml:2:21: services.cluster: "cluster" is not a service [quick-start/services]`,
		"services: {a: {}, a: {}}":                         "[yaml/duplicate-key]",
	} {
		_, err := generateOffline(t, "machines: [10.0.0.1]\n"+text+"\n", Generation{})
		require.ErrorContains(t, err, want, text)
	}
}
