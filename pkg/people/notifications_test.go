package people_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

func TestWrongWebhooksAreRefusedWithoutTheirText(t *testing.T) {
	for name, w := range map[string]people.Webhook{
		"a type": {Type: "irc", URL: "https://hooks.example.org/S3CRET"}, "no encryption": {Type: "slack", URL: "http://hooks.example.org/S3CRET"}, "no address": {Type: "slack", URL: "S3CRET"},
		"loopback": {Type: "slack", URL: "https://[::1]/S3CRET"}, "mapped": {Type: "slack", URL: "https://[::ffff:127.0.0.1]:8443/S3CRET"}, "link-local": {Type: "slack", URL: "https://169.254.169.254/S3CRET"},
		"this machine": {Type: "slack", URL: "https://localhost/S3CRET"},
		"a signature":  {Type: "slack", URL: "https://hooks.example.org/S3CRET", SigningSecret: "S3CRET"},
		"too long":     {Type: "slack", URL: secret.String("https://hooks.example.org/S3CRET" + string(make([]byte, 2000)))},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.Check()
			require.ErrorIs(t, err, people.ErrInvalid)
			assert.NotContains(t, err.Error(), "S3CRET")
		})
	}
	require.NoError(t, (&people.Webhook{Type: "slack", URL: "https://10.20.0.7/x"}).Check(), "the configuration may allow it")
	require.NoError(t, (&people.Webhook{Type: "feishu", URL: "https://hooks.example.org/x", SigningSecret: "y"}).Check())
}

// The address of a webhook stays in the Secret of all webhooks until the person's choice or the person is removed.
func TestAWebhookIsRemovedWithItsPerson(t *testing.T) {
	c := open(t)
	c.add("root", v1.GroupAdministrators)
	c.add("bob")
	hook := &people.Webhook{Type: "slack", URL: "https://hooks.example.org/S3CRET"}
	choose := func(w *people.Webhook, next *v1.Notifications) *people.Person {
		t.Helper()
		p, err := c.SetNotifications(t.Context(), "bob", w, func(*v1.Notifications) (*v1.Notifications, error) { return next, nil })
		require.NoError(t, err)
		return p
	}
	p := choose(hook, &v1.Notifications{Events: []v1.NoticeEvent{v1.NoticeFailed}, Webhook: "slack"})
	found, err := c.Webhook(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, hook, found)
	another := *p
	another.UID = "later"
	found, err = c.Webhook(t.Context(), &another)
	require.NoError(t, err)
	assert.Nil(t, found, "a later person of the name doesn't get it")

	p = choose(nil, nil)
	found, err = c.Webhook(t.Context(), p)
	require.NoError(t, err)
	assert.Nil(t, found)

	p = choose(hook, &v1.Notifications{Webhook: "slack"})
	require.NoError(t, c.Remove(t.Context(), "bob"))
	found, err = c.Webhook(t.Context(), p)
	require.NoError(t, err)
	assert.Nil(t, found)

	_, err = c.SetNotifications(t.Context(), "root", nil, func(*v1.Notifications) (*v1.Notifications, error) {
		return &v1.Notifications{Events: []v1.NoticeEvent{"idle"}}, nil
	})
	require.ErrorIs(t, err, people.ErrInvalid)
}
