package assembly_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/status"
)

func TestAnAdministratorReadsTheStatusOfTheCluster(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.Ask("POST", "/api/v2/jobs", h.tokens["ann"], loose("seen")).Status)
	assert.Equal(t, 403, h.Ask("GET", "/api/v3/status", h.tokens["ann"], "").Status)
	a := h.Ask("GET", "/api/v3/status", h.tokens["root"], "")
	require.Equal(t, 200, a.Status, a.Body)
	var c status.Cluster
	require.NoError(t, json.Unmarshal([]byte(a.Body), &c))
	titles := []string{}
	for _, j := range c.Jobs {
		titles = append(titles, j.Title())
	}
	assert.Contains(t, titles, "ann/seen")
	assert.Equal(t, status.StateCurrent, c.Source(status.SourceAPI).State, c.Source(status.SourceAPI).Message)
	assert.Contains(t, []string{status.StateAbsent, status.StateFailed}, c.Source(status.SourcePrometheus).State, "there is no Prometheus")
	assert.NotEqual(t, status.StateFailed, c.Source(status.SourceServices).State, c.Source(status.SourceServices).Message)
}
