// Package platform starts all programs of the platform on an API server, as in a cluster.
// In: etcd and an API server, the names of nodes, the scheduler's configuration. Out: the address of pai-server, a kubeconfig whose proxies lead to
// the services, and nodes that run the containers of pods as processes of this machine.
//
// A package that uses platform contains
//
//	func TestMain(m *testing.M) { os.Exit(platform.Run(m)) }
package platform

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	servertls "github.com/openpai/paictl/pkg/server/tls"
	"github.com/openpai/paictl/test/kubelet"
	"github.com/openpai/paictl/test/programs"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

// Run runs the tests of a package, and removes the programs that the tests have built. It returns the exit code.
func Run(m *testing.M) int {
	code := kubetest.Wrap(m).Run()
	programs.Clean()
	schedulertest.Clean()
	return code
}

// patience is how long one operation may take on a busy machine.
const patience = 2 * time.Minute

// Options configures a platform.
type Options struct {
	Nodes []string
	// Machines is the configuration of the scheduler, which describes the machines.
	Machines string
	// Host is the loopback address at which pai-server listens.
	Host string
}

// Platform is a cluster with everything that a job needs.
type Platform struct {
	Cluster *kube.Cluster
	People  *people.Directory
	// Kubeconfig is the file of the operator's kubeconfig.
	Kubeconfig string
	// URL is the address of pai-server. CA is a file with the CA that has signed its certificate, and Pool contains this CA.
	URL, CA string
	Pool    *x509.CertPool
	// Gates is a folder of the test that jobs also see.
	Gates string

	t testing.TB
}

// Start starts the programs, and returns when the platform is ready. The programs end with the test.
func Start(t testing.TB, o Options) *Platform {
	t.Helper()
	programs.Build(t, "pai-controller", "pai-server", "pai-runtime", "paictl")
	schedulertest.Program(t)
	p := &Platform{t: t, Cluster: kubetest.Start(t), Gates: t.TempDir()}
	p.prepare(o.Machines)
	kubelet.Start(t, p.Cluster, kubelet.Options{Nodes: o.Nodes, Visible: []string{p.Gates}, Programs: map[string]string{"pai-runtime:test": programs.Program(t, "pai-runtime")}})
	controller := programs.Start(t, "pai-controller", "--kubeconfig="+kubetest.Kubeconfig(t), "--database="+t.TempDir()+"/archive.db",
		"--listen=127.0.0.1:0", "--code-listen=127.0.0.1:0", "--leader-election=false")
	scheduler := schedulertest.Start(t, p.Cluster, schedulertest.Options{Name: "one", Namespace: kube.SystemNamespace})
	listen := controller.Says(t, regexp.MustCompile(`msg=starting .* listen=(\S+) tasks=(\S+)`))
	history := "http://" + listen[1]
	p.configure(map[string]string{"scheduler-name": "pai-scheduler", "peers-url": "http://" + listen[2] + "/v1/peers", "code-url": "http://" + listen[2] + "/v1/code"})
	p.Kubeconfig = jobtest.Front(t, p.Cluster, jobtest.Services{api.Service: p.proxy(history), "scheduler": p.proxy(scheduler.API)})
	p.ready(controller, history)
	p.serve(o.Host, history, scheduler.API)
	return p
}

// prepare creates the objects that the charts contain.
func (p *Platform) prepare(machines string) {
	p.t.Helper()
	kubetest.PriorityClasses(p.t, p.Cluster)
	jobtest.Prepare(p.t, p.Cluster)
	schedulertest.Configure(p.t, p.Cluster.Client, kube.SystemNamespace, machines)
	var err error
	p.People, err = people.Open(p.Cluster.Config, people.Options{})
	require.NoError(p.t, err)
	require.NoError(p.t, p.People.Prepare(p.t.Context()))
}

// configure changes the settings that the job controller's chart contains.
func (p *Platform) configure(data map[string]string) {
	p.t.Helper()
	patch, err := json.Marshal(map[string]any{"data": data})
	require.NoError(p.t, err)
	_, err = p.Cluster.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Patch(p.t.Context(), api.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(p.t, err)
}

// proxy returns a handler that forwards requests to a service. The API server uses it, because it can't connect to loopback addresses itself.
func (p *Platform) proxy(to string) http.Handler {
	p.t.Helper()
	u, err := url.Parse(to)
	require.NoError(p.t, err)
	return &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}
}

// serve starts pai-server, and waits until it is ready.
func (p *Platform) serve(host, history, scheduler string) {
	p.t.Helper()
	listen, metrics := p.free(host), p.free(host)
	settings := filepath.Join(p.t.TempDir(), "settings.json")
	require.NoError(p.t, os.WriteFile(settings, []byte(`{"addresses":["`+host+`"]}`), 0o600))
	server := programs.Start(p.t, "pai-server", "--kubeconfig="+kubetest.Kubeconfig(p.t), "--settings="+settings, "--listen="+listen, "--metrics-listen="+metrics, "--identity=test",
		"--job-controller="+history, "--scheduler="+scheduler)
	p.ready(server, "http://"+metrics)
	p.listens(server, listen)
	authority, err := servertls.Read(p.t.Context(), p.Cluster.Client)
	require.NoError(p.t, err)
	require.NotNil(p.t, authority)
	p.Pool = x509.NewCertPool()
	p.Pool.AddCert(authority)
	p.URL, p.CA = "https://"+listen, filepath.Join(p.t.TempDir(), "ca.pem")
	require.NoError(p.t, os.WriteFile(p.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}), 0o600))
}

// free returns an address of the host with a port that no program uses.
func (p *Platform) free(host string) string {
	p.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(p.t.Context(), "tcp", net.JoinHostPort(host, "0"))
	require.NoError(p.t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// ready waits until a program reports over HTTP that it is ready.
func (p *Platform) ready(program *programs.Process, at string) {
	p.t.Helper()
	p.await(program, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_ = resp.Body.Close() // only its status counts
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
}

// listens waits until a program accepts connections at an address.
func (p *Platform) listens(program *programs.Process, at string) {
	p.t.Helper()
	p.await(program, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// await repeats a request to a program until the request succeeds.
func (p *Platform) await(program *programs.Process, ask func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for err := ask(ctx); err != nil; err = ask(ctx) {
		select {
		case <-program.Ended:
			p.t.Fatalf("the program has ended: %s", program)
		case <-ctx.Done():
			p.t.Fatalf("after %s: %v: %s", patience, err, program)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
