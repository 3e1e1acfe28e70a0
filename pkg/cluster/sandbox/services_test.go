package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

func image(name, ref string) bundle.Artifact {
	return bundle.Artifact{Name: name, Kind: bundle.KindImage, Image: ref}
}

func builtImages() []bundle.Artifact {
	return []bundle.Artifact{
		image("etcd", "registry.k8s.io/etcd:3.6"), image("prometheus", "paictl.openpai.org/prometheus:v3.15.0"), image("alertmanager", "paictl.openpai.org/alertmanager:0.25-debian12"),
		image("node-exporter", "localhost:5000/node-exporter:v1.12.1@sha256:abc"), image("pai-watchdog", "docker.io/openpai/pai-watchdog:v1"), image("pai-volume", "docker.io/openpai/pai-volume:v1"),
		image("pai-scheduler", "docker.io/openpai/pai-scheduler:v1"), image("pai-controller", "docker.io/openpai/pai-controller:v1"), image("pai-runtime", "docker.io/openpai/pai-runtime:v1"), image("pai-logs", "docker.io/openpai/pai-logs:v1"),
	}
}

func servicesText(t *testing.T, images ...bundle.Artifact) string {
	t.Helper()
	node, err := servicesOf(images)
	require.NoError(t, err)
	if node == nil {
		return ""
	}
	b, err := yaml.Marshal(map[string]any{"services": node})
	require.NoError(t, err)
	return string(b)
}

func TestServicesRunOfTheBundlesImages(t *testing.T) {
	text := servicesText(t, builtImages()...)
	var got struct {
		Services map[string]struct {
			Enabled     *bool
			Image       map[string]string
			Persistence map[string]string
			Alerts      struct{ Disabled []string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &got))
	images := map[string]string{}
	for name, s := range got.Services {
		if s.Enabled != nil {
			assert.False(t, *s.Enabled)
			images[name] = "off"
			continue
		}
		assert.Equal(t, "IfNotPresent", s.Image["pullPolicy"], name)
		images[name] = s.Image["repository"] + " " + s.Image["tag"]
	}
	assert.Equal(t, map[string]string{
		"prometheus": "paictl.openpai.org/prometheus v3.15.0", "alert-manager": "paictl.openpai.org/alertmanager 0.25-debian12", "node-exporter": "localhost:5000/node-exporter v1.12.1",
		"watchdog": "docker.io/openpai/pai-watchdog v1", "storage": "docker.io/openpai/pai-volume v1", "scheduler": "docker.io/openpai/pai-scheduler v1", "job-controller": "docker.io/openpai/pai-controller v1", "log-manager": "docker.io/openpai/pai-logs v1", "kube-state-metrics": "off", "grafana": "off",
	}, images)
	assert.Equal(t, "1Gi", got.Services["prometheus"].Persistence["size"])
	assert.Equal(t, []string{"NodeClockNotSynchronised"}, got.Services["prometheus"].Alerts.Disabled, "hosts can't set the clock that they share")
	assert.Equal(t, 2, strings.Count(text, "# The bundle has no image of it"), "each that is off says why")
}

func TestOnlyImagesThatTheBundleHasAreNamed(t *testing.T) {
	assert.Empty(t, servicesText(t, image("etcd", "registry.k8s.io/etcd:3.6")))
	assert.Empty(t, servicesText(t, image("prometheus", "localhost:5000/prometheus")), "an image without a tag")
	fetched := servicesText(t, image("grafana", "docker.io/grafana/grafana:12.0.0"))
	assert.Contains(t, fetched, "repository: docker.io/grafana/grafana")
	assert.NotContains(t, fetched, "prometheus:")
	assert.Equal(t, 1, strings.Count(fetched, "enabled: false"))
}

// The charts define which settings are allowed. The charts must accept these settings.
func TestTheChartsTakeTheServicesSettings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "quick-start.yaml")
	require.NoError(t, os.WriteFile(file, []byte("machines: [10.0.0.1]\n"+servicesText(t, builtImages()...)), 0o600))
	_, err := config.Generate(t.Context(), config.Generation{QuickStart: file, OutDir: filepath.Join(dir, "c"), Offline: true, DryRun: true, Checks: []config.Check{catalogue.Check}})
	require.NoError(t, err)
}

func TestABundleThatCannotBeReadNamesNoImages(t *testing.T) {
	var said []string
	s := &Sandbox{progress: func(line string) { said = append(said, line) }}
	node, err := s.bundledServices()
	require.NoError(t, err)
	assert.Nil(t, node)
	s.state.Bundle = t.TempDir()
	node, err = s.bundledServices()
	require.NoError(t, err)
	assert.Nil(t, node)
	assert.Contains(t, strings.Join(said, "\n"), "quick-start.yaml names no images of services: ")
}
