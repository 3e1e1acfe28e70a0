package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinksOfServicesLeadThroughTheServer(t *testing.T) {
	for sections, want := range map[string]map[string]any{
		"rest-server: {names: [gpu.example.org]}\n":                                                         {"prometheus": "https://gpu.example.org/prometheus/", "alert-manager": "https://gpu.example.org/alert-manager/"},
		"rest-server: {names: [gpu.example.org], service: {hostPorts: {https: 8443}}}\n":                    {"prometheus": "https://gpu.example.org:8443/prometheus/"},
		"rest-server: {names: [gpu.example.org]}\nprometheus: {externalUrl: https://metrics.example.org}\n": {"prometheus": "https://metrics.example.org", "alert-manager": "https://gpu.example.org/alert-manager/"},
		"rest-server: {enabled: false}\n":                                                                   {"prometheus": nil, "alert-manager": nil},
		"rest-server: {names: [gpu.example.org], door: {prometheus: {url: ''}}}\n":                          {"prometheus": nil, "alert-manager": "https://gpu.example.org/alert-manager/"},
	} {
		c, found, err := Load(t.Context(), gpuCluster(t, 1, sections), Options{})
		require.NoError(t, err, sections)
		require.NoError(t, found.Err(), sections)
		for name, url := range want {
			assert.Equal(t, url, c.Get(name).Values["externalUrl"], "%s: %s", sections, name)
		}
	}
	c, _, err := Load(t.Context(), gpuCluster(t, 1, "rest-server: {names: [gpu.example.org]}\ngrafana: {enabled: true, adminPassword: correct-horse-battery}\n"), Options{})
	require.NoError(t, err)
	assert.Equal(t, "https://gpu.example.org/grafana/", c.Get("grafana").Values["rootUrl"])
}
