package api

import (
	"time"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Notifications are a person's choices of notices that are in effect.
type Notifications struct {
	User string `json:"user"`
	// Chosen reports whether the person has chosen; without a choice, these are the defaults.
	Chosen bool `json:"chosen"`
	// Events are the kinds of notices that the person gets: the chosen kinds and the required kinds.
	Events []v1.NoticeEvent `json:"events"`
	// Required are the kinds of notices that the administrator requires: they can't be turned off, and always come by
	// mail.
	Required []v1.NoticeEvent `json:"required"`
	// WaitMinutes is how long a job waits before the notice "waiting".
	WaitMinutes int32 `json:"waitMinutes"`
	// Mail reports whether the person wants mails, to the Address of the account.
	Mail    bool   `json:"mail"`
	Address string `json:"address,omitempty"`
	// Webhook is the type of the person's own webhook; "" without a webhook. Its address is never returned.
	Webhook      string `json:"webhook,omitempty"`
	WeeklyReport bool   `json:"weeklyReport"`
	// Test is the time of the latest test message that was requested.
	Test *time.Time `json:"test,omitempty"`
	// MailTest and WebhookTest are the results of that message: waiting, unknown, sent, skipped or lost; "" if none was sent there.
	MailTest    string `json:"mailTest,omitempty"`
	WebhookTest string `json:"webhookTest,omitempty"`
	// Problems explain why notices don't reach the person now.
	Problems []string `json:"problems,omitempty"`
}

// NotificationsChange replaces a person's choices. Required kinds of notices stay, even if Events doesn't have them.
type NotificationsChange struct {
	Events       []v1.NoticeEvent `json:"events"`
	WaitMinutes  int32            `json:"waitMinutes,omitempty"` // 0: an hour
	Mail         bool             `json:"mail"`
	WeeklyReport bool             `json:"weeklyReport,omitempty"`
	// Webhook is the person's own webhook; without it, the current one is removed.
	Webhook *OwnWebhook `json:"webhook,omitempty"`
}

// OwnWebhook is a person's own webhook. Without a URL it is the current webhook.
type OwnWebhook struct {
	Type          string `json:"type,omitempty"` // generic, slack, teams, feishu, dingtalk
	URL           string `json:"url,omitempty"`
	SigningSecret string `json:"signingSecret,omitempty"` // for robots of Feishu and DingTalk that check signatures
}
