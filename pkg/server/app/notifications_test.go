package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// A choice applies from the time when the person made it. If the person makes another choice later, the times of existing choices don't change.
func TestChoicesCountFromTheChange(t *testing.T) {
	first := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	later := metav1.NewTime(first.Add(time.Hour))
	was, err := (&NotificationsChange{Events: []v1.NoticeEvent{v1.NoticeFailed, v1.NoticeStopping}, Mail: true}).apply(nil, first)
	require.NoError(t, err)
	assert.Equal(t, map[string]metav1.Time{"failed": metav1.NewTime(first)}, was.From, "stopping and mail are defaults")
	next, err := (&NotificationsChange{Events: []v1.NoticeEvent{v1.NoticeFailed, v1.NoticeStarted}, Mail: true, Webhook: &Webhook{Type: "slack"}}).apply(was, later.Time)
	require.NoError(t, err)
	assert.Equal(t, map[string]metav1.Time{"failed": metav1.NewTime(first), "started": later, v1.FromWebhook: later}, next.From)
	last, err := (&NotificationsChange{Events: []v1.NoticeEvent{v1.NoticeStopping}, KeepWebhook: true}).apply(next, later.Add(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, map[string]metav1.Time{"stopping": metav1.NewTime(later.Add(time.Hour)), v1.FromWebhook: later}, last.From)
}

// A webhook without an address means the person's current webhook.
func TestAWebhookThatIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		was  string
		kind string
		err  string
	}{
		"the present one":   {"slack", "", ""},
		"with its type":     {"slack", "slack", ""},
		"of another type":   {"slack", "feishu", "has the type slack"},
		"none":              {"", "", ""},
		"none, with a type": {"", "slack", "no webhook that could be kept"},
	} {
		t.Run(name, func(t *testing.T) {
			next, err := (&NotificationsChange{Mail: true, KeepWebhook: true, WebhookType: c.kind}).apply(&v1.Notifications{Webhook: c.was}, time.Now())
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.was, next.Webhook)
		})
	}
}
