package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinksOfServicesLeadThroughTheServer(t *testing.T) {
	for sections, want := range map[string]map[string]any{
		"rest-server: {names: [gpu.example.org]}\n":                                                                                    {"prometheus": "https://gpu.example.org:8444/prometheus/", "alert-manager": "https://gpu.example.org:8444/alert-manager/"},
		"rest-server: {names: [gpu.example.org], service: {hostPorts: {https: 8443}}}\n":                                               {"prometheus": "https://gpu.example.org:8444/prometheus/"},
		"rest-server: {names: [gpu.example.org]}\nprometheus: {externalUrl: https://metrics.example.org}\n":                            {"prometheus": "https://metrics.example.org", "alert-manager": "https://gpu.example.org:8444/alert-manager/"},
		"rest-server: {names: [gpu.example.org], service: {hostPorts: {proxy: 9443}}}\n":                                               {"prometheus": "https://gpu.example.org:9443/prometheus/"},
		"rest-server: {names: [gpu.example.org], proxy: {name: pages.example.org}}\n":                                                  {"prometheus": "https://pages.example.org:8444/prometheus/"},
		"rest-server: {names: [gpu.example.org], expose: service, service: {proxyPort: 444}}\n":                                        {"prometheus": "https://gpu.example.org:444/prometheus/"},
		"rest-server: {names: [gpu.example.org], expose: ingress, trustedProxies: [10.0.0.11/32]}\n":                                   {"prometheus": nil},
		"rest-server: {names: [gpu.example.org], expose: ingress, trustedProxies: [10.0.0.11/32], proxy: {name: pages.example.org}}\n": {"prometheus": "https://pages.example.org/prometheus/"},
		"rest-server: {enabled: false}\n":                                                                                              {"prometheus": nil, "alert-manager": nil},
		"rest-server: {names: [gpu.example.org], door: {prometheus: {url: ''}}}\n":                                                     {"prometheus": nil, "alert-manager": "https://gpu.example.org:8444/alert-manager/"},
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
	assert.Equal(t, "https://gpu.example.org:8444/grafana/", c.Get("grafana").Values["rootUrl"])
}
