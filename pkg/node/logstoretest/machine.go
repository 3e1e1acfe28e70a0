// Package logstoretest runs the program that stores logs, for tests. In: lines that a container printed. Out: responses to requests for the
// container's log, like those of a cluster's agents.
package logstoretest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/logstore"
	"github.com/openpai/paictl/pkg/node/logstore/agents"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

const token = "sesame"

// Machine is a machine with stored logs. Machine responds to requests for any machine name.
type Machine struct {
	t       testing.TB
	pods    string
	handler http.Handler
}

// New returns a machine without logs.
func New(t testing.TB) *Machine {
	t.Helper()
	m := &Machine{t: t, pods: t.TempDir()}
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
	s, err := logstore.Open(logstore.Options{Pods: m.pods, Folder: t.TempDir(), Namespace: "pai-jobs", Limits: logstore.Limits{PerTask: 1 << 30, Total: 1 << 30}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	require.NoError(t, err)
	m.handler = logstore.NewServer(s, nil, file, "").Handler()
	return m
}

// Print appends lines to the log of a pod in containerd's format.
func (m *Machine) Print(uid string, at time.Time, lines ...string) {
	m.t.Helper()
	dir := filepath.Join(m.pods, "pai-jobs_pod_"+uid, "app")
	require.NoError(m.t, os.MkdirAll(dir, 0o700))
	f, err := os.OpenFile(filepath.Join(dir, "0.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(m.t, err)
	for _, line := range lines {
		_, err := fmt.Fprintf(f, "%s stdout F %s\n", at.UTC().Format(time.RFC3339Nano), line)
		require.NoError(m.t, err)
	}
	require.NoError(m.t, f.Close())
}

// Get sends a request to the machine, like the job controller does.
func (m *Machine) Get(ctx context.Context, _, uid, container string, query url.Values) (*http.Response, error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, logapi.Path(uid, container)+"?"+query.Encode(), nil)
	logapi.Sign(r, token, time.Now())
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r)
	switch w.Code {
	case http.StatusNotFound:
		return nil, logapi.ErrNoLog
	case http.StatusBadRequest:
		return nil, fmt.Errorf("%w: %s", agents.ErrBadQuery, w.Body)
	}
	return w.Result(), nil
}
