package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLogsOfAFastWriterAreRotatedOften(t *testing.T) {
	s := testSpec(t, 1, 0)
	conf := s.kubeletSettings()
	assert.Equal(t, "32Mi", conf["containerLogMaxSize"])
	assert.Equal(t, "3s", conf["containerLogMonitorInterval"])
	s.Config.Kubernetes.Kubernetes.Extra.Kubelet = map[string]any{"containerLogMaxSize": "1Gi"}
	assert.Equal(t, "1Gi", s.kubeletSettings()["containerLogMaxSize"], "the operator's word counts")
}
