// Package road drives a job along the main road of the platform: submit, job controller, scheduler, job runtime, logs.
// In: etcd and an API server, and pai-controller, pai-scheduler, pai-server, pai-runtime and paictl as processes; only the kubelet is played.
// Out: jobs and logs, as an operator with a kubeconfig and people who have signed in see them.
package road

import (
	"context"
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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/bundle"
	"github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	servertls "github.com/openpai/paictl/pkg/server/tls"
	"github.com/openpai/paictl/test/kubelet"
	"github.com/openpai/paictl/test/programs"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) {
	chooseControlPlane()
	code := kubetest.Wrap(m).Run()
	programs.Clean()
	schedulertest.Clean()
	os.Exit(code)
}

// bundleVariable names the bundle of tests.
const bundleVariable = "PAICTL_TEST_BUNDLE"

// chooseControlPlane takes the control plane that "make test" builds, unless another one is named.
func chooseControlPlane() {
	cache, err := os.UserCacheDir()
	if err == nil && os.Getenv(bundleVariable) == "" {
		_ = os.Setenv(bundleVariable, filepath.Join(cache, "paictl", "control-plane")) // an impossible name can't be set
	}
}

// needControlPlane fails the test, which is never skipped, if there is no control plane.
func needControlPlane(t *testing.T) {
	t.Helper()
	tier.More(t, "a control plane and our programs")
	folder := os.Getenv(bundleVariable)
	b, err := bundle.Open(folder)
	require.NoError(t, err, "build a control plane: go run ./hack/controlplane %s", folder)
	for _, name := range []string{"etcd", "kube-apiserver"} {
		_, found := b.Lookup(bundle.KindTool, name)
		require.True(t, found, "the bundle in %s has no %s; build a control plane: go run ./hack/controlplane %s", folder, name, folder)
	}
}

// patience is how long one thing may take on a busy machine.
const patience = 2 * time.Minute

// machines is four GPUs on each of three nodes, for two virtual clusters.
const machines = `physicalCluster:
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: road-1}
    - {cellType: NODE, cellAddress: road-2}
    - {cellType: NODE, cellAddress: road-3}
virtualClusters:
  default:
    virtualCells: [{cellType: NODE, cellNumber: 2}]
  other:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
`

// nodes are those of the virtual clusters.
var nodes = []string{"road-1", "road-2", "road-3"}

// world is a cluster with all that a job needs on its way.
type world struct {
	t *testing.T
	c *kube.Cluster
	// kubeconfig is the operator's. URL is the server's address, and ca a file with the authority of its certificate.
	kubeconfig, url, ca string
	// gates is a folder that jobs see, too.
	gates string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	needControlPlane(t)
	programs.Build(t, "pai-controller", "pai-server", "pai-runtime", "paictl")
	schedulertest.Program(t)
	w := &world{t: t, c: kubetest.Start(t), gates: t.TempDir()}
	w.prepare()
	kubelet.Start(t, w.c, kubelet.Options{Nodes: nodes, Visible: []string{w.gates}, Programs: map[string]string{"pai-runtime:test": programs.Program(t, "pai-runtime")}})
	controller := programs.Start(t, "pai-controller", "--kubeconfig="+kubetest.Kubeconfig(t), "--database="+t.TempDir()+"/archive.db",
		"--listen=127.0.0.1:0", "--code-listen=127.0.0.1:0", "--leader-election=false")
	scheduler := schedulertest.Start(t, w.c, schedulertest.Options{Name: "one", Namespace: kube.SystemNamespace})
	listen := controller.Says(t, regexp.MustCompile(`msg=starting .* listen=(\S+) tasks=(\S+)`))
	history := "http://" + listen[1]
	w.configure(map[string]string{"scheduler-name": "pai-scheduler", "peers-url": "http://" + listen[2] + "/v1/peers", "code-url": "http://" + listen[2] + "/v1/code"})
	w.kubeconfig = jobtest.Front(t, w.c, jobtest.Services{api.Service: w.proxy(history), "scheduler": w.proxy(scheduler.API)})
	w.ready(controller, history)
	w.people()
	w.serve(history, scheduler.API)
	return w
}

// prepare makes the objects of the charts.
func (w *world) prepare() {
	w.t.Helper()
	kubetest.PriorityClasses(w.t, w.c)
	jobtest.Prepare(w.t, w.c)
	schedulertest.Configure(w.t, w.c.Client, kube.SystemNamespace, machines)
	_, err := w.c.Client.CoreV1().Secrets(kube.SystemNamespace).Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: api.AuditTokenSecret},
		StringData: map[string]string{api.TokenKey: "the audit's"}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	directory, err := people.Open(w.c.Config, people.Options{})
	require.NoError(w.t, err)
	require.NoError(w.t, directory.Prepare(w.t.Context()))
}

// configure changes the settings of the job controller's chart.
func (w *world) configure(data map[string]string) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"data": data})
	require.NoError(w.t, err)
	_, err = w.c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Patch(w.t.Context(), api.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// proxy is the way to a service through the API server, which refuses to connect to loopback addresses itself.
func (w *world) proxy(to string) http.Handler {
	w.t.Helper()
	u, err := url.Parse(to)
	require.NoError(w.t, err)
	return &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}
}

// serverHost is an address of this machine that nothing else listens on.
const serverHost = "127.77.255.1"

// serve starts pai-server.
func (w *world) serve(history, scheduler string) {
	w.t.Helper()
	listen, metrics := w.free(), w.free()
	settings := filepath.Join(w.t.TempDir(), "settings.json")
	require.NoError(w.t, os.WriteFile(settings, []byte(`{"addresses":["`+serverHost+`"]}`), 0o600))
	p := programs.Start(w.t, "pai-server", "--kubeconfig="+kubetest.Kubeconfig(w.t), "--settings="+settings, "--listen="+listen, "--metrics-listen="+metrics, "--identity=test",
		"--job-controller="+history, "--scheduler="+scheduler)
	w.ready(p, "http://"+metrics)
	w.listens(p, listen)
	authority, err := servertls.Read(w.t.Context(), w.c.Client)
	require.NoError(w.t, err)
	require.NotNil(w.t, authority)
	w.url, w.ca = "https://"+listen, filepath.Join(w.t.TempDir(), "ca.pem")
	require.NoError(w.t, os.WriteFile(w.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}), 0o600))
}

func (w *world) free() string {
	w.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", serverHost+":0")
	require.NoError(w.t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// ready waits until a program says over HTTP that it is ready.
func (w *world) ready(p *programs.Process, at string) {
	w.t.Helper()
	w.await(p, func(ctx context.Context) error {
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

// listens waits until a program accepts connections.
func (w *world) listens(p *programs.Process, at string) {
	w.t.Helper()
	w.await(p, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// await repeats a question to a program until there is no error.
func (w *world) await(p *programs.Process, ask func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for err := ask(ctx); err != nil; err = ask(ctx) {
		select {
		case <-p.Ended:
			w.t.Fatalf("the program has ended: %s", p)
		case <-ctx.Done():
			w.t.Fatalf("after %s: %v: %s", patience, err, p)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
