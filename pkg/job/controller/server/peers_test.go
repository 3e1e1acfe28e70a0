package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/controller/rendezvous"
	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/runtime/barrier"
	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/test/tier"
)

// gang is the server for the tasks of a job f. It is the real server, with the runtime's real barrier as its client.
type gang struct {
	*httptest.Server
	board *rendezvous.Board
	leads atomic.Bool
	key   []byte
}

func newGang(t *testing.T) *gang {
	t.Helper()
	g := &gang{board: rendezvous.New(), key: []byte("key")}
	g.leads.Store(true)
	g.Server = httptest.NewServer(server.New(server.Options{Peers: server.Peers{Board: g.board, Key: func() []byte { return g.key }, Leads: g.leads.Load}}).TaskHandler())
	t.Cleanup(g.Close)
	return g
}

func (g *gang) source(token string) *barrier.Controller {
	return &barrier.Controller{URL: g.URL + "/v1/peers/f", Token: token, Attempt: 1}
}

func (g *gang) wait(t *testing.T, index int, timeout time.Duration) (*peers.Peers, error) {
	w := &barrier.Wait{
		Source: g.source(peers.Token(g.key, "f", "uid")), Attempt: 1, Role: "worker", Index: index, PodIP: address(index), Timeout: timeout,
		Log: func(string, ...any) {},
	}
	return w.For(t.Context())
}

func address(i int) string { return "10.0.0." + string(rune('1'+i)) }

func (g *gang) publish(t *testing.T, n int) {
	t.Helper()
	role := peers.Role{Name: "worker"}
	for i := range n {
		role.PodIPs, role.HostIPs = append(role.PodIPs, address(i)), append(role.HostIPs, "192.168.0.1")
	}
	data, err := peers.Encode(&peers.Peers{Attempt: 1, Roles: []peers.Role{role}})
	require.NoError(t, err)
	g.board.Publish(rendezvous.Attempt{Framework: "f", UID: "uid", Number: 1}, data)
}

func TestTasksWaitUntilAllHaveAnAddress(t *testing.T) {
	tier.More(t, "it waits to see that nothing happens")
	g := newGang(t)
	g.leads.Store(false) // a replica that will lead
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			p, err := g.wait(t, i, time.Minute)
			if assert.NoError(t, err) {
				assert.Len(t, p.Role("worker").PodIPs, 3)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	g.leads.Store(true)
	time.Sleep(300 * time.Millisecond)
	g.publish(t, 3)
	wg.Wait()
}

// A task that was retried first receives its old address. It must not request the addresses over and over.
func TestATaskWaitsForPeersThatHaveItsOwnAddress(t *testing.T) {
	g := newGang(t)
	var asked atomic.Int32
	inner := g.Config.Handler
	g.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); inner.ServeHTTP(w, r) })
	role := peers.Role{Name: "worker", PodIPs: []string{"10.9.9.9"}, HostIPs: []string{""}}
	data, err := peers.Encode(&peers.Peers{Attempt: 1, Roles: []peers.Role{role}})
	require.NoError(t, err)
	g.board.Publish(rendezvous.Attempt{Framework: "f", UID: "uid", Number: 1}, data)
	time.AfterFunc(time.Second, func() { g.publish(t, 1) })
	_, err = g.wait(t, 0, time.Minute)
	require.NoError(t, err)
	assert.LessOrEqual(t, asked.Load(), int32(3))
}

func TestWhyThereAreNoPeersIsToldApart(t *testing.T) {
	g := newGang(t)
	_, err := g.wait(t, 0, 500*time.Millisecond)
	assert.Equal(t, exit.GangTimeout, exit.Code(err), "%v", err)
	g.Close()
	_, err = g.wait(t, 0, 500*time.Millisecond)
	assert.Equal(t, exit.BarrierTransient, exit.Code(err), "%v", err)
	assert.ErrorContains(t, err, "the job controller can't be reached")
}

func TestPeersAreForTheTasksOfTheJob(t *testing.T) {
	g := newGang(t)
	g.publish(t, 1)
	for name, token := range map[string]string{"none": "", "of another job": peers.Token(g.key, "other", "uid"), "made up": "uid.00"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/v1/peers/f?attempt=1", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, http.StatusForbidden, res.StatusCode, name)
		assert.NotContains(t, string(body), "10.0.0")
	}
	for _, attempt := range []string{"", "x", "-1", "99999999999"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/v1/peers/f?attempt="+attempt, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+peers.Token(g.key, "f", "uid"))
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, attempt)
	}
}

// A server that imitates the controller can't make tasks use other addresses.
func TestPeersOfSomeoneElseAreRefused(t *testing.T) {
	role := peers.Role{Name: "worker", PodIPs: []string{address(0)}, HostIPs: []string{""}}
	data, err := peers.Encode(&peers.Peers{Attempt: 1, Roles: []peers.Role{role}})
	require.NoError(t, err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(peers.Message{Version: 1, Data: data, Seal: peers.Seal("another token", data)})
	}))
	t.Cleanup(s.Close)
	var said []string
	w := &barrier.Wait{
		Source:  &barrier.Controller{URL: s.URL, Token: "token", Attempt: 1},
		Attempt: 1, Role: "worker", PodIP: address(0), Timeout: 300 * time.Millisecond,
		Log: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
	}
	_, err = w.For(t.Context())
	require.Error(t, err)
	assert.Contains(t, strings.Join(said, " "), "seal is wrong")
}
