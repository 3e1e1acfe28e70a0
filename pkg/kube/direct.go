package kube

import (
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Direct begins a request that a pod sends directly to the Service of one of the platform's programs. The request decodes its response like a
// response through the API server's proxy.
func Direct(at *url.URL, c *http.Client, method, path string) *rest.Request {
	content := rest.ClientContentConfig{ContentType: runtime.ContentTypeJSON,
		Negotiator: runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(), schema.GroupVersion{Version: "v1"})}
	return rest.NewRequestWithClient(at, "", content, c).Verb(method).AbsPath(path)
}
