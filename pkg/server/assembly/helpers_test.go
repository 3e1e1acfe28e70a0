package assembly_test

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// empty removes the objects of other tests, because all tests share one cluster.
func empty(t *testing.T, c *kube.Cluster) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	all := client.Resource(fv1.Resource).Namespace(kube.JobNamespace)
	list, err := all.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		_, err := all.Patch(t.Context(), list.Items[i].GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		if err := all.Delete(t.Context(), list.Items[i].GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) { // it was being deleted
			require.NoError(t, err)
		}
	}
	now := int64(0)
	require.NoError(t, c.Client.CoreV1().Pods(kube.JobNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}))
	require.NoError(t, client.Resource(v1.Templates).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, c.Client.CoreV1().Secrets(kube.JobNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	forgetIssuers(t, c)
}

// forgetIssuers deletes the stored issuers of providers in other tests.
func forgetIssuers(t *testing.T, c *kube.Cluster) {
	t.Helper()
	require.NoError(t, c.Client.CoreV1().Secrets(v1.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: v1.LabelPeople + "=" + v1.SecretProvider}))
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

// talk sends a text to an address, and returns all received bytes.
func talk(t *testing.T, address, text string) string {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(answer)
}

// plain sends a request over HTTP/1.1, and returns the status of the response.
func (h *house) plain(t *testing.T, method, path, token string, headers ...string) int {
	t.Helper()
	own := h.Client.Transport.(*http.Transport).Clone()
	own.ForceAttemptHTTP2, own.TLSNextProto = false, nil
	own.TLSClientConfig.NextProtos = []string{"http/1.1"}
	t.Cleanup(own.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), method, h.URL+path, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Transport: own}).Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

func base64of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
