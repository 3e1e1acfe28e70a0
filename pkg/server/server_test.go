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
