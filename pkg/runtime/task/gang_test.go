package task_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/podapi"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// api is an API server with a single ConfigMap, which tasks can watch.
type api struct {
	*httptest.Server
	peers    atomic.Pointer[peers.Peers]
	watches  atomic.Int64
	released chan struct{} // closed when the peers are published
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{released: make(chan struct{})}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("fieldSelector") != "metadata.name=0123456789abcdef0123456789abcdef-attempt" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		a.watches.Add(1)
		select {
		case <-a.released:
		case <-r.Context().Done():
			return
		}
		data, err := peers.Encode(a.peers.Load())
		if err != nil {
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": map[string]any{"binaryData": map[string]any{"peers": data}}})
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// join makes a container a pod in the cluster of this API server.
func (a *api) join(c *container) {
	c.t.Helper()
	u, err := url.Parse(a.URL)
	require.NoError(c.t, err)
	host, port, err := net.SplitHostPort(u.Host)
	require.NoError(c.t, err)
	c.env = append(c.env, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	c.write(podapi.Folder+"/ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})))
	c.write(podapi.Folder+"/token", "token")
}

func (a *api) opened(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return a.watches.Load() > 0 }, time.Minute, 5*time.Millisecond)
}

func (a *api) release(p *peers.Peers) {
	a.peers.Store(p)
	close(a.released)
}

func TestTasksStartTogetherAndKnowEachOther(t *testing.T) {
	a := newAPI(t)
	var all []*container
	for i := range 2 {
		c := newContainer(t, "echo $NODE_RANK of $PET_NNODES: $PAI_HOST_IP_Main_Role_0 $PAI_HOST_IP_Main_Role_1 $PAI_HOST_IP_mainrole_1 $MASTER_ADDR:$MASTER_PORT")
		c.role().Instances = 2
		c.spec.Domain = "job.pai-jobs.svc.cluster.local"
		c.env = append(c.env, fmt.Sprintf(spec.TaskVariable+"=mainrole/%d/2/0", i), fmt.Sprintf("PAI_POD_IP=127.0.0.%d", i+1))
		a.join(c)
		c.start()
		all = append(all, c)
	}
	require.Eventually(t, func() bool { return a.watches.Load() == 2 }, time.Minute, 5*time.Millisecond)
	for _, c := range all {
		assert.Empty(t, c.out())
	}
	a.release(&peers.Peers{Attempt: 2, Roles: []peers.Role{{Name: "mainrole", PodIPs: []string{"127.0.0.1", "127.0.0.2"}, HostIPs: []string{"192.168.0.1", "192.168.0.2"}}}})
	for i, c := range all {
		assert.Equal(t, 0, c.wait(), c.errors())
		assert.Equal(t, fmt.Sprintf("%d of 2: 127.0.0.1 127.0.0.2 127.0.0.2 mainrole-0.job.pai-jobs.svc.cluster.local:29500\n", i), c.out())
		assert.Contains(t, c.read("/etc/hosts"), "127.0.0.2\tmainrole-1.job.pai-jobs.svc.cluster.local mainrole-1 Main_Role-1\n")
		assert.Equal(t, "mainrole-0 slots=1\nmainrole-1 slots=1\n", c.read(spec.Home+"/hostfile"))
		assert.Contains(t, c.log(), "all 2 tasks have an address")
	}
}

func TestAGangThatIsNeverCompleteEndsWithItsCode(t *testing.T) {
	a := newAPI(t)
	var c *container
	code := 250
	for limit := 1; code == 250 && limit < 60; limit *= 3 { // on a busy machine the first isn't enough to ask once
		c = newContainer(t, "echo NOT")
		c.role().Instances = 2
		c.spec.BarrierTimeoutSec = limit
		a.join(c)
		code = c.run()
	}
	assert.Equal(t, 251, code, c.errors())
	assert.Contains(t, c.errors(), "not all tasks of the job have a machine")
	assert.Equal(t, 251, c.report().ExitCode)
}

func TestWithoutAServiceAccountAGangCannotMeet(t *testing.T) {
	c := newContainer(t, "echo NOT")
	c.role().Instances = 2
	assert.Equal(t, 252, c.run())
	assert.Contains(t, c.errors(), "KUBERNETES_SERVICE_HOST")
}

func TestTasksThatDoNotWaitStartWithoutTheOthers(t *testing.T) {
	c := newContainer(t, "echo ${PAI_HOST_IP_Main_Role_0} ${PAI_HOST_IP_Main_Role_1:-unknown}")
	c.role().Instances = 2
	c.spec.Gang = false
	assert.Equal(t, 0, c.run(), c.errors())
	assert.Equal(t, "127.0.0.1 unknown\n", c.out())
	assert.NotContains(t, c.errors(), "panic")
	_, err := os.Stat(c.path(spec.TerminationLog))
	require.ErrorIs(t, err, os.ErrNotExist)
}
