package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPodsDoNotGetAllOfAMachine(t *testing.T) {
	s := testSpec(t, 1, 0)
	s.Config.Kubernetes.Kubernetes.Extra.Kubelet = map[string]any{"systemReserved": map[string]any{"memory": "8Gi"}}
	conf := s.kubeletSettings()
	assert.Equal(t, map[string]any{"cpu": "100m", "memory": "8Gi"}, conf["systemReserved"], "the operator's word counts")
	assert.Equal(t, map[string]any{"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "1Gi"}, conf["kubeReserved"])
}

func TestLogsOfAFastWriterAreRotatedOften(t *testing.T) {
	s := testSpec(t, 1, 0)
	conf := s.kubeletSettings()
	assert.Equal(t, "32Mi", conf["containerLogMaxSize"])
	assert.Equal(t, "3s", conf["containerLogMonitorInterval"])
	s.Config.Kubernetes.Kubernetes.Extra.Kubelet = map[string]any{"containerLogMaxSize": "1Gi"}
	assert.Equal(t, "1Gi", s.kubeletSettings()["containerLogMaxSize"], "the operator's word counts")
}
