package tls_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	certificate "github.com/openpai/paictl/pkg/server/tls"
)

// gate is a transport that counts the reads of the Secret. Before it returns the response to a read, it calls held with the number of the read.
type gate struct {
	next  http.RoundTripper
	reads atomic.Int32
	held  func(read int32)
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(r)
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/secrets/"+certificate.ACMESecret) {
		g.held(g.reads.Add(1))
	}
	return resp, err
}

// answers returns a function that sends a replica a request on the port without TLS, like a CA or an attacker, and returns the response.
func answers(t *testing.T, g *gate) (kubernetes.Interface, func(token string) (status int, body string)) {
	t.Helper()
	client := cluster(t)
	forgetACME(t, client)
	config := rest.CopyConfig(kubetest.Start(t).Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { g.next = next; return g })
	gated, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	h := certificate.NewACME(gated, certificate.ACMEOptions{Names: []string{"gpu.example.org"}}).Answers(http.NotFoundHandler())
	return client, func(token string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://gpu.example.org/.well-known/acme-challenge/"+token, nil)
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
}

func TestStrangersMakeFewRequestsOfTheAPI(t *testing.T) {
	g := &gate{held: func(int32) {}}
	_, ask := answers(t, g)
	const strangers = 60
	var all sync.WaitGroup
	for range strangers {
		all.Go(func() {
			status, _ := ask("guess")
			assert.Equal(t, http.StatusNotFound, status)
		})
	}
	all.Wait()
	assert.Less(t, g.reads.Load(), int32(strangers/2))
}

// An attacker who sends requests all the time must not delay new data from another replica for the CA.
func TestAnAuthorityIsToldWhatIsThereWhenItAsks(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	g := &gate{held: func(read int32) {
		if read == 1 {
			close(began)
			<-release
		}
	}}
	client, ask := answers(t, g)
	var both sync.WaitGroup
	both.Go(func() {
		status, _ := ask("token")
		assert.Equal(t, http.StatusNotFound, status, "the stranger asked before")
	})
	<-began
	_, err := client.CoreV1().Secrets(certificate.Namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: certificate.ACMESecret, Namespace: certificate.Namespace}, Data: map[string][]byte{"token...http-01": []byte("it's me")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	both.Go(func() {
		status, body := ask("token")
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, "it's me", body)
	})
	close(release)
	both.Wait()
}
