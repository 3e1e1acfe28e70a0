package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/openpai/paictl/pkg/server/v3/api"
)

// ActionQuery selects actions. Empty fields don't restrict the selection.
type ActionQuery struct {
	Phases               []string
	Machine, Job, Cursor string
	// Limit is the maximum number of actions on the page. Zero means the server's default.
	Limit int
}

// Actions reads a page of the actions that match a query, starting with the latest action.
func (s *Server) Actions(ctx context.Context, q ActionQuery) (*api.Actions, error) {
	v := url.Values{"phase": q.Phases}
	for name, value := range map[string]string{"machine": q.Machine, "job": q.Job, "cursor": q.Cursor} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return answered[api.Actions](ctx, s, get(api.Prefix+"/actions", v), nil)
}

func actionPath(name, more string) string {
	return api.Prefix + "/actions/" + url.PathEscape(name) + more
}

// Action reads the action with a name.
func (s *Server) Action(ctx context.Context, name string) (*api.Action, error) {
	return answered[api.Action](ctx, s, get(actionPath(name, ""), nil), nil)
}

// RequestAction requests an operation on a machine, and returns the new action.
func (s *Server) RequestAction(ctx context.Context, n api.NewAction) (*api.Action, error) {
	q, err := post(api.Prefix+"/actions", nil, n)
	return answered[api.Action](ctx, s, q, err)
}

// CancelAction withdraws an action, and returns its new state.
func (s *Server) CancelAction(ctx context.Context, name, reason string) (*api.Action, error) {
	q, err := change(http.MethodPost, actionPath(name, "/cancel"), api.Cancellation{Reason: reason})
	q.again = true // canceling an action again changes nothing
	return answered[api.Action](ctx, s, q, err)
}
