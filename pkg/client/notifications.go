package client

import (
	"context"
	"net/http"

	"github.com/openpai/paictl/pkg/server/v3/api"
)

const notifications = "/notifications"

// Notifications returns a user's settings for notices: which notices the user receives, and how.
func (s *Server) Notifications(ctx context.Context, user string) (*api.Notifications, error) {
	return answered[api.Notifications](ctx, s, get(userPath(user, notifications), nil), nil)
}

// PutNotifications replaces a user's settings for notices.
func (s *Server) PutNotifications(ctx context.Context, user string, c *api.NotificationsChange) (*api.Notifications, error) {
	q, err := change(http.MethodPut, userPath(user, notifications), c)
	return answered[api.Notifications](ctx, s, q, err)
}

// DefaultNotifications restores a user's settings for notices to their defaults.
func (s *Server) DefaultNotifications(ctx context.Context, user string) (*api.Notifications, error) {
	q, err := change(http.MethodDelete, userPath(user, notifications), nil)
	return answered[api.Notifications](ctx, s, q, err)
}

// TestNotifications sends a test message to a user through the user's channels for notices.
func (s *Server) TestNotifications(ctx context.Context, user string) (*api.Notifications, error) {
	q, err := post(userPath(user, notifications+"/test"), nil, struct{}{})
	return answered[api.Notifications](ctx, s, q, err)
}
