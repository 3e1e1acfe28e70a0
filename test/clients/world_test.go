// Package clients drives pai-server with programs that people use: OpenPAI's JavaScript SDK itself, and what others send, request by request.
// In: etcd and an API server, and pai-controller, pai-scheduler, pai-server and pai-runtime as processes; only the kubelet is played.
// Out: the answers that the clients read.
package clients

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	servertls "github.com/openpai/paictl/pkg/server/tls"
	"github.com/openpai/paictl/test/kubelet"
	"github.com/openpai/paictl/test/programs"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) {
	code := kubetest.Wrap(m).Run()
	programs.Clean()
	schedulertest.Clean()
	os.Exit(code)
}

const password = "correct horse battery"

// nodes are those of the virtual clusters.
var nodes = []string{"test-1", "test-2", "test-3"}

// machines is eight GPUs on each of the nodes, for two virtual clusters.
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

// world is a cluster with everything that jobs need.
type world struct {
	t testing.TB
	// URL is the server's, CA a file with the authority of its certificate.
	url, ca string
	// gates is a folder that jobs see, too.
	gates  string
	client *http.Client
	people *people.Directory
}

func newWorld(t testing.TB) *world {
	t.Helper()
	tier.More(t, "a control plane with all of our programs")
	programs.Build(t, "pai-controller", "pai-server", "pai-runtime")
	c := kubetest.Start(t)
	prepare(t, c)
	w := &world{t: t, gates: t.TempDir()}
	var err error
	w.people, err = people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, w.people.Prepare(t.Context()))
	kubelet.Start(t, c, kubelet.Options{Nodes: nodes, Visible: []string{w.gates}, Programs: map[string]string{"pai-runtime:test": programs.Program(t, "pai-runtime")}})
	kubeconfig := kubetest.Kubeconfig(t)

	scheduler := schedulertest.Start(t, c, schedulertest.Options{Name: "one", Namespace: kube.SystemNamespace})
	controller := programs.Start(t, "pai-controller", "--kubeconfig="+kubeconfig, "--database="+t.TempDir()+"/archive.db", "--listen=127.0.0.1:0", "--code-listen=127.0.0.1:0", "--leader-election=false")
	listen := controller.Says(t, regexp.MustCompile(`msg=starting .* listen=(\S+) tasks=(\S+)`))
	history := "http://" + listen[1]
	patch := []byte(`{"data":{"peers-url":"http://` + listen[2] + `/v1/peers"}}`)
	_, err = c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Patch(t.Context(), api.ConfigMap, "application/merge-patch+json", patch, metav1.PatchOptions{})
	require.NoError(t, err)
	w.ready(controller, history+"/readyz")
	w.server(kubeconfig, history, scheduler.API)

	authority, err := servertls.Read(t.Context(), c.Client)
	require.NoError(t, err)
	w.ca = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(w.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}), 0o600))
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = &http.Client{Transport: transport}
	return w
}

// prepare makes what the charts would.
func prepare(t testing.TB, c *kube.Cluster) {
	t.Helper()
	kubetest.PriorityClasses(t, c)
	jobtest.Prepare(t, c)
	schedulertest.Configure(t, c.Client, kube.SystemNamespace, machines)
	core := c.Client.CoreV1()
	_, err := core.Secrets(kube.SystemNamespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: api.AuditTokenSecret}, StringData: map[string]string{api.TokenKey: "the audit's"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	patch := []byte(`{"data":{"scheduler-name":"pai-scheduler"}}`)
	_, err = core.ConfigMaps(kube.SystemNamespace).Patch(t.Context(), api.ConfigMap, "application/merge-patch+json", patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// server starts pai-server.
func (w *world) server(kubeconfig, history, scheduler string) {
	w.t.Helper()
	listen, metrics := w.free(), w.free()
	settings := filepath.Join(w.t.TempDir(), "settings.json")
	require.NoError(w.t, os.WriteFile(settings, []byte(`{"addresses":["127.0.0.1"]}`), 0o600))
	p := programs.Start(w.t, "pai-server", "--kubeconfig="+kubeconfig, "--settings="+settings, "--listen="+listen, "--metrics-listen="+metrics, "--identity=test",
		"--job-controller="+history, "--scheduler="+scheduler)
	w.ready(p, "http://"+metrics+"/readyz")
	w.url = "https://" + listen
	require.Eventually(w.t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", listen)
		return err == nil && conn.Close() == nil
	}, time.Minute, 20*time.Millisecond)
}

// free is an address that no one listens on.
func (w *world) free() string {
	l, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (w *world) over(p *programs.Process) bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

func (w *world) ready(p *programs.Process, url string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
		require.NoError(w.t, err)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return w.over(p)
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode == http.StatusOK || w.over(p)
	}, 3*time.Minute, 50*time.Millisecond)
	require.False(w.t, w.over(p), p.String())
}

// person adds one who may use both virtual clusters.
func (w *world) person(name string) {
	w.t.Helper()
	_, err := w.people.PutGroup(w.t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "team", VirtualClusters: []v1.VCGrant{{Name: "default"}, {Name: "vision"}}}})
	require.NoError(w.t, err)
	_, err = w.people.Add(w.t.Context(), people.NewUser{Name: name, Groups: []string{"team"}, Password: secret.String(password)})
	require.NoError(w.t, err)
	body, err := json.Marshal(map[string]string{"username": name, "password": password})
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/api/v2/authn/basic/login", bytes.NewReader(body))
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
