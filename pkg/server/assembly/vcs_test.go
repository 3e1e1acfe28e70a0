package assembly_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
)

func TestVirtualClustersInOpenPAIsWords(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	empty(t, c)
	ready(t, c, "gpu-1", "gpu-2")
	var away atomic.Bool
	var api http.Handler
	h := houseOn(t, c, servertest.Options{Scheduler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "no leader", http.StatusServiceUnavailable)
			return
		}
		api.ServeHTTP(w, r)
	})})
	s := startScheduler(t, c)
	api = s.API()
	ask := h.asker(t)
	h.Eventually("the scheduler leads", func() bool { return h.as("root", "GET", "/api/v2/virtual-clusters", "").Status == 200 })
	s.run("guaranteed", "speech", "5", "1")
	s.run("opportunistic", "vision", "-1", "1")

	const speech = `{"capacity":50,"usedCapacity":25,"maxCapacity":50,"dedicated":false,"waitingGangs":0,"skus":{"G":{"used":1,"guaranteed":2,"total":2}},
		"resourcesUsed":{"cpu":4,"memory":16384,"gpu":1,"vCores":4,"GPUs":1},
		"resourcesGuaranteed":{"cpu":8,"memory":32768,"gpu":2,"vCores":8,"GPUs":2},
		"resourcesTotal":{"cpu":8,"memory":32768,"gpu":2,"vCores":8,"GPUs":2}}`
	for _, path := range []string{"/api/v2/virtual-clusters", "/api/v1/virtual-clusters/", "/rest-server/api/v2/Virtual-Clusters"} {
		a := h.as("ann", "GET", path, "")
		assert.JSONEq(t, `{"speech":`+speech+`}`, a.Body, "%s: one sees what is granted", path)
	}
	assert.JSONEq(t, speech, ask("ann", "GET", "/virtual-clusters/speech", "", 200))
	all := map[string]map[string]any{}
	a := h.as("root", "GET", "/api/v2/virtual-clusters", "")
	a.Into(&all)
	require.Len(t, all, 2)
	assert.Equal(t, map[string]any{"cpu": 0., "memory": 0., "gpu": 0., "vCores": 0., "GPUs": 0.}, all["vision"]["resourcesUsed"], "what is opportunistic isn't counted, as in OpenPAI")

	ask("ann", "GET", "/virtual-clusters/vision", "", 404, "NoVirtualClusterError")
	ask("ann", "GET", "/virtual-clusters/no-where", "", 404, "NoVirtualClusterError")
	ask("root", "GET", "/virtual-clusters/no-where", "", 404, "NoVirtualClusterError")

	nodes := map[string]map[string]int{}
	for _, query := range []string{"nodes", "nodes=", "nodes=1", "nodes=false"} {
		a := h.as("vic", "GET", "/api/v2/virtual-clusters?"+query, "")
		a.Into(&nodes)
		used := 0
		require.Len(t, nodes, 2, query)
		for _, n := range nodes {
			used += n["gpuUsed"]
			assert.Equal(t, 2, n["gpuTotal"])
			assert.Equal(t, 2, n["gpuUsed"]+n["gpuAvailable"])
		}
		assert.Equal(t, 2, used)
		assert.NotContains(t, a.Body, "speech")
	}

	const g = `{"G":{"cpu":4,"memory":16384,"gpu":1}}`
	assert.JSONEq(t, g, ask("vic", "GET", "/cluster/sku-types", "", 200))
	assert.JSONEq(t, g, ask("ann", "GET", "/cluster/sku-types?vc=speech", "", 200))
	assert.JSONEq(t, g, ask("ann", "GET", "/virtual-clusters/speech/sku-types", "", 200))
	ask("ann", "GET", "/cluster/sku-types?vc=vision", "", 404, "NoVirtualClusterError")
	ask("root", "GET", "/virtual-clusters/none/sku-types", "", 404, "NoVirtualClusterError")

	for _, change := range [][2]string{{"PUT", "/virtual-clusters/speech"}, {"PUT", "/virtual-clusters/speech/status"}, {"DELETE", "/virtual-clusters/speech"}} {
		ask("root", change[0], change[1], `{"vcCapacity":5,"vcStatus":"stopped"}`, 501, "NotImplementedError")
		ask("ann", change[0], change[1], "", 403, "ForbiddenUserError")
	}

	me := h.as("root", "GET", "/api/v2/users/root", "").JSON()
	assert.Equal(t, []any{"speech", "vision"}, me["virtualCluster"], "an administrator may use all")
	assert.Contains(t, h.as("root", "GET", "/api/v2/users", "").Body, `"admin":true,"virtualCluster":["speech","vision"]`)

	away.Store(true)
	for _, path := range []string{"/virtual-clusters", "/virtual-clusters?nodes", "/virtual-clusters/speech"} {
		ask("ann", "GET", path, "", 503, "UnavailableError")
	}
	ask("ann", "GET", "/cluster/sku-types?vc=speech", "", 200)
	ask("root", "GET", "/users/root", "", 200)
}
