package client

import (
	"context"
	"net/http"

	"github.com/openpai/paictl/pkg/server/v3/api"
)

const notifications = "/notifications"

// Notifications returns the notices that a person gets.
func (s *Server) Notifications(ctx context.Context, user string) (*api.Notifications, error) {
	return answered[api.Notifications](ctx, s, get(userPath(user, notifications), nil), nil)
}

// PutNotifications replaces a person's choices of notices.
func (s *Server) PutNotifications(ctx context.Context, user string, c *api.NotificationsChange) (*api.Notifications, error) {
	q, err := change(http.MethodPut, userPath(user, notifications), c)
	return answered[api.Notifications](ctx, s, q, err)
}

// DefaultNotifications restores the default notices of a person.
func (s *Server) DefaultNotifications(ctx context.Context, user string) (*api.Notifications, error) {
	q, err := change(http.MethodDelete, userPath(user, notifications), nil)
	return answered[api.Notifications](ctx, s, q, err)
}

// TestNotifications requests a test message to a person.
func (s *Server) TestNotifications(ctx context.Context, user string) (*api.Notifications, error) {
	q, err := post(userPath(user, notifications+"/test"), nil, struct{}{})
	return answered[api.Notifications](ctx, s, q, err)
}
