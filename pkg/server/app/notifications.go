package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Notifications holds a person's choices for notices, and the channels of the cluster.
type Notifications struct {
	User, Email string
	// Chosen reports whether the person has made choices. Choices holds the choices in effect, without the required kinds of notices.
	Chosen  bool
	Choices v1.Notifications
	// Offer describes the channels for notices. It is nil if the cluster doesn't send notices.
	Offer *actionsv1.Offer
	// MailTest and WebhookTest are the results of the latest test messages. A result is empty if no test message was sent on that channel.
	MailTest, WebhookTest notify.TestResult
}

// Required returns the kinds of notices that the person can't turn off.
func (n *Notifications) Required() (out []v1.NoticeEvent) {
	if n.Offer == nil {
		return nil
	}
	for _, e := range v1.NoticeEvents() {
		if slices.Contains(n.Offer.Required, string(e)) {
			out = append(out, e)
		}
	}
	return out
}

// Webhook is the webhook of a person.
type Webhook = people.Webhook

// NotificationsChange holds the new choices of a person.
type NotificationsChange struct {
	Events       []v1.NoticeEvent
	WaitMinutes  int32
	Mail         bool
	WeeklyReport bool
	// Webhook is a new webhook. If Webhook is nil, KeepWebhook keeps the current webhook. The type of the current webhook must then equal
	// WebhookType, unless WebhookType is empty.
	Webhook     *Webhook
	KeepWebhook bool
	WebhookType string
}

// Notifications returns a person's choices for notices. People may read their own choices, and administrators may read all choices.
func (d *Actions) Notifications(ctx context.Context, name string) (*Notifications, error) {
	if err := rules.Decide("notifications.read", &d.caller.Subject, person(name)); err != nil {
		return nil, err
	}
	p, err := d.app.People.Person(name)
	if err != nil {
		return nil, err
	}
	return d.notifications(ctx, p)
}

func (d *Actions) notifications(ctx context.Context, p *people.Person) (*Notifications, error) {
	offer, err := d.app.offer(ctx)
	if err != nil {
		return nil, err
	}
	out := &Notifications{User: p.Name, Email: p.User.Spec.Email, Offer: offer, Choices: *v1.DefaultNotifications()}
	if n := p.User.Spec.Notifications; n != nil {
		out.Chosen, out.Choices = !n.Default(), *n.DeepCopy()
	}
	return out, d.app.tested(ctx, out)
}

// tested reads the results of a person's latest test messages into n.
func (s *App) tested(ctx context.Context, n *Notifications) error {
	if n.Offer == nil || n.Choices.Test == nil {
		return nil
	}
	m, err := s.Jobs.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, actionsv1.RecordName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the ConfigMap %s: %w", actionsv1.RecordName, err)
	}
	l := notify.NewLedger(time.Time{})
	if err == nil && m.Data[actionsv1.RecordKey] != "" {
		if l, err = notify.ParseLedger([]byte(m.Data[actionsv1.RecordKey])); err != nil {
			return err
		}
	}
	mail, own := l.TestOf(n.User, n.Choices.Test.Time)
	if n.Offer.Mail && (!n.Choices.NoMail || len(n.Offer.Required) > 0) {
		n.MailTest = mail
	}
	if n.Offer.PersonalWebhooks && n.Choices.Webhook != "" {
		n.WebhookTest = own
	}
	return nil
}

// offer returns the channels for notices, or nil if the cluster doesn't send notices.
func (s *App) offer(ctx context.Context) (*actionsv1.Offer, error) {
	m, err := s.Jobs.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, actionsv1.OfferName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the comment says so
	}
	if err != nil {
		return nil, fmt.Errorf("read the ConfigMap %s: %w", actionsv1.OfferName, err)
	}
	out := &actionsv1.Offer{}
	if err := json.Unmarshal([]byte(m.Data[actionsv1.OfferKey]), out); err != nil {
		return nil, fmt.Errorf("read the ConfigMap %s: %w", actionsv1.OfferName, err)
	}
	return out, nil
}

