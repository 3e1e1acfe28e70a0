package assembly_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/test/programs"
)

// A waiting request keeps its header in memory. Each pod has a separate address, and an HTTP/2 connection can carry many requests.
func TestNoHeadersOfRequestsThatWaitTakeMoreMemoryThanTheProgramHas(t *testing.T) {
	const addresses, requests = 40, 50
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	t.Setenv("GOMEMLIMIT", memoryTarget)
	p := servertest.Run(t, c, kubetest.Kubeconfig(t), map[string]any{}, "--job-controller", "", "--scheduler", "")
	for name, header := range map[string]http.Header{"many fields": headers(1500, ""), "long fields": headers(100, strings.Repeat("x", 250))} {
		t.Run(name, func(t *testing.T) {
			programs.ResetPeak(t, p.Pid())
			var all sync.WaitGroup
			said := sync.Map{}
			for address := range addresses {
				to := p.Client.Transport.(*http.Transport).Clone()
				to.Protocols = new(http.Protocols)
				to.Protocols.SetHTTP2(true)
				to.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(address+1))}}).DialContext
				t.Cleanup(to.CloseIdleConnections)
				for range requests {
					all.Go(func() {
						body, end := io.Pipe() // nothing is ever sent
						defer end.Close()
						r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/oauth/token", body)
						if !assert.NoError(t, err) {
							return
						}
						r.ContentLength, r.Header = 8000, header.Clone()
						resp, err := to.RoundTrip(r)
						if err != nil {
							said.Store(fmt.Sprintf("%T", err), "")
							return
						}
						_ = resp.Body.Close()
						said.Store(resp.Status, resp.Proto)
					})
				}
			}
			all.Wait()
			said.Range(func(status, proto any) bool { t.Log(status, proto); return true })
			peak := programs.Peak(t, p.Pid())
			t.Logf("peak %d MiB", peak>>20)
			assert.Less(t, peak, int64(memoryLimit))
		})
	}
	require.Equal(t, http.StatusOK, p.Do("GET", "/healthz", "", "").Status, "it is the same program")
}
