package approver

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/cluster/approver/machines"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/test/output"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

type cluster struct {
	t     *testing.T
	admin *rest.Config
	api   *kubernetes.Clientset
}

func newCluster(t *testing.T, of *kube.Cluster) *cluster {
	t.Helper()
	c := &cluster{t: t, admin: of.Config, api: kubernetes.NewForConfigOrDie(of.Config)}
	t.Cleanup(func() { c.machines(nil) })
	return c
}

// machines replaces the content of the ConfigMap. If data is nil, it removes the ConfigMap.
func (c *cluster) machines(data map[string]string) {
	c.t.Helper()
	api, ctx := c.api.CoreV1().ConfigMaps(machines.Namespace), context.WithoutCancel(c.t.Context())
	if err := api.Delete(ctx, machines.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		require.NoError(c.t, err)
	}
	if data != nil {
		_, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: machines.Name}, Data: data}, metav1.CreateOptions{})
		require.NoError(c.t, err)
	}
}

func (c *cluster) ask(a *asked) string {
	c.t.Helper()
	who := rest.CopyConfig(c.admin)
	who.Impersonate = rest.ImpersonationConfig{UserName: a.spec.Username, Groups: a.spec.Groups}
	csr := a.request(c.t)
	csr.GenerateName = "csr-"
	made, err := kubernetes.NewForConfigOrDie(who).CertificatesV1().CertificateSigningRequests().Create(c.t.Context(), csr, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.t.Cleanup(func() {
		_ = c.api.CertificatesV1().CertificateSigningRequests().Delete(context.WithoutCancel(c.t.Context()), made.Name, metav1.DeleteOptions{})
	})
	return made.Name
}

func (c *cluster) get(name string) *certv1.CertificateSigningRequest {
	c.t.Helper()
	csr, err := c.api.CertificatesV1().CertificateSigningRequests().Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return csr
}

func (c *cluster) decided(name string) certv1.CertificateSigningRequestCondition {
	c.t.Helper()
	var csr *certv1.CertificateSigningRequest
	require.Eventually(c.t, func() bool {
		csr = c.get(name)
		return len(csr.Status.Conditions) > 0
	}, 30*time.Second, 20*time.Millisecond, "no one decides %s", name)
	require.Len(c.t, csr.Status.Conditions, 1)
	return csr.Status.Conditions[0]
}

// start runs an approver until the test ends or stop is called.
func (c *cluster) start(config *rest.Config) (said *output.Buffer, stop func()) {
	c.t.Helper()
	said = &output.Buffer{}
	a, err := newApprover(config, slog.New(slog.NewTextHandler(said, nil)))
	require.NoError(c.t, err)
	a.again = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(c.t, <-done)
	})
	c.t.Cleanup(stop)
	return said, stop
}

func TestRequestsAreDecidedWhetherTheyComeBeforeOrAfterTheApprover(t *testing.T) {
	c := newCluster(t, kubetest.Start(t))
	c.machines(map[string]string{"w1": "10.0.0.2", "m1": "10.0.0.1"})
	before := c.ask(good(t, "w1", "10.0.0.2"))
	said, stop := c.start(c.admin)
	got := c.decided(before)
	assert.Equal(t, certv1.CertificateApproved, got.Type)
	assert.Equal(t, "PaictlRule", got.Reason)

	hostile := good(t, "w1", "10.0.0.2")
	hostile.tmpl.IPAddresses = append(hostile.tmpl.IPAddresses, net.ParseIP("10.0.0.1"))
	got = c.decided(c.ask(hostile))
	assert.Equal(t, certv1.CertificateDenied, got.Type)
	assert.Equal(t, "10.0.0.1: not an address of w1, which has 10.0.0.2; if it is, correct hostip in layout.yaml and run paictl cluster up", got.Message)
	other := good(t, "w1", "10.0.0.2")
	other.spec.SignerName, other.spec.Usages = certv1.KubeAPIServerClientKubeletSignerName, []certv1.KeyUsage{certv1.UsageClientAuth}
	left := c.ask(other)
	assert.Equal(t, certv1.CertificateApproved, c.decided(c.ask(good(t, "m1", "10.0.0.1"))).Type)
	assert.Empty(t, c.get(left).Status.Conditions, "other signers' requests are none of its business")
	assert.Contains(t, said.String(), "decision=Denied")

	stop()
	again := c.ask(good(t, "w1", "10.0.0.2"))
	c.start(c.admin)
	assert.Equal(t, certv1.CertificateApproved, c.decided(again).Type, "killed and started again, it goes on")
}

