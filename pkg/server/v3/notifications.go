package v3

import (
	"context"
	"slices"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

func notificationRoutes() []server.Route {
	const path = api.Prefix + "/users/{user}/notifications"
	return []server.Route{
		server.JSON("GET", path, "notifications.read", "Returns the notices that a person gets, and where", getNotifications, server.Errors("NoUserError")),
		server.JSON("PUT", path, "notifications.change", "Replaces a person's choices of notices", putNotifications, server.Errors("NoUserError")),
		server.JSON("DELETE", path, "notifications.change", "Restores the default notices of a person", deleteNotifications, server.Errors("NoUserError")),
		server.JSON("POST", path+"/test", "notifications.change", "Requests a test message to a person", testNotifications, server.Errors("NoUserError", "NoAlertHandlerError")),
	}
}

// shownNotifications converts a person's choices to their form in responses.
func shownNotifications(n *app.Notifications, err error) (*api.Notifications, error) {
	if err != nil {
		return nil, err
	}
	c := &n.Choices
	out := &api.Notifications{User: n.User, Chosen: n.Chosen, Events: []v1.NoticeEvent{}, Required: append([]v1.NoticeEvent{}, n.Required()...),
		WaitMinutes: int32(c.Wait().Minutes()), Mail: !c.NoMail, Address: n.Email, Webhook: c.Webhook, WeeklyReport: c.WeeklyReport}
	for _, e := range v1.NoticeEvents() {
		if c.Gets(e) || slices.Contains(out.Required, e) {
			out.Events = append(out.Events, e)
		}
	}
	if c.Test != nil {
		out.Test, out.MailTest, out.WebhookTest = &c.Test.Time, string(n.MailTest), string(n.WebhookTest)
	}
	out.Problems = unreachable(n)
	return out, nil
}

// unreachable returns the reasons why notices currently can't be delivered to a person.
func unreachable(n *app.Notifications) (out []string) {
	if n.Offer == nil {
		return []string{"this cluster doesn't send notices: the service alert-handler isn't started"}
	}
	mail := !n.Choices.NoMail || len(n.Required()) > 0
	switch {
	case mail && !n.Offer.Mail:
		out = append(out, "this cluster sends no mail: it has no mail server")
	case mail && n.Email == "":
		out = append(out, "the account has no e-mail address: set it with: paictl user set "+n.User+" --email ADDRESS")
	}
	if n.Choices.Webhook != "" && !n.Offer.PersonalWebhooks {
		out = append(out, "the webhook isn't used: this cluster no longer sends notices to people's own webhooks")
	}
	return out
}

func getNotifications(ctx context.Context, d *app.Actions, in *userIn) (*api.Notifications, error) {
	return shownNotifications(d.Notifications(ctx, in.User))
}

type putNotificationsIn struct {
	User string                  `path:"user"`
	Body api.NotificationsChange `body:"json"`
}

func putNotifications(ctx context.Context, d *app.Actions, in *putNotificationsIn) (*api.Notifications, error) {
	b := &in.Body
	names := make([]string, 0, len(b.Events))
	for _, e := range b.Events {
		names = append(names, string(e))
	}
	c := &app.NotificationsChange{WaitMinutes: b.WaitMinutes, Mail: b.Mail, WeeklyReport: b.WeeklyReport}
	var err error
	if c.Events, err = app.ReadNoticeEvents(names); err != nil {
		return nil, err
	}
	if c.WaitMinutes < 0 || c.WaitMinutes > v1.MaxWaitMinutes {
		return nil, wire.Bad(`"waitMinutes" must be between 1 and 43200`)
	}
	switch w := b.Webhook; {
	case w == nil:
	case w.URL == "" && w.SigningSecret == "":
		c.KeepWebhook, c.WebhookType = true, w.Type
	default:
		c.Webhook = &app.Webhook{Type: w.Type, URL: secret.String(w.URL), SigningSecret: secret.String(w.SigningSecret)}
	}
	return shownNotifications(d.SetNotifications(ctx, in.User, c))
}

func deleteNotifications(ctx context.Context, d *app.Actions, in *userIn) (*api.Notifications, error) {
	return shownNotifications(d.SetNotifications(ctx, in.User, nil))
}

func testNotifications(ctx context.Context, d *app.Actions, in *userIn) (*api.Notifications, error) {
	return shownNotifications(d.TestNotifications(ctx, in.User))
}
