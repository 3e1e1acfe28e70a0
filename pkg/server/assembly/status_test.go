package assembly_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/status"
)

func TestAnAdministratorReadsTheStatusOfTheCluster(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.Do("POST", "/api/v2/jobs", h.tokens["ann"], loose("seen")).Status)
	a := h.Do("GET", "/api/v3/status", h.tokens["root"], "")
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

func TestAPersonReadsTheStatusThatTheyMaySee(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.Do("POST", "/api/v2/jobs", h.tokens["ann"], loose("cut")).Status)
	h.Eventually("ann's job in the list", func() bool {
		return strings.Contains(h.Do("GET", "/api/v3/jobs", h.tokens["ann"], "").Body, `"cut"`)
	})
	for who, sees := range map[string]bool{"ann": true, "abe": true, "vic": false, "root": true} {
		h.Eventually(who+" sees the job, or not", func() bool {
			a := h.Do("GET", "/api/v3/status", h.tokens[who], "")
			require.Equal(t, 200, a.Status, a.Body)
			return strings.Contains(a.Body, `"cut"`) == sees
		})
	}
	var c status.Cluster
	require.NoError(t, json.Unmarshal([]byte(h.Do("GET", "/api/v3/status?parts=machines", h.tokens["vic"], "").Body), &c))
	assert.Equal(t, status.OnlyAdministrators, c.Source(status.SourceServices).Message)
	assert.Empty(t, c.Jobs)
	a := h.Do("GET", "/api/v3/status?parts=rooms", h.tokens["vic"], "")
	assert.Equal(t, 400, a.Status)
	assert.Contains(t, a.Body, "the parts are machines, virtualClusters")
}

func TestTheStatusIsStreamed(t *testing.T) {
	h := newHouse(t)
	h.letGo(t)
	const path = "/api/v3/status/watch?parts=jobs"
	streams := map[string]*servertest.Watch{}
	for _, who := range []string{"ann", "vic", "root"} {
		streams[who] = h.Watch(path, h.tokens[who], "")
		e := streams[who].Next()
		require.Equal(t, "snapshot", e.Name, e.Data)
		assert.Contains(t, e.Data, `"machines":[]`, "a part that wasn't chosen")
	}
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "streamed", "speech").Status)
	has := func(name string) func(servertest.Event) bool {
		return func(e servertest.Event) bool { return strings.Contains(e.Data, `"name":"`+name+`"`) }
	}
	streams["ann"].Await("change", has("streamed"))
	streams["root"].Await("change", has("streamed"))
	require.Equal(t, 202, h.Submit(h.tokens["vic"], "own", "vision").Status)
	streams["vic"].Await("change", func(e servertest.Event) bool {
		assert.NotContains(t, e.Data, "streamed", "vic may not see the jobs of speech")
		return has("own")(e)
	})
	t.Run("the grants of an open stream are those of now", func(t *testing.T) {
		h.Group("vision", func(g *v1.GroupSpec) {
			g.VirtualClusters = []v1.VCGrant{{Name: "vision"}, {Name: "speech", SeeJobs: true}}
		})
		streams["vic"].Await("snapshot", has("streamed"))
	})
}
