package bundle

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSectionsNameTheImagesOfABundle(t *testing.T) {
	images := []Artifact{
		{Name: "prometheus", Image: "paictl.openpai.org/prometheus:v3.15.0"},
		{Name: "pai-volume", Image: "127.0.0.1:5000/pai/pai-volume:v1"},
		{Name: "pai-controller", Image: "docker.io/openpai/pai-controller:v2"},
		{Name: "pai-runtime", Image: "docker.io/openpai/pai-runtime:v3"},
		{Name: "pause", Image: "registry.k8s.io/pause:3.10"},
		{Name: "grafana", Image: "no-tag"},
	}
	image := func(repository, tag string) map[string]any {
		return map[string]any{"image": map[string]any{"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"}}
	}
	jobs := image("docker.io/openpai/pai-controller", "v2")
	jobs["runtimeImage"] = map[string]any{"repository": "docker.io/openpai/pai-runtime", "tag": "v3"}
	assert.Equal(t, map[string]map[string]any{
		"job-controller":     jobs,
		"prometheus":         image("paictl.openpai.org/prometheus", "v3.15.0"),
		"storage":            image("127.0.0.1:5000/pai/pai-volume", "v1"),
		"grafana":            {"enabled": false},
		"kube-state-metrics": {"enabled": false},
	}, ServiceSections(images))
	assert.Nil(t, ServiceSections([]Artifact{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}))
}
