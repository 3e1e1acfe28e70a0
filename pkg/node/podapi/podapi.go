// Package podapi sends requests to the API server from within a pod, with the pod's service account. In: the environment and the files that the
// kubelet provides. Out: responses, or errors.
//
// It uses net/http, because client-go would make the small programs that use this package much larger.
package podapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Folder is the path at which the kubelet mounts a pod's token and the API server's CA.
const Folder = "/var/run/secrets/kubernetes.io/serviceaccount"

const (
	dialTime = 10 * time.Second
	idleTime = time.Minute
	// maxAnswer limits the size of responses that Read accepts. A list of 250 nodes with the names of their images has about 20 MB.
	maxAnswer = 64 << 20
	// maxReason limits the part of an error response that is read.
	maxReason = 4 << 10
)

// API is a connection to an API server with a pod's service account.
type API struct {
	URL    string // https://ADDRESS:PORT
	Folder string // the folder of the account
	Agent  string // the program that sends requests

	mu        sync.Mutex
	authority []byte // the CA that the client trusts
	client    *http.Client
}

// InCluster returns a connection to the API server of the pod's cluster.
func InCluster(getenv func(string) string, folder, agent string) (*API, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT aren't set: this is not a pod, or its service links are disabled")
	}
	return &API{URL: "https://" + net.JoinHostPort(host, port), Folder: folder, Agent: agent}, nil
}

// StatusError is the error of a response with a status other than 200.
type StatusError struct {
	Code    int
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the API server answers %d: %s", e.Code, e.Message)
}

// Get requests a path with a query. The caller closes the response's body. Get reads the token and the CA for each request, because the kubelet
// updates the files.
func (a *API) Get(ctx context.Context, path string) (*http.Response, error) {
	client, err := a.open()
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(a.Folder, "token"))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", a.Agent)
	res, err := client.Do(req)
	var where *url.Error
	if errors.As(err, &where) {
		return nil, fmt.Errorf("%s: %w", a.URL, where.Err) // the query isn't useful for users
	}
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	return nil, readStatus(res)
}

// Read requests a path, and decodes the response into the value that into points to. Read decodes nothing if into is nil.
func (a *API) Read(ctx context.Context, path string, into any) error {
	res, err := a.Get(ctx, path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body := io.LimitReader(res.Body, maxAnswer)
	if into == nil {
		_, err = io.Copy(io.Discard, body) // so that the connection can be used again
		return err
	}
	return json.NewDecoder(body).Decode(into)
}

// Close closes the idle connections to the API server.
func (a *API) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
}

// open returns a client that trusts the currently mounted CA.
func (a *API) open() (*http.Client, error) {
	name := filepath.Join(a.Folder, "ca.crt")
	authority, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil && bytes.Equal(a.authority, authority) {
		return a.client, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", name)
	}
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
	a.authority, a.client = authority, &http.Client{
		// Use no proxy from the image's environment, because the API server is in the cluster. Use no HTTP/2, because HTTP/2 needs larger buffers and only
		// few requests are concurrent.
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			DialContext:         (&net.Dialer{Timeout: dialTime}).DialContext,
			TLSHandshakeTimeout: dialTime,
			IdleConnTimeout:     idleTime,
			MaxIdleConns:        1,
			ReadBufferSize:      16 << 10,
		},
		// Don't follow redirects, because the token is only for this server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a.client, nil
}

// readStatus returns the reason in an error response. The response is a Kubernetes object, or a text such as the response of /readyz.
func readStatus(res *http.Response) error {
	var status struct {
		Message string `json:"message"`
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxReason))
	words := strings.TrimSpace(strings.ToValidUTF8(string(body), ""))
	switch {
	case json.Unmarshal(body, &status) == nil && status.Message != "":
		words = status.Message
	case err != nil || words == "" || strings.HasPrefix(words, "{") || strings.HasPrefix(words, "<"):
		words = http.StatusText(res.StatusCode) // a truncated response, or an HTML page
	}
	return &StatusError{res.StatusCode, words}
}
