// Package clients tests pai-server with the programs that users run: OpenPAI's JavaScript SDK, and single requests of other clients.
// In: etcd and an API server, and pai-controller, pai-scheduler, pai-server and pai-runtime as processes; only the kubelet is simulated.
// Out: the responses that the clients read.
package clients

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/test/platform"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) { os.Exit(platform.Run(m)) }

const password = "correct horse battery"

// nodes lists the nodes of the virtual clusters.
var nodes = []string{"test-1", "test-2", "test-3"}

// machines is the configuration of nodes with eight GPUs each, for two virtual clusters.
const machines = `physicalCluster:
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 8, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: test-1}
    - {cellType: NODE, cellAddress: test-2}
    - {cellType: NODE, cellAddress: test-3}
virtualClusters:
  default:
    virtualCells: [{cellType: NODE, cellNumber: 2}]
  vision:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
`

// world is a platform with people.
type world struct {
	*platform.Platform
	t      testing.TB
	client *http.Client
}

func newWorld(t testing.TB) *world {
	t.Helper()
	tier.More(t, "a control plane with all of our programs")
	p := platform.Start(t, platform.Options{Nodes: nodes, Machines: machines, Host: "127.0.0.1"})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.Pool, MinVersion: tls.VersionTLS12}, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &world{Platform: p, t: t, client: &http.Client{Transport: transport}}
}

// person adds a person who may use both virtual clusters.
func (w *world) person(name string) {
	w.t.Helper()
	_, err := w.People.PutGroup(w.t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "team", VirtualClusters: []v1.VCGrant{{Name: "default"}, {Name: "vision"}}}})
	require.NoError(w.t, err)
	_, err = w.People.Add(w.t.Context(), people.NewUser{Name: name, Groups: []string{"team"}, Password: secret.String(password)})
	require.NoError(w.t, err)
	body, err := json.Marshal(map[string]string{"username": name, "password": password})
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.URL+"/api/v2/authn/basic/login", bytes.NewReader(body))
		require.NoError(w.t, err)
		resp, err := w.client.Do(r)
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 200*time.Millisecond, "%s can sign in", name)
}
