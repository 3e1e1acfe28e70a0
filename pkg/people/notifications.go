package people

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// Webhook is a person's own webhook for notices. Everyone with the address can write to the person's chat.
type Webhook struct {
	// Type is generic, slack, teams, feishu or dingtalk.
	Type string
	// URL is the webhook's address. SigningSecret signs requests to Feishu and DingTalk robots that require a signature.
	URL, SigningSecret secret.String
}

// maxWebhook limits the length of the address and of the signing secret of a webhook, in bytes. All webhooks share one Secret.
const maxWebhook = 1024

// webhookTypes holds the types of webhooks that pkg/alerthandler/notify supports.
var webhookTypes = []string{"generic", "slack", "teams", "feishu", "dingtalk"}

// Check returns the reason why a webhook can't be used, or nil.
func (w *Webhook) Check() error {
	if !slices.Contains(webhookTypes, w.Type) {
		return invalid("webhook", "%q is not a type of webhook: use generic, slack, teams, feishu or dingtalk", w.Type)
	}
	u, err := url.Parse(w.URL.Reveal())
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https": // the error never shows the address
		return hint.Wrap(invalid("webhook", "that is not the address of a webhook"), "give the address that the chat shows for incoming webhooks; it begins with https://")
	case neverReached(u.Hostname()):
		return hint.Wrap(invalid("webhook", "the address is one of a machine itself, which notices never reach"), "give the name of the chat's server")
	case len(w.URL) > maxWebhook || len(w.SigningSecret) > maxWebhook:
		return invalid("webhook", "the address and the signing secret have %d characters at most", maxWebhook)
	case w.SigningSecret.IsSet() && w.Type != "feishu" && w.Type != "dingtalk":
		return invalid("webhook", "only feishu and dingtalk check signatures")
	}
	return nil
}

// neverReached reports whether a host is an address that the alert handler blocks in every configuration. The alert handler also checks each
// connection, including resolved names and configurable networks.
func neverReached(host string) bool {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
	}
	a = a.Unmap()
	return a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast()
}

// checkNotifications validates a person's choices for notices. The API server validates only stored choices, but callers also check other choices.
func checkNotifications(n *v1.Notifications) error {
	if n == nil {
		return nil
	}
	for i, e := range n.Events {
		if !slices.Contains(v1.NoticeEvents(), e) {
			return invalid("events", "%q is not a kind of notice", e)
		}
		if slices.Contains(n.Events[:i], e) {
			return invalid("events", "%s is listed twice", e)
		}
	}
	if n.WaitMinutes < 0 || n.WaitMinutes > v1.MaxWaitMinutes {
		return invalid("wait", "give a time from a minute to 30 days")
	}
	if n.Webhook != "" && !slices.Contains(webhookTypes, n.Webhook) {
		return invalid("webhook", "%q is not a type of webhook", n.Webhook)
	}
	return nil
}

// SetNotifications stores a person's choices for notices. It calls change with the current choices, which are nil if the person has made no choice.
// change returns the new choices, or nil to restore the defaults. hook is a new webhook. If hook is nil, the current webhook is kept if the choices
// contain a webhook.
func (d *Directory) SetNotifications(ctx context.Context, name string, hook *Webhook, change func(*v1.Notifications) (*v1.Notifications, error)) (*Person, error) {
	p, err := d.Person(name)
	if err != nil {
		return nil, err
	}
	if hook != nil {
		if err := hook.Check(); err != nil {
			return nil, err
		}
		// Store the address first, so that an address exists whenever the choices contain a webhook.
		if err := d.putWebhook(ctx, p, hook); err != nil {
			return nil, err
		}
	}
	p, err = d.Update(ctx, name, func(s *v1.UserSpec) error {
		next, err := change(s.Notifications.DeepCopy())
		if err == nil {
			s.Notifications = next
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if n := p.User.Spec.Notifications; n == nil || n.Webhook == "" {
		err = d.dropWebhook(ctx, name)
	}
	return p, err
}

// storedWebhook is the JSON of one person's webhook in the Secret of all webhooks.
type storedWebhook struct {
	UID           types.UID `json:"uid"`
	Type          string    `json:"type"`
	URL           string    `json:"url"`
	SigningSecret string    `json:"signingSecret,omitempty"`
}

// Webhook reads a person's own webhook from the API server. It returns nil if the person has no webhook.
func (d *Directory) Webhook(ctx context.Context, p *Person) (*Webhook, error) {
	s, err := d.core.CoreV1().Secrets(v1.Namespace).Get(ctx, v1.Webhooks, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(fmt.Errorf("read the webhook of %s: %w", p.Name, err))
	}
	return webhookOf(s.Data[v1.ObjectName(p.Name)], p), nil
}

// webhookOf returns the stored webhook, or nil if it is invalid or belongs to an earlier person with the same name.
func webhookOf(data []byte, p *Person) *Webhook {
	var w storedWebhook
	if len(data) == 0 || json.Unmarshal(data, &w) != nil || w.UID != p.UID {
		return nil
	}
	return &Webhook{w.Type, secret.String(w.URL), secret.String(w.SigningSecret)}
}

func (d *Directory) putWebhook(ctx context.Context, p *Person, w *Webhook) error {
	data, err := json.Marshal(storedWebhook{p.UID, w.Type, w.URL.Reveal(), w.SigningSecret.Reveal()})
	if err != nil {
		return err
	}
	return d.changeWebhooks(ctx, func(s *corev1.Secret) bool {
		s.Data[v1.ObjectName(p.Name)] = data
		return true
	})
}

func (d *Directory) dropWebhook(ctx context.Context, name string) error {
	return d.changeWebhooks(ctx, func(s *corev1.Secret) bool {
		_, known := s.Data[v1.ObjectName(name)]
		delete(s.Data, v1.ObjectName(name))
		return known
	})
}

// changeWebhooks changes the Secret of all webhooks. change reports whether it has changed the Secret. An unchanged Secret isn't written.
func (d *Directory) changeWebhooks(ctx context.Context, change func(*corev1.Secret) bool) error {
	secrets := d.core.CoreV1().Secrets(v1.Namespace)
	for range tries {
		s, err := secrets.Get(ctx, v1.Webhooks, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return explain(fmt.Errorf("read the Secret %s/%s: %w", v1.Namespace, v1.Webhooks, err))
		}
		if missing {
			s = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: v1.Webhooks, Namespace: v1.Namespace, Labels: map[string]string{v1.LabelPeople: v1.SecretWebhooks}}}
		}
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		if !change(s) {
			return nil
		}
		if missing {
			_, err = secrets.Create(ctx, s, metav1.CreateOptions{})
		} else {
			_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
		}
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return explain(fmt.Errorf("write the Secret %s/%s: %w", v1.Namespace, v1.Webhooks, err))
		}
	}
	return fmt.Errorf("%w: the Secret %s/%s changes all the time", ErrUnavailable, v1.Namespace, v1.Webhooks)
}
