package assembly_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

// prometheus simulates Prometheus. It responds to queries about GPUs with one series, whose last value is 42. It responds to other queries with an
// empty result.
type prometheus struct {
	mu    sync.Mutex
	asked []string
}

func (p *prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.URL.Path != "/api/v1/query_range" {
		http.NotFound(w, r)
		return
	}
	query := r.FormValue("query")
	p.asked = append(p.asked, query)
	series := ""
	if strings.Contains(query, "DCGM_FI_DEV_GPU_UTIL") {
		series = fmt.Sprintf(`{"metric":{"gpu":"3","node":"metrics-1","pod":"x-worker-0"},"values":[[%s,"42"]]}`, r.FormValue("end"))
	}
	fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[`+series+`]}}`)
}

// taken returns the queries since its last call.
func (p *prometheus) taken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := strings.Join(p.asked, "\n")
	p.asked = nil
	return out
}

func TestMetricsAreReadWithTheRightsOfTheirSubject(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	p := &prometheus{}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	o := withDoor()
	o.Door["prometheus"] = settings.Service{URL: front.URL, Page: "monitoring"}
	h := houseOn(t, c, servertest.Options{Settings: o})
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "measured", "speech").Status)
	framework := framework(t, h.cluster, "ann", "measured").Name
	_, err := c.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "metrics-1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Client.CoreV1().Nodes().Delete(t.Context(), "metrics-1", metav1.DeleteOptions{}) })

	t.Run("of a job", func(t *testing.T) {
		const path = "/api/v3/jobs/ann/measured/metrics"
		h.Eventually("the job's metrics", func() bool { return h.Do("GET", path, h.tokens["ann"], "").Status == 200 })
		p.taken()
		for who, status := range map[string]int{"ann": 200, "abe": 200, "root": 200, "vic": 404} {
			a := h.Do("GET", path, h.tokens[who], "")
			assert.Equal(t, status, a.Status, who+a.Body)
			assert.Equal(t, status == 200, p.taken() != "", "vic's question doesn't reach Prometheus")
			if status != 200 {
				continue
			}
			var r metrics.Report
			a.Into(&r)
			require.NotEmpty(t, r.Charts, a.Body)
			assert.Equal(t, "gpu-use", r.Charts[0].Name)
			assert.InDelta(t, 42, *r.Charts[0].Series[0].Values[len(r.Charts[0].Series[0].Values)-1], 0)
		}
		require.Equal(t, 200, h.Do("GET", path, h.tokens["ann"], "").Status)
		for query := range strings.SplitSeq(p.taken(), "\n") {
			assert.Contains(t, query, `pod=~"`+framework+`-(`)
		}
		for query, says := range map[string]string{
			"task=nobody[0]": "no task role nobody", "task=x": "ROLE[INDEX]", "since=soon": "a time span such as 6h", "since=-5m": "a time span such as 6h", "until=now": "must be times", "points=1": "give 2 to 300", "points=999": "give 2 to 300",
			"since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z": "isn't before",
		} {
			a := h.Do("GET", path+"?"+query, h.tokens["ann"], "")
			assert.Equal(t, 400, a.Status, query+a.Body)
			assert.Contains(t, a.Body, says, query)
		}
		assert.Empty(t, p.taken())
	})
	t.Run("of a machine", func(t *testing.T) {
		path := "/api/v3/machines/metrics-1/metrics?since=1h"
		for _, who := range []string{"vic", "root"} {
			h.Eventually("the machine", func() bool { return h.Do("GET", path, h.tokens[who], "").Status == 200 })
			p.taken()
			require.Equal(t, 200, h.Do("GET", path, h.tokens[who], "").Status)
			asked := p.taken()
			assert.Contains(t, asked, `node="metrics-1"`)
			assert.Equal(t, who == "root", strings.Contains(asked, "node_filesystem"), "only administrators see the names of file systems")
		}
		assert.Equal(t, 400, h.Do("GET", "/api/v3/machines/metrics-1/metrics?since=31d", h.tokens["vic"], "").Status)
		a := h.Do("GET", "/api/v3/machines/none/metrics", h.tokens["root"], "")
		assert.Equal(t, 404, a.Status)
		assert.Equal(t, "NoMachineError", a.Code())
	})
	t.Run("of a virtual cluster", func(t *testing.T) {
		const path = "/api/v3/virtual-clusters/speech/metrics"
		p.taken()
		for who, status := range map[string]int{"ann": 200, "root": 200, "vic": 404} {
			assert.Equal(t, status, h.Do("GET", path, h.tokens[who], "").Status, who)
			assert.Equal(t, status == 200, strings.Contains(p.taken(), `vc="speech"`), who)
		}
		assert.Equal(t, 404, h.Do("GET", "/api/v3/virtual-clusters/none/metrics", h.tokens["root"], "").Status)
	})
	t.Run("without Prometheus", func(t *testing.T) {
		front.Close()
		a := h.Do("GET", "/api/v3/virtual-clusters/speech/metrics", h.tokens["ann"], "")
		assert.Equal(t, 503, a.Status, a.Body)
		assert.Contains(t, a.Body, "Prometheus doesn't answer")
		assert.Contains(t, a.Body, "paictl service status -n prometheus")
		assert.NotContains(t, a.Body, "127.0.0.1")
	})
}

func TestAServerWithoutPrometheusSaysSo(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	o := withDoor()
	delete(o.Door, "prometheus")
	h := houseOn(t, c, servertest.Options{Settings: o})
	a := h.Do("GET", "/api/v3/virtual-clusters/speech/metrics", h.tokens["ann"], "")
	assert.Equal(t, 501, a.Status, a.Body)
	assert.Equal(t, "NotImplementedError", a.Code())
	assert.Contains(t, a.Body, "paictl service start -n prometheus")
}
