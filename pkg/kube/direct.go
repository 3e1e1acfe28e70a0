package kube

import (
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Direct begins a request to one of the platform's programs, sent to its Service from a pod. Responses are read like responses through the API
// server's proxy.
func Direct(at *url.URL, c *http.Client, method, path string) *rest.Request {
	content := rest.ClientContentConfig{ContentType: runtime.ContentTypeJSON,
		Negotiator: runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(), schema.GroupVersion{Version: "v1"})}
	return rest.NewRequestWithClient(at, "", content, c).Verb(method).AbsPath(path)
}
