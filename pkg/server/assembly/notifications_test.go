package assembly_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/kube"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// offers publishes the channels for notices. If text is "", the cluster sends no notices.
func (h *house) offers(t *testing.T, text string) {
	t.Helper()
	maps := h.cluster.Client.CoreV1().ConfigMaps(kube.SystemNamespace)
	if err := maps.Delete(t.Context(), actionsv1.OfferName, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
	if text == "" {
		return
	}
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: actionsv1.OfferName}, Data: map[string]string{actionsv1.OfferKey: text}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestPeopleChooseTheirNotices(t *testing.T) {
	h := newHouse(t)
	h.offers(t, "")
	const path = "/api/v3/users/ann/notifications"
	get := func(who string) (out api.Notifications) {
		t.Helper()
		a := h.as(who, "GET", path, "")
		require.Equal(t, 200, a.Status, a.Body)
		a.Into(&out)
		return out
	}
	put := func(c api.NotificationsChange, status int) (out api.Notifications) {
		t.Helper()
		a := h.as("ann", "PUT", path, body(t, c))
		require.Equal(t, status, a.Status, a.Body)
		assert.NotContains(t, a.Body, "S3CRET")
		if status == 200 {
			a.Into(&out)
		}
		return out
	}
	first := get("ann")
	assert.False(t, first.Chosen)
	assert.Equal(t, []v1.NoticeEvent{v1.NoticeStopping}, first.Events)
	assert.Equal(t, []string{"this cluster doesn't send notices: the service alert-handler isn't started"}, first.Problems)
	assert.Equal(t, 403, h.as("vic", "GET", path, "").Status)
	assert.Equal(t, 403, h.as("vic", "PUT", path, body(t, api.NotificationsChange{Mail: true})).Status)
	assert.Equal(t, 404, h.as("root", "GET", "/api/v3/users/nobody/notifications", "").Status)

	h.offers(t, `{"mail":true,"personalWebhooks":false,"required":["stopping"]}`)
	now := put(api.NotificationsChange{Events: []v1.NoticeEvent{v1.NoticeFailed}, WaitMinutes: 30, Mail: true}, 200)
	assert.Equal(t, []v1.NoticeEvent{v1.NoticeFailed, v1.NoticeStopping}, now.Events, "a required kind stays")
	assert.Equal(t, []v1.NoticeEvent{v1.NoticeStopping}, now.Required)
	assert.Equal(t, int32(30), get("root").WaitMinutes, "an administrator sees it, too")
	hook := &api.OwnWebhook{Type: "slack", URL: "https://hooks.example.org/S3CRET"}
	put(api.NotificationsChange{Mail: true, Webhook: hook}, 403)
	put(api.NotificationsChange{Events: []v1.NoticeEvent{"idle"}, Mail: true}, 400)
	put(api.NotificationsChange{Events: []v1.NoticeEvent{v1.NoticeFailed}}, 400)
	put(api.NotificationsChange{Mail: true, WaitMinutes: 100000}, 400)

	h.offers(t, `{"mail":true,"personalWebhooks":true,"required":[]}`)
	put(api.NotificationsChange{Mail: true, Webhook: &api.OwnWebhook{Type: "slack", URL: "http://hooks.example.org/S3CRET"}}, 400)
	now = put(api.NotificationsChange{Events: []v1.NoticeEvent{v1.NoticeFailed}, Webhook: hook}, 200)
	assert.Equal(t, "slack", now.Webhook)
	assert.False(t, now.Mail)
	secrets := h.cluster.Client.CoreV1().Secrets(v1.Namespace)
	stored, err := secrets.Get(t.Context(), v1.Webhooks, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Contains(t, string(stored.Data[v1.ObjectName("ann")]), "S3CRET")
	assert.NotContains(t, h.as("root", "GET", "/api/v3/users/ann", "").Body, "S3CRET")
	now = put(api.NotificationsChange{Events: []v1.NoticeEvent{v1.NoticeFailed}, Mail: true, Webhook: &api.OwnWebhook{}}, 200)
	assert.Equal(t, "slack", now.Webhook, "without an address, the webhook stays")
	put(api.NotificationsChange{Mail: true, Webhook: &api.OwnWebhook{Type: "feishu"}}, 400)

	a := h.as("ann", "POST", path+"/test", "{}")
	require.Equal(t, 200, a.Status, a.Body)
	a.Into(&now)
	assert.Equal(t, "waiting", now.MailTest)
	assert.Equal(t, "waiting", now.WebhookTest)
	assert.Equal(t, 429, h.as("ann", "POST", path+"/test", "{}").Status)
	require.Equal(t, 200, h.as("ann", "DELETE", path, "").Status)
	assert.False(t, get("ann").Chosen)
	assert.Equal(t, 429, h.as("ann", "POST", path+"/test", "{}").Status, "the defaults don't hide when the last one was")
	put(api.NotificationsChange{Mail: true, Webhook: &api.OwnWebhook{Type: "slack"}}, 400)
	put(api.NotificationsChange{Events: []v1.NoticeEvent{v1.NoticeFailed}, Webhook: hook}, 200)
	h.offers(t, "")
	assert.Equal(t, 409, h.as("ann", "POST", path+"/test", "{}").Status)

	require.Equal(t, 200, h.as("ann", "DELETE", path, "").Status)
	assert.False(t, get("ann").Chosen)
	stored, err = secrets.Get(t.Context(), v1.Webhooks, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, stored.Data, "its address is gone as well")
}
