package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/openpai/paictl/pkg/server/v3/api"
)

const silences = api.Prefix + "/silences"

// Alerts lists the firing alerts, including silenced alerts.
func (s *Server) Alerts(ctx context.Context) (*api.Alerts, error) {
	return answered[api.Alerts](ctx, s, get(api.Prefix+"/alerts", nil), nil)
}

// Silences lists the silences that haven't ended.
func (s *Server) Silences(ctx context.Context) (*api.Silences, error) {
	return answered[api.Silences](ctx, s, get(silences, nil), nil)
}

// Silence creates a silence, which suppresses the messages about the alerts that match it.
func (s *Server) Silence(ctx context.Context, n api.NewSilence) (*api.Silence, error) {
	q, err := post(silences, nil, n)
	return answered[api.Silence](ctx, s, q, err)
}

// EndSilence ends the silence with an ID, and returns the ended silence.
func (s *Server) EndSilence(ctx context.Context, id string) (*api.Silence, error) {
	q := get(silences+"/"+url.PathEscape(id), nil) // ending a silence again changes nothing
	q.method = http.MethodDelete
	return answered[api.Silence](ctx, s, q, nil)
}
