package barrier

import (
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
	"strconv"
	"strings"
	"time"
)

// ServiceAccount is where a pod's token and the API server's certificate authority are mounted.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Client reads one ConfigMap of one API server. It is plain HTTP: client-go would be ten times the
// rest of the runtime.
type Client struct {
	Base      string // https://ADDRESS:PORT
	Folder    string // of the service account
	Namespace string
	Name      string // of the ConfigMap

	http *http.Client
}

// InCluster returns a client by what the kubelet tells every container.
func InCluster(getenv func(string) string, folder, namespace, name string) (*Client, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT aren't set: this is no pod, or its services are switched off")
	}
	return &Client{Base: "https://" + net.JoinHostPort(host, port), Folder: folder, Namespace: namespace, Name: name}, nil
}

// open makes the HTTP client; the certificate authority is read when it is first needed.
func (c *Client) open() error {
	if c.http != nil {
		return nil
	}
	pem, err := os.ReadFile(filepath.Join(c.Folder, "ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s has no certificate", filepath.Join(c.Folder, "ca.crt"))
	}
	c.http = &http.Client{
		// No proxy of the image's environment: the API server is in the cluster. No HTTP/2: there is
		// one request at a time, and its buffers are larger.
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   false,
			MaxIdleConns:        1,
			ReadBufferSize:      16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// Close gives back the connection.
func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// statusError is an answer other than 200.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the API server answers %d: %s", e.code, e.message)
}

// refused tells whether asking again is of no use, unless what it allows is still on its way.
func (e *statusError) refused() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden || e.code == http.StatusNotFound
}

// get sends one request. The token is read each time: the kubelet renews it.
func (c *Client) get(ctx context.Context, query url.Values) (*http.Response, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(c.Folder, "token"))
	if err != nil {
		return nil, err
	}
	address := c.Base + "/api/v1/namespaces/" + url.PathEscape(c.Namespace) + "/configmaps?" + query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "pai-runtime")
	res, err := c.http.Do(req)
	var where *url.Error
	if errors.As(err, &where) {
		return nil, fmt.Errorf("%s: %w", c.Base, where.Err) // the query says nothing to people
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

func readStatus(res *http.Response) error {
	var status struct {
		Message string `json:"message"`
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	if err == nil && json.Unmarshal(body, &status) == nil && status.Message != "" {
		return &statusError{res.StatusCode, status.Message}
	}
	return &statusError{res.StatusCode, http.StatusText(res.StatusCode)}
}

// event is one line of a watch.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Message    string            `json:"message"` // of an ERROR
		Code       int               `json:"code"`
		BinaryData map[string][]byte `json:"binaryData"`
	} `json:"object"`
}

// maxEvent bounds one event: a ConfigMap has at most 1 MiB, in base64.
const maxEvent = 4 << 20

// watch calls opened once the server has answered, and found with each version of the ConfigMap's
// peers, at first with the one that is there, until found says that it is done, the server ends the watch, or an error comes. period is
// how long the server keeps it open; a connection that died without a word is given up soon after.
func (c *Client) watch(ctx context.Context, key string, period time.Duration, opened func(), found func([]byte) bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, period+10*time.Second)
	defer cancel()
	res, err := c.get(ctx, url.Values{
		"watch":         {"true"},
		"fieldSelector": {"metadata.name=" + c.Name},
		// From the API server's memory, not etcd: a thousand tasks ask at once, and what it doesn't
		// know yet comes as an event.
		"resourceVersion": {"0"},
		"timeoutSeconds":  {strconv.Itoa(int(period.Seconds()))},
	})
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	opened()
	body := &io.LimitedReader{R: res.Body}
	d := json.NewDecoder(body)
	for {
		body.N = maxEvent
		var e event
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("watch: %w", err)
		case e.Type == "ERROR":
			return false, &statusError{e.Object.Code, e.Object.Message}
		case e.Type == "DELETED":
			continue
		}
		if data := e.Object.BinaryData[key]; len(data) > 0 && found(data) {
			return true, nil
		}
	}
}
