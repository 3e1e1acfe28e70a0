package code

import (
	"context"
	"net/http"
	"net/http/httptest"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

// GetBy works like Get, but calls a handler instead of using a network.
func GetBy(ctx context.Context, c *spec.Code, from http.Handler, tmp string, tell func(string, ...any)) error {
	return get(ctx, c, &http.Client{Transport: handler{from}}, "token", tmp, tell)
}

type handler struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (h handler) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}