func TestARequestOfAnUnknownMachineWaitsUntilItIsKnown(t *testing.T) {
	c := newCluster(t, kubetest.Start(t))
	said, _ := c.start(c.admin) // the ConfigMap is missing
	name := c.ask(good(t, "w2", "10.0.0.3"))
	told := "the request of a node waits"
	require.Eventually(t, func() bool { return strings.Contains(said.String(), told) }, 30*time.Second, 20*time.Millisecond)
	c.machines(map[string]string{"w1": "10.0.0.2"})
	c.decided(c.ask(good(t, "w1", "10.0.0.2")))
	assert.Empty(t, c.get(name).Status.Conditions)

	c.machines(map[string]string{"w2": "10.0.0.333"})
	require.Eventually(t, func() bool {
		return strings.Contains(said.String(), `ConfigMap kube-system/paictl-machines, key w2: \"10.0.0.333\" is not an address; paictl cluster up writes it again`)
	}, 30*time.Second, 20*time.Millisecond)
	assert.Empty(t, c.get(name).Status.Conditions, "what can't be read decides nothing")

	c.machines(map[string]string{"w2": "10.0.0.3"})
	assert.Equal(t, certv1.CertificateApproved, c.decided(name).Type)
	assert.Equal(t, 1, strings.Count(said.String(), told), said.String())
}

func TestSeveralApproversDecideEachRequestOnce(t *testing.T) {
	c := newCluster(t, kubetest.Start(t))
	c.machines(map[string]string{"w1": "10.0.0.2"})
	var stops []func()
	for range 3 {
		_, stop := c.start(c.admin)
		stops = append(stops, stop)
	}
	var names []string
	for i := range 12 {
		names = append(names, c.ask(good(t, "w1", "10.0.0.2")))
		if i%4 == 3 && len(stops) > 1 { // one program dies in between
			stops[0]()
			stops = stops[1:]
		}
	}
	for _, name := range names {
		assert.Equal(t, certv1.CertificateApproved, c.decided(name).Type)
	}
}

// cuttable is a transport that can cut running watches and reject new watches.
type cuttable struct {
	next http.RoundTripper

	mu     sync.Mutex
	blind  bool
	bodies []io.Closer
}

func (c *cuttable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		return c.next.RoundTrip(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blind {
		return nil, errors.New("cut")
	}
	resp, err := c.next.RoundTrip(r)
	if err == nil {
		c.bodies = append(c.bodies, resp.Body)
	}
	return resp, err
}

func (c *cuttable) cut(blind bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blind = blind
	for _, b := range c.bodies {
		_ = b.Close()
	}
	c.bodies = nil
}

func TestARequestWhoseEventWasLostIsFound(t *testing.T) {
	c := newCluster(t, kubetest.Start(t))
	c.machines(map[string]string{"w1": "10.0.0.2"})
	config, wire := rest.CopyConfig(c.admin), &cuttable{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		wire.next = next
		return wire
	})
	c.start(config)
	c.decided(c.ask(good(t, "w1", "10.0.0.2")))
	wire.cut(true)
	name := c.ask(good(t, "w1", "10.0.0.2"))
	wire.cut(false)
	assert.Equal(t, certv1.CertificateApproved, c.decided(name).Type)
}

func TestAnApproverWithoutAnAPIServerEndsWithItsRun(t *testing.T) {
	err := Run(t.Context(), []string{"--kubeconfig", "missing.conf"}, io.Discard)
	require.ErrorContains(t, err, "missing.conf")
	require.ErrorContains(t, Run(t.Context(), []string{"--nonsense"}, io.Discard), "nonsense")
	require.NoError(t, Run(t.Context(), []string{"--help"}, io.Discard))
}

// The controller manager of a cluster signs only approved requests.
func TestApprovedRequestsAreSignedForTheServer(t *testing.T) {
	tier.More(t, "five programs for one test")
	c := newCluster(t, kubetest.StartNodes(t))
	c.machines(map[string]string{"w1": "10.0.0.2"})
	c.start(c.admin)
	name := c.ask(good(t, "w1", "10.0.0.2"))
	require.Eventually(t, func() bool { return len(c.get(name).Status.Certificate) > 0 }, 30*time.Second, 50*time.Millisecond)
	block, _ := pem.Decode(c.get(name).Status.Certificate)
	require.NotNil(t, block)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	assert.Equal(t, []string{"w1"}, cert.DNSNames)
	assert.Equal(t, "[10.0.0.2]", fmt.Sprint(cert.IPAddresses))
	assert.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, cert.ExtKeyUsage)
	assert.False(t, cert.IsCA)

	hostile := good(t, "w1", "10.0.0.1")
	name = c.ask(hostile)
	assert.Equal(t, certv1.CertificateDenied, c.decided(name).Type)
	assert.Empty(t, c.get(name).Status.Certificate)
}
