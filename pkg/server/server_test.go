package server_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/server"
)

func TestAHandlerThatPanicsIsAnAnswer(t *testing.T) {
	var log strings.Builder
	broken := server.Route{Method: http.MethodGet, Path: "/api/broken", Rule: "open", Summary: "Panics", Serve: func(*server.Call) error { panic("boom") }}
	s := server.New(server.Options{Routes: []server.Route{broken}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/broken", nil))
	assert.Equal(t, 500, w.Code)
	assert.NotContains(t, w.Body.String(), "boom")
	assert.Contains(t, log.String(), "boom")
	assert.Contains(t, log.String(), w.Header().Get("X-Request-Id"))
}

func TestTheBareAddressLeadsBrowsersToTheSignIn(t *testing.T) {
	s := server.New(server.Options{Log: slog.New(slog.DiscardHandler)})
	ask := func(method, path, accept, token string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.Header.Set("Accept", accept)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		s.ServeHTTP(w, r)
		return w
	}
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, path := range []string{"/", "/?x=1", "/rest-server", "/rest-server/"} {
		w := ask(http.MethodGet, path, browser, "")
		assert.Equal(t, []any{http.StatusSeeOther, "/sign-in", "no-store"}, []any{w.Code, w.Header().Get("Location"), w.Header().Get("Cache-Control")}, path)
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"a program":              ask(http.MethodGet, "/", "*/*", ""),
		"a program with a token": ask(http.MethodGet, "/", browser, "secret"),
		"a change":               ask(http.MethodPost, "/", browser, ""),
		"another path":           ask(http.MethodGet, "/view.html", browser, ""),
	} {
		assert.Equal(t, http.StatusNotFound, w.Code, name)
		assert.Contains(t, w.Body.String(), "NoApiError", name)
		assert.Empty(t, w.Header().Get("Location"), name)
	}
}
