package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// guarded rejects requests without TLS to other machines. Such a request may come from the URL, from a redirect, or from a library that falls back to
// plain HTTP. A reference may allow plain HTTP for one host. guarded sends no password to this host.
type guarded struct {
	base  http.RoundTripper
	plain string // host:port that may be used without TLS
}

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" || isLoopback(r.URL.Hostname()) {
		return g.base.RoundTrip(r)
	}
	if g.plain == "" || r.URL.Host != g.plain {
		return nil, fmt.Errorf("%w: %s", errPlain, r.URL.Host)
	}
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	return g.base.RoundTrip(r)
}

var errPlain = errors.New("the server has no TLS")

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// plainHost returns the host for which a reference allows plain HTTP, or "". The digest protects the data of this host.
func plainHost(ref catalogue.ChartRef) string {
	u, err := url.Parse(ref.Chart)
	if err != nil || ref.Digest == "" || u.Scheme == "https" || u.Scheme == "oci" && !ref.PlainHTTP {
		return ""
	}
	return u.Host
}

type statusError struct {
	url  string
	code int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.url, e.code, http.StatusText(e.code))
}

// readLimited reads all data. readLimited returns an error if the data is longer than limit bytes.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("the answer has more than %d MiB", limit>>20)
	}
	return data, nil
}

func explain(err error, ref catalogue.ChartRef) error {
	err = fmt.Errorf("fetch %s: %w", ref.Chart, err)
	if hint.Of(err) != "" || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, errPlain) {
		return hint.Wrap(err, "use a server with TLS; or set digest and plainHTTP: true, if the network is yours")
	}
	switch code := statusOf(err); {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		host := ref.Chart
		if u, parseErr := url.Parse(ref.Chart); parseErr == nil {
			host = u.Host
		}
		return hint.Wrap(err, fmt.Sprintf("log in: docker login %s for oci://, helm repo add for a repository; or write the login into cluster.docker-registry, if it is the same host", host))
	case code == http.StatusNotFound:
		return hint.Wrap(err, "check chart and version")
	case code != 0:
		return hint.Wrap(err, "the server reports an error; try again later")
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return hint.Wrap(err, "connect this machine to the network; or put the chart's archive beside the configuration and write its path as chart")
	}
	return err
}

func statusOf(err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.code
	}
	if e, ok := errors.AsType[*transport.Error](err); ok {
		return e.StatusCode
	}
	return 0
}
