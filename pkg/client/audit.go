package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// Audit reads a page of the audit, the latest first.
func (s *Server) Audit(ctx context.Context, q audit.Query) (*audit.Page, error) {
	v := url.Values{}
	for name, value := range map[string]string{
		"actor": q.Actor, "object": q.Object, "owner": q.Owner, "kind": q.Kind, "verb": q.Verb, "outcome": q.Outcome, "cursor": q.Cursor,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return answered[audit.Page](ctx, s, get(api.Prefix+"/audit", v), nil)
}
