package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Without this check, the API server would reject such pods long after the push of the configuration.
func TestLimitsBelowRequestsAreRefused(t *testing.T) {
	for section, want := range map[string]string{
		`log-manager: {resources: {limits: {memory: 1Mi}}}`:                                                     "log-manager.resources.limits.memory: the limit 1Mi is below the request",
		`log-manager: {resources: {requests: {memory: 1Ti}}}`:                                                   "log-manager.resources.requests.memory: the limit",
		`log-manager: {resources: {requests: {memory: 2Gi}, limits: {memory: 1024Mi}}}`:                         "log-manager.resources.limits.memory: the limit 1024Mi is below the request 2Gi",
		`log-manager: {resources: {requests: {memory: 1e400}, limits: {memory: 1e400}}}`:                        "log-manager.resources.requests.memory: 1e400 is more than a quantity can hold",
		`log-manager: {resources: {requests: {cpu: 1500m, memory: 1Gi}, limits: {cpu: 1.5, memory: "1024Mi"}}}`: "",
	} {
		_, findings, err := Load(t.Context(), gpuCluster(t, 1, section+"\n"), Options{})
		require.NoError(t, err)
		if want == "" {
			assert.Empty(t, lines(findings), section)
			continue
		}
		if assert.NotEmpty(t, findings, section) {
			assert.Contains(t, findings[0].Field+": "+findings[0].Message, want)
			assert.NotEmpty(t, findings[0].Remedy)
			assert.Positive(t, findings[0].Line)
		}
	}
}
