package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// busy is a server.Use that has measurements only for the machine n1.
type busy struct{}

// Use implements server.Use.
func (busy) Use(_ context.Context, node string) ([]logapi.Use, error) {
	switch node {
	case "n1":
		return []logapi.Use{{Pod: "u", Container: "c", Memory: 7}}, nil
	case "n2":
		return nil, logapi.ErrUnmeasured
	}
	return nil, logapi.ErrAway
}

func TestWhatContainersUseIsHandedOn(t *testing.T) {
	h := newHarness(t)
	assert.Equal(t, http.StatusNotFound, h.ask(t, http.MethodGet, "/v1/machines/n1/use", nil).StatusCode, "where nothing measures")
	h.options.Use = busy{}
	for node, want := range map[string]struct {
		status int
		body   string
	}{
		"n1": {http.StatusOK, `[{"pod":"u","container":"c","cpu":null,"memoryBytes":7}]`},
		"n2": {http.StatusNotFound, `{"code":"NotFound","message":"nothing measures the containers of this machine"}`},
		"n3": {http.StatusServiceUnavailable, `{"code":"Unavailable","message":"the agent that keeps the logs of this machine doesn't answer now"}`},
	} {
		resp := h.ask(t, http.MethodGet, "/v1/machines/"+node+"/use", nil)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, want.status, resp.StatusCode, node)
		assert.JSONEq(t, want.body, string(body), node)
	}
	w := httptest.NewRecorder()
	server.New(h.options).Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/machines/n1/use", nil))
	assert.Equal(t, http.StatusForbidden, w.Code, "not without the token")
}
