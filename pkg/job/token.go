package job

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
)

// readAgain is the time after a read of the token in which a rejected token doesn't cause another read.
const readAgain = 5 * time.Second

// withToken adds the token that the job controller's API or its audit requires. If the token can't be read, the controller rejects the request.
// withToken reads the token before the first request that needs it, and again if the controller rejects the token, because the token may have
// changed.
type withToken struct {
	http.RoundTripper
	client         kubernetes.Interface
	secret, header string
	// only selects the requests that need the token. If it is nil, all requests need the token.
	only func(*http.Request) bool

	mu    sync.Mutex
	token string
	read  time.Time
}

func newWithToken(rt http.RoundTripper, client kubernetes.Interface) http.RoundTripper {
	audit := &withToken{RoundTripper: rt, client: client, secret: api.AuditTokenSecret, header: api.AuditTokenHeader, only: hasAudit}
	return &withToken{RoundTripper: audit, client: client, secret: api.TokenSecret, header: api.TokenHeader}
}

// hasAudit reports whether a request reads or writes the audit. A copy of the archive also contains the audit.
func hasAudit(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/v1/audit") || strings.HasSuffix(r.URL.Path, "/v1/archive")
}

// known returns the token. If refused isn't "", it is a token that the controller rejected, and known reads the token again, but not within readAgain
// of the previous read.
func (w *withToken) known(ctx context.Context, refused string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.read.IsZero() || refused != "" && refused == w.token && time.Since(w.read) >= readAgain {
		w.read = time.Now()
		s, err := w.client.CoreV1().Secrets(kube.SystemNamespace).Get(ctx, w.secret, metav1.GetOptions{})
		if err == nil {
			w.token = string(s.Data[api.TokenKey])
		}
	}
	return w.token
}

// RoundTrip sends a request with the token. If the controller rejects the token, RoundTrip reads the token again.
func (w *withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.only != nil && !w.only(r) {
		return w.RoundTripper.RoundTrip(r)
	}
	token := w.known(r.Context(), "")
	if token == "" {
		return w.RoundTripper.RoundTrip(r)
	}
	resp, err := w.send(r, token)
	if err != nil || resp.StatusCode != http.StatusForbidden || r.Body != nil && r.GetBody == nil {
		return resp, err
	}
	changed := w.known(r.Context(), token)
	if changed == token {
		return resp, nil
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return resp, nil //nolint:nilerr // the refusal is the answer then
		}
	}
	_ = resp.Body.Close()
	return w.send(again, changed)
}

func (w *withToken) send(r *http.Request, token string) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(w.header, token)
	return w.RoundTripper.RoundTrip(r)
}
