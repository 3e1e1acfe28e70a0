package alerthandler_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/test/tier"
)

// floodPolicies holds the chart's policies, without dry runs.
const floodPolicies = `
policies:
  - {name: idle-jobs, alerts: {alertname: JobGpusIdle}, steps: [{do: stop-job, grace: 4h}]}
  - {name: broken-gpus, alerts: {alertname: GpuXidFatal}, steps: [{do: drain}]}
`

// The limits for a flood of 1,000 alerts: the requests that create Actions and write their phases, and the memory for the Actions.
const (
	flood             = 1000
	mostFloodRequests = 3 * flood
	mostFloodHeap     = 64 << 20
)

// A thousand alerts within a minute cost a few requests each. Repeated alerts cost no requests. Most Actions wait for a limit. After another change
// in the cluster, the handler checks each of these Actions again without a request.
func TestAThousandAlertsInAMinute(t *testing.T) {
	// Use the GC percentage of the program, because tests may run with a different value.
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	tier.More(t, "two minutes")
	w := open(t)
	w.log = slog.New(slog.DiscardHandler)
	var alerts []policy.Alert
	for i := range flood / 2 {
		user, node := fmt.Sprintf("user%d", i%50), fmt.Sprintf("n%d", i)
		w.job(user, fmt.Sprintf("job%d", i))
		w.node(node)
		alerts = append(alerts, idle(user, fmt.Sprintf("job%d", i)), alert(map[string]string{"alertname": "GpuXidFatal", "node": node, "gpu": "0"}, start))
	}
	var requests requestCounter
	c := rest.CopyConfig(w.Config)
	c.QPS, c.Burst = 40, 80 // those of the program
	c.Wrap(requests.wrap)
	h, _ := w.handler(config(t, floodPolicies), c)

	heap := watchHeap(t)
	began := time.Now()
	// Alertmanager sends one message for each of these alerts, because its route groups alerts by target.
	sent := make(chan policy.Alert)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for a := range sent {
				for post(t, h, a) != http.StatusNoContent { // as Alertmanager does
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	for _, a := range alerts {
		sent <- a
	}
	close(sent)
	senders.Wait()
	taken := time.Since(began)
	settled := requests.quiet(t).Sub(began)
	first := requests.all.Load()
	phases := map[v1.Phase]int{}
	for _, a := range w.actions() {
		phases[a.Status.Phase]++
	}
	total := 0
	for _, n := range phases {
		total += n
	}
	require.Equal(t, flood, total, "one Action for each alert: %v", phases)
	require.Zero(t, phases[v1.PhaseNew], "each has a decision: %v", phases)

	for _, a := range alerts {
		require.Equal(t, http.StatusNoContent, post(t, h, a))
	}
	requests.quiet(t)
	repeated := requests.all.Load() - first
	w.node("another")
	requests.quiet(t)
	touched := requests.all.Load() - first - repeated
	peak, goroutines := heap()
	t.Logf("%d alerts: taken after %.1f s, settled after %.1f s, %d requests (%s), phases %v; %d repeats: %d requests; a change elsewhere: %d; largest heap above that before: %.1f MB, most goroutines: %d",
		flood, taken.Seconds(), settled.Seconds(), first, requests.text(), phases, len(alerts), repeated, touched, float64(peak)/1e6, goroutines)
	require.Less(t, first, int64(mostFloodRequests))
	require.Zero(t, repeated, "a repeat within ten minutes isn't recorded")
	require.Zero(t, touched)
	require.Less(t, peak, int64(mostFloodHeap))
}

// requestCounter counts the requests of a client, by method and resource.
type requestCounter struct {
	all  atomic.Int64
	mu   sync.Mutex
	of   map[string]int
	last time.Time
}

func (c *requestCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		if q := r.URL.Query(); q.Get("watch") == "" && q.Get("limit") != "1" { // watches are renewed, and confirmed every few seconds, with and without alerts
			c.all.Add(1)
			c.mu.Lock()
			if c.of == nil {
				c.of = map[string]int{}
			}
			c.of[r.Method+" "+resources.FindString(r.URL.Path)]++
			c.last = time.Now()
			c.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

var resources = regexp.MustCompile(`\b(actions|nodes|pods|frameworks|users|groups)\b`)

func (c *requestCounter) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.of)
}

// quiet waits until the client has sent no request for some seconds. It returns the time of the last request.
func (c *requestCounter) quiet(t *testing.T) (last time.Time) {
	t.Helper()
	const long = 6 * time.Second // a handler that retries does so after five
	from := time.Now()
	before := c.text()
	if !assert.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		last = c.last
		return time.Since(last) > long && time.Since(from) > long
	}, 5*time.Minute, 100*time.Millisecond) {
		t.Fatalf("requests don't end: %s, and %s before", c.text(), before)
	}
	return last
}

// watchHeap samples the heap until the returned function is called. This function returns the maximum growth of the heap in bytes, and the maximum
// number of goroutines.
func watchHeap(t *testing.T) func() (grown int64, goroutines int) {
	t.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, peak, most := m.HeapAlloc, m.HeapAlloc, 0
	end, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stop := func() { once.Do(func() { close(end); <-ended }) }
	t.Cleanup(stop)
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak, most = max(peak, m.HeapAlloc), max(most, runtime.NumGoroutine())
			}
		}
	}()
	return func() (int64, int) {
		stop()
		return int64(peak - before), most
	}
}
