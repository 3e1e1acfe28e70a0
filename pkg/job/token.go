package job

import (
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/kube"
)

// withToken adds the token that opens the job controller's API. Who may not read it is told so by the
// controller. It is read when it is first needed, and again only by another run.
type withToken struct {
	http.RoundTripper
	client kubernetes.Interface
	read   *sync.Once
	token  *string
}

func newWithToken(rt http.RoundTripper, client kubernetes.Interface) http.RoundTripper {
	return withToken{rt, client, &sync.Once{}, new(string)}
}

// RoundTrip sends a request with the token.
func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	w.read.Do(func() {
		s, err := w.client.CoreV1().Secrets(kube.SystemNamespace).Get(r.Context(), api.TokenSecret, metav1.GetOptions{})
		if err == nil {
			*w.token = string(s.Data[api.TokenKey])
		}
	})
	if *w.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set(api.TokenHeader, *w.token)
	}
	return w.RoundTripper.RoundTrip(r)
}
