package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// kept simulates the agents. Only the machine n1 has a log.
type kept struct{}

// Get implements server.Logs.
func (kept) Get(_ context.Context, node, uid, container string, query url.Values) (*http.Response, error) {
	if node == "n3" {
		return nil, fmt.Errorf("%w: connection refused", logapi.ErrAway)
	}
	if node != "n1" {
		return nil, logapi.ErrNoAgent
	}
	if uid != "u" {
		return nil, logapi.ErrNoLog
	}
	return &http.Response{Header: http.Header{"X-Pai-Log-Next": {"7"}, "X-Other": {"1"}}, Body: io.NopCloser(strings.NewReader(container + " " + query.Encode()))}, nil
}

func TestPagesOfLogsAreHandedOn(t *testing.T) {
	h := newHarness(t)
	resp := h.ask(t, http.MethodGet, "/v1/machines/n1/logs/u/app", nil)
	assert.Equal(t, http.StatusNotFound, resp.StatusCode, "where nothing keeps logs")
	h.options.Logs = kept{}
	resp = h.ask(t, http.MethodGet, "/v1/machines/n1/logs/u/app?offset=3&match=a", nil)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "app match=a&offset=3", string(body))
	assert.Equal(t, "7", resp.Header.Get("X-Pai-Log-Next"))
	assert.Empty(t, resp.Header.Get("X-Other"))
	for path, want := range map[string]string{"/v1/machines/n2/logs/u/app": "no agent keeps the logs of this machine", "/v1/machines/n1/logs/v/app": "the machine keeps no log of it"} {
		resp := h.ask(t, http.MethodGet, path, nil)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusNotFound, resp.StatusCode)
		assert.JSONEq(t, `{"code":"NotFound","message":"`+want+`"}`, string(body))
	}
	resp = h.ask(t, http.MethodGet, "/v1/machines/n3/logs/u/app", nil)
	body, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, "an agent that is renewed comes back")
	assert.JSONEq(t, `{"code":"Unavailable","message":"the agent that keeps the logs of this machine doesn't answer now: connection refused"}`, string(body))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/machines/n1/logs/u/app", nil)
	w := httptest.NewRecorder()
	server.New(h.options).Handler().ServeHTTP(w, r)
	assert.Equal(t, http.StatusForbidden, w.Code, "not without the token")
}
