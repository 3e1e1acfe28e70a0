// Package netcheck tests whether pods reach each other, using only the standard library.
// In: an address or a name. Out: the identity of the pod that responded. The program runs in an image without a shell, as a server in a pod and as a
// client.
package netcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// answerMax is the maximum length of a response in bytes.
const answerMax = 4096

// Identity identifies the pod that responds.
type Identity struct{ Pod, Node, Address string }

// String returns the text of the response: "pod netcheck-x7k2p on node pai-2, address 10.44.1.3".
func (i Identity) String() string {
	return fmt.Sprintf("pod %s on node %s, address %s", or(i.Pod), or(i.Node), or(i.Address))
}

func or(s string) string {
	if s == "" {
		return "(unknown)"
	}
	return s
}

// Handler responds to GET / with the identity, and to GET /healthz with "ok".
func Handler(i Identity) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, i) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mux
}

// Serve serves requests on a listener until ctx ends. It then finishes requests in progress.
func Serve(ctx context.Context, l net.Listener, i Identity) error {
	const limit = 10 * time.Second
	srv := &http.Server{Handler: Handler(i), ReadTimeout: limit, WriteTimeout: limit, IdleTimeout: limit, MaxHeaderBytes: 8 << 10}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return srv.Shutdown(grace)
}

// Get returns the body of a URL, without leading and trailing spaces. It returns an error for a status other than 200.
func Get(ctx context.Context, c *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", permanent{err}
	}
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, answerMax))
	if err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", url, res.Status)
	}
	return strings.TrimSpace(string(body)), nil
}

// Resolver is the part of net.Resolver that Resolve needs.
type Resolver interface {
	LookupHost(ctx context.Context, name string) ([]string, error)
}

// Resolve returns a sentence with the sorted addresses of a name.
func Resolve(ctx context.Context, r Resolver, name string) (string, error) {
	addrs, err := r.LookupHost(ctx, name)
	if err != nil {
		return "", err
	}
	slices.Sort(addrs)
	return name + " is " + strings.Join(addrs, ", "), nil
}

// permanent is an error that remains after a retry.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Try calls ask until it succeeds or ctx ends, because the network rules and the names of a new pod take a moment to reach every node. It waits
// between two attempts. If ctx ends, it returns the last error.
func Try(ctx context.Context, wait time.Duration, ask func(context.Context) (string, error)) (string, error) {
	for {
		answer, err := ask(ctx)
		if err == nil {
			return answer, nil
		}
		if p, ok := errors.AsType[permanent](err); ok {
			return "", p.error
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return "", err
		case <-t.C:
		}
	}
}
