package server

import (
	"context"
	"net/http"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// Use reads the measurements of the containers of jobs on a machine. If containers aren't measured, its error wraps logapi.ErrUnmeasured.
type Use interface {
	Use(ctx context.Context, node string) ([]logapi.Use, error)
}

func (s *Server) serveUse(w http.ResponseWriter, r *http.Request) error {
	if s.o.Use == nil {
		return logapi.ErrUnmeasured
	}
	out, err := s.o.Use.Use(r.Context(), r.PathValue("node"))
	if err != nil {
		return err
	}
	write(w, http.StatusOK, out)
	return nil
}