// SetNotifications replaces a person's choices for notices. If c is nil, it restores the defaults.
func (d *Actions) SetNotifications(ctx context.Context, name string, c *NotificationsChange) (*Notifications, error) {
	var made *people.Person
	err := d.did(ctx, "notifications.change", person(name), map[string]string{"change": "notifications"}, func(ctx context.Context) (err error) {
		if err := rules.Decide("notifications.change", &d.caller.Subject, person(name)); err != nil {
			return err
		}
		if c == nil {
			made, err = d.app.People.SetNotifications(ctx, name, nil, func(was *v1.Notifications) (*v1.Notifications, error) {
				if was == nil || !recent(was.Test, d.app.now()) {
					return nil, nil //nolint:nilnil // the defaults
				}
				next := v1.DefaultNotifications()
				next.Test = was.Test // keep the time of the last test, so that the next one still has to wait
				return next, nil
			})
			return err
		}
		offer, err := d.app.offer(ctx)
		if err != nil {
			return err
		}
		if c.Webhook != nil && (offer == nil || !offer.PersonalWebhooks) {
			return &rules.ForbiddenError{Why: "this cluster doesn't send notices to people's own webhooks: the administrator allows it with alert-handler.notifications.personalWebhooks"}
		}
		made, err = d.app.People.SetNotifications(ctx, name, c.Webhook, func(was *v1.Notifications) (*v1.Notifications, error) {
			return c.apply(was, d.app.now())
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.notifications(ctx, made)
}

func (c *NotificationsChange) apply(was *v1.Notifications, now time.Time) (*v1.Notifications, error) {
	next := &v1.Notifications{Events: c.Events, WaitMinutes: c.WaitMinutes, NoMail: !c.Mail, WeeklyReport: c.WeeklyReport}
	before := v1.DefaultNotifications()
	if was != nil {
		before, next.Test = was, was.Test
	}
	switch {
	case c.Webhook != nil:
		next.Webhook = c.Webhook.Type
	case c.KeepWebhook && before.Webhook == "" && c.WebhookType != "":
		return nil, wire.Bad(`"webhook": give its address in "url"; the account has no webhook that could be kept`)
	case c.KeepWebhook && c.WebhookType != "" && c.WebhookType != before.Webhook:
		return nil, wire.Bad(`"webhook": give its address in "url"; the webhook of the account has the type ` + before.Webhook)
	case c.KeepWebhook:
		next.Webhook = before.Webhook
	}
	if next.NoMail && next.Webhook == "" && (len(next.Events) > 0 || next.WeeklyReport) {
		return nil, wire.Bad("without mail and without a webhook, notices can't reach you: choose one of the two, or no notices")
	}
	from := map[string]metav1.Time{}
	choose := func(choice string, chosen, earlier bool) {
		at, known := before.From[choice]
		switch {
		case chosen && !earlier:
			from[choice] = metav1.NewTime(now.Truncate(time.Second))
		case chosen && known:
			from[choice] = at
		}
	}
	for _, e := range next.Events {
		choose(string(e), true, before.Gets(e))
	}
	choose(v1.FromMail, !next.NoMail, !before.NoMail)
	choose(v1.FromWebhook, next.Webhook != "", before.Webhook != "")
	if len(from) > 0 {
		next.From = from
	}
	return next, nil
}

// testEvery is the minimum time between two test messages to the same person.
const testEvery = time.Minute

// recent reports whether the person must wait before the next test message.
func recent(test *metav1.Time, now time.Time) bool {
	return test != nil && now.Sub(test.Time) < testEvery && now.Sub(test.Time) > -testEvery
}

// TestNotifications requests a test message to a person's mail address and webhook. People can request it only for themselves.
func (d *Actions) TestNotifications(ctx context.Context, name string) (*Notifications, error) {
	var made *people.Person
	err := d.did(ctx, "notifications.change", person(name), map[string]string{"change": "test notifications"}, func(ctx context.Context) (err error) {
		if err := rules.Decide("notifications.change", &d.caller.Subject, person(name)); err != nil {
			return err
		}
		switch offer, err := d.app.offer(ctx); {
		case err != nil:
			return err
		case offer == nil || !offer.Mail && !offer.PersonalWebhooks:
			return &wire.Error{Status: http.StatusConflict, Code: codeNoHandler, Message: "this cluster doesn't send notices to people", Remedy: "an operator sets alert-handler.notifications and starts the service: paictl service start -n alert-handler"}
		}
		made, err = d.app.People.SetNotifications(ctx, name, nil, func(was *v1.Notifications) (*v1.Notifications, error) {
			now := metav1.NewTime(d.app.now().Truncate(time.Second))
			if was == nil {
				was = v1.DefaultNotifications()
			}
			if recent(was.Test, now.Time) {
				return nil, &wire.Error{Status: http.StatusTooManyRequests, Code: wire.CodeTooMany, Message: "a test message was requested less than a minute ago", RetryAfter: testEvery}
			}
			was.Test = &now
			return was, nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.notifications(ctx, made)
}

// ReadNoticeEvents converts names to kinds of notices. It returns an error for an unknown name.
func ReadNoticeEvents(names []string) ([]v1.NoticeEvent, error) {
	out := []v1.NoticeEvent{}
	for _, name := range names {
		e := v1.NoticeEvent(name)
		if !slices.Contains(v1.NoticeEvents(), e) {
			var all []string
			for _, e := range v1.NoticeEvents() {
				all = append(all, string(e))
			}
			return nil, wire.Bad(`"events": ` + wire.Shown(name) + " is not a kind of notice; there are: " + strings.Join(all, ", "))
		}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out, nil
}
