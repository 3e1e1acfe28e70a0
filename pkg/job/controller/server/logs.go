package server

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// Logs requests logs from the agent that keeps the logs of a machine.
type Logs interface {
	Get(ctx context.Context, node, uid, container string, query url.Values) (*http.Response, error)
}

// servePage forwards a page of a log from an agent. A client that may read jobs may read their logs. The agents accept requests only from the
// controller, so users need no permissions for the pods of the agents.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) error {
	if s.o.Logs == nil {
		return logapi.ErrNoAgent
	}
	resp, err := s.o.Logs.Get(r.Context(), r.PathValue("node"), r.PathValue("uid"), r.PathValue("container"), r.URL.Query())
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	for _, name := range logapi.Headers() {
		w.Header().Set(name, resp.Header.Get(name))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, err := io.Copy(w, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // so that no client mistakes it for the whole page
	}
	return nil
}
