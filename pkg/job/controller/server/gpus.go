package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

// GPUs reads the measurements of a machine's GPUs. If the GPUs aren't measured, its error wraps archive.ErrNotFound.
type GPUs interface {
	Of(ctx context.Context, node string) ([]api.GPU, error)
}

func (s *Server) serveGPUs(w http.ResponseWriter, r *http.Request) error {
	node := r.PathValue("node")
	if s.o.GPUs == nil {
		return fmt.Errorf("GPUs of machine %s: %w", node, archive.ErrNotFound)
	}
	out, err := s.o.GPUs.Of(r.Context(), node)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, out)
	return nil
}
