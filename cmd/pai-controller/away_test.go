package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/test/output"
)

// relay forwards connections to an API server while it is open.
type relay struct {
	t       *testing.T
	address string
	to      string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	r := &relay{t: t, address: "127.0.0.1:0", to: to, open: map[net.Conn]bool{}}
	r.start()
	t.Cleanup(r.cut)
	return r
}

func (r *relay) start() {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", r.address)
	require.NoError(r.t, err)
	r.mu.Lock()
	r.address, r.listener = l.Addr().String(), l
	r.mu.Unlock()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(in)
		}
	}()
}

func (r *relay) pass(in net.Conn) {
	out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.to)
	if err != nil {
		_ = in.Close()
		return
	}
	r.mu.Lock()
	r.open[in], r.open[out] = true, true
	r.mu.Unlock()
	done := make(chan bool, 2)
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- true
		}()
	}
	<-done
	_, _ = in.Close(), out.Close()
	<-done
	r.mu.Lock()
	delete(r.open, in)
	delete(r.open, out)
	r.mu.Unlock()
}

// cut closes all connections. After that, the relay rejects new connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.listener.Close()
	for c := range r.open {
		_ = c.Close()
	}
}

type begun struct {
	address string
	said    *output.Buffer
	ended   chan error
}

func begin(t *testing.T, kubeconfig string) *begun {
	t.Helper()
	o, err := parse([]string{
		"--kubeconfig", kubeconfig, "--database", filepath.Join(t.TempDir(), "archive.db"), "--listen", "127.0.0.1:0", "--code-listen", "127.0.0.1:0",
	}, os.Stderr)
	require.NoError(t, err)
	b := &begun{said: &output.Buffer{}, ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.ended <- run(ctx, o, slog.New(slog.NewTextHandler(b.said, nil)))
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
		if t.Failed() {
			t.Log(b.said.String())
		}
	})
	eventually(t, "the program listens", func() bool { return strings.Contains(b.said.String(), " listen=") })
	_, listens, _ := strings.Cut(b.said.String(), " listen=")
	b.address, _, _ = strings.Cut(listens, " ")
	return b
}

func (b *begun) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.address+path, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func (b *begun) says(t *testing.T, what string) {
	t.Helper()
	eventually(t, "it says: "+what, func() bool { return strings.Contains(b.said.String(), what) })
}

// The test doesn't need an API server, because it checks how the program behaves without one.
func TestItWaitsForAnAPIServerThatIsAwayAtTheStart(t *testing.T) {
	r := newRelay(t, "127.0.0.1:1")
	r.cut()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: c,
 clusters: [{name: c, cluster: {server: "http://`+r.address+`"}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`), 0o600))
	b := begin(t, file)
	b.says(t, "waiting for the API server")
	status, _ := b.get(t, "/healthz")
	assert.Equal(t, http.StatusOK, status, "it must not be killed for it")
	status, body := b.get(t, "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, body, "waiting for the API server")
	status, body = b.get(t, "/v1/jobs")
	assert.Equal(t, http.StatusServiceUnavailable, status, "a program without its token answers no one")
	assert.Contains(t, body, "Unavailable")
	select {
	case err := <-b.ended:
		t.Fatal("it has ended: ", err)
	default:
	}
}

func TestItGoesOnWhenTheAPIServerComesBackAndEndsOnlyIfItLed(t *testing.T) {
	_, cluster := installed(t)
	kubetest.PriorityClasses(t, cluster)
	address, err := url.Parse(cluster.Config.Host)
	require.NoError(t, err)
	leases := cluster.Client.CoordinationV1().Leases(kube.SystemNamespace)
	_ = leases.Delete(t.Context(), api.Lease, metav1.DeleteOptions{}) // of another test
	other, long, now := "10.0.0.9:9097", int32(3600), metav1.NowMicro()
	_, err = leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: api.Lease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &long, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = leases.Delete(context.WithoutCancel(t.Context()), api.Lease, metav1.DeleteOptions{}) })

	r := newRelay(t, address.Host)
	r.cut()
	b := begin(t, by(t, asService(t, cluster), r.address))
	b.says(t, "waiting for the API server")
	r.start()
	isReady := func() bool { status, _ := b.get(t, "/readyz"); return status == http.StatusOK }
	eventually(t, "it is ready", isReady)
	assert.Contains(t, b.said.String(), "the API server answers")

	r.cut()
	b.says(t, "waiting for the API server: the lease can't be read")
	assert.True(t, isReady(), "the history of jobs is in the archive")
	select {
	case err := <-b.ended:
		t.Fatal("it did not lead, and has ended: ", err)
	case <-time.After(renewal):
	}
	r.start()
	require.NoError(t, leases.Delete(t.Context(), api.Lease, metav1.DeleteOptions{}))
	// If the response to the program's lease request is lost, the program doesn't hold the lease. The API server
	// already stores that lease.
	eventually(t, "it leads", func() bool {
		_, metrics := b.get(t, "/metrics")
		return strings.Contains(metrics, "\npai_controller_leader 1\n")
	})

	r.cut()
	select {
	case err := <-b.ended:
		require.ErrorContains(t, err, "leader election lost")
	case <-time.After(2 * time.Minute):
		t.Fatal("it led, and goes on though another replica may lead by now")
	}
}

// renewal is longer than a leading replica keeps its lease while the API server is unavailable.
const renewal = 12 * time.Second

// by writes a copy of a kubeconfig with a different server address. It returns the path of the copy.
func by(t *testing.T, kubeconfig, address string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	require.NoError(t, err)
	for _, c := range config.Clusters {
		c.Server = "https://" + address
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}
