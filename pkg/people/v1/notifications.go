package v1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NoticeEvent is a kind of notice about a person's jobs.
// +kubebuilder:validation:Enum=started;finished;failed;stopped;retried;preempted;waiting;stopping
type NoticeEvent string

// Kinds of notices.
const (
	// NoticeStarted means that a job has started. NoticeFinished means that it succeeded. NoticeFailed means that it failed.
	NoticeStarted  NoticeEvent = "started"
	NoticeFinished NoticeEvent = "finished"
	NoticeFailed   NoticeEvent = "failed"
	// NoticeStopped means that a person or a policy stopped the job. NoticeRetried means that another attempt began.
	NoticeStopped NoticeEvent = "stopped"
	NoticeRetried NoticeEvent = "retried"
	// NoticePreempted means that a job with a guarantee took the job's GPUs.
	NoticePreempted NoticeEvent = "preempted"
	// NoticeWaiting means that the job has waited longer than Notifications.WaitMinutes.
	NoticeWaiting NoticeEvent = "waiting"
	// NoticeStopping means that a policy or an administrator has announced, carried out or canceled the end of the job.
	NoticeStopping NoticeEvent = "stopping"
)

// NoticeEvents returns all kinds of notices.
func NoticeEvents() []NoticeEvent {
	return []NoticeEvent{NoticeStarted, NoticeFinished, NoticeFailed, NoticeStopped, NoticeRetried, NoticePreempted, NoticeWaiting, NoticeStopping}
}

const (
	// DefaultWaitMinutes is the value of WaitMinutes for a person who hasn't set it.
	DefaultWaitMinutes = 60
	// MaxWaitMinutes is the maximum value of WaitMinutes, which is 30 days.
	MaxWaitMinutes = 30 * 24 * 60
)

// Notifications are the choices of a person: the notices about their jobs, and where they are sent.
type Notifications struct {
	// +listType=set
	// +kubebuilder:validation:MaxItems=20

	// Events are the kinds of notices that the person gets. A job file can select others for its job.
	Events []NoticeEvent `json:"events,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=43200

	// WaitMinutes is how long a job waits before the notice waiting; 0 means an hour.
	WaitMinutes int32 `json:"waitMinutes,omitempty"`
	// NoMail turns mails off, except the mails that the administrator requires.
	NoMail bool `json:"noMail,omitempty"`
	// +kubebuilder:validation:Enum="";generic;slack;teams;feishu;dingtalk

	// Webhook is the type of the person's own webhook; empty means none. Its address is in a Secret.
	Webhook string `json:"webhook,omitempty"`
	// WeeklyReport requests a report of GPU hours each week.
	WeeklyReport bool `json:"weeklyReport,omitempty"`
	// +kubebuilder:validation:MaxProperties=20

	// From holds the time when each choice takes effect, by kind of notice, FromMail and FromWebhook: earlier events have no notices.
	From map[string]metav1.Time `json:"from,omitempty"`
	// Test is the time of the latest request for a test message.
	Test *metav1.Time `json:"test,omitempty"`
}

// Keys of Notifications.From for the channels. The other keys are kinds of notices.
const (
	FromMail    = "mail"
	FromWebhook = "webhook"
)

// DefaultNotifications returns the choices for a person who has made no choice.
func DefaultNotifications() *Notifications {
	return &Notifications{Events: []NoticeEvent{NoticeStopping}}
}

// Default reports whether the choices equal the defaults. It ignores the time of the latest test message.
func (n *Notifications) Default() bool {
	d := DefaultNotifications()
	return slices.Equal(n.Events, d.Events) && n.Wait() == d.Wait() && !n.NoMail && n.Webhook == "" && !n.WeeklyReport
}

// Gets reports whether the person has chosen a kind of notice.
func (n *Notifications) Gets(e NoticeEvent) bool { return slices.Contains(n.Events, e) }

// Counts reports whether a choice was already in effect at the time of an event.
func (n *Notifications) Counts(choice string, at time.Time) bool {
	from, set := n.From[choice]
	return !set || !at.Before(from.Time)
}

// Wait returns how long a job waits before the person gets the notice NoticeWaiting.
func (n *Notifications) Wait() time.Duration {
	if n.WaitMinutes <= 0 {
		return DefaultWaitMinutes * time.Minute
	}
	return time.Duration(n.WaitMinutes) * time.Minute
}
