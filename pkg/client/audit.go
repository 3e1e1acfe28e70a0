package client

import (
	"context"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// Audit reads a page of the audit records that match a query, starting with the latest record.
func (s *Server) Audit(ctx context.Context, q audit.Query) (*audit.Page, error) {
	return answered[audit.Page](ctx, s, get(api.Prefix+"/audit", q.Values()), nil)
}
