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
	// NoticeStarted: a job has started. NoticeFinished: it succeeded. NoticeFailed: it failed.
	NoticeStarted  NoticeEvent = "started"
	NoticeFinished NoticeEvent = "finished"
	NoticeFailed   NoticeEvent = "failed"
	// NoticeStopped: someone stopped the job. NoticeRetried: another attempt began.
	NoticeStopped NoticeEvent = "stopped"
	NoticeRetried NoticeEvent = "retried"
	// NoticePreempted: a job with a guarantee took its GPUs.
	NoticePreempted NoticeEvent = "preempted"
	// NoticeWaiting: it has waited longer than Notifications.WaitMinutes.
	NoticeWaiting NoticeEvent = "waiting"
	// NoticeStopping: a policy or an administrator is about to stop it, has stopped it, or has changed its mind.
	NoticeStopping NoticeEvent = "stopping"
)

// NoticeEvents returns all kinds of notices.
func NoticeEvents() []NoticeEvent {
	return []NoticeEvent{NoticeStarted, NoticeFinished, NoticeFailed, NoticeStopped, NoticeRetried, NoticePreempted, NoticeWaiting, NoticeStopping}
}

const (
	// DefaultWaitMinutes is WaitMinutes of a person who hasn't set it.
	DefaultWaitMinutes = 60
	// MaxWaitMinutes is the largest one: 30 days.
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
	// NoMail turns mails off, except those that the administrator requires.
	NoMail bool `json:"noMail,omitempty"`
	// +kubebuilder:validation:Enum="";generic;slack;teams;feishu;dingtalk

	// Webhook is the type of the person's own webhook; empty means none. Its address is in a Secret.
	Webhook string `json:"webhook,omitempty"`
	// WeeklyReport requests a report of GPU hours each week.
	WeeklyReport bool `json:"weeklyReport,omitempty"`
	// Since is the time of the latest change that added a kind of notice: earlier events have no notices.
	Since *metav1.Time `json:"since,omitempty"`
	// Test is the time of the latest request for a test message.
	Test *metav1.Time `json:"test,omitempty"`
}

// DefaultNotifications are those of a person who hasn't chosen any.
func DefaultNotifications() *Notifications {
	return &Notifications{Events: []NoticeEvent{NoticeStopping}}
}

// Gets reports whether a kind of notice is chosen.
func (n *Notifications) Gets(e NoticeEvent) bool { return slices.Contains(n.Events, e) }

// Wait returns how long a job waits before the notice waiting.
func (n *Notifications) Wait() time.Duration {
	if n.WaitMinutes <= 0 {
		return DefaultWaitMinutes * time.Minute
	}
	return time.Duration(n.WaitMinutes) * time.Minute
}
