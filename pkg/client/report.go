package client

import (
	"context"
	"net/url"
	"time"

	"github.com/openpai/paictl/pkg/job/report"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// Report returns how much GPU time was allocated, used and lost.
func (s *Server) Report(ctx context.Context, q report.Query) (*report.Report, error) {
	v := url.Values{}
	for name, value := range map[string]string{"user": q.User, "vc": q.VirtualCluster} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	return answered[report.Report](ctx, s, get(api.Prefix+"/report", v), nil)
}
