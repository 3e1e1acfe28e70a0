package client

import (
	"context"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// Audit reads a page of the audit, the latest first.
func (s *Server) Audit(ctx context.Context, q audit.Query) (*audit.Page, error) {
	return answered[audit.Page](ctx, s, get(api.Prefix+"/audit", q.Values()), nil)
}
