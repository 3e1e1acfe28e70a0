package alerthandler

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	"github.com/openpai/paictl/pkg/alerthandler/notify/send"
	"github.com/openpai/paictl/pkg/job/api"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	// RecordName is the ConfigMap with the record of notices. The chart makes it, so that the handler needs no right to create any.
	RecordName = Name + "-notices"
	recordKey  = "record.json"
	// pause is the shortest time between two looks for notices: one message has what happens within.
	pause = 2 * time.Second
)

// newNotifier returns a notifier for the objects that the handler watches.
func (h *Handler) newNotifier() (*notify.Notifier, error) {
	c := h.o.Notify
	o := notify.Options{Config: c, World: h.world, Webhooks: map[string]notify.Channel{}, Store: &record{core: h.core, namespace: h.o.SystemNamespace},
		Counters: h.metrics, Log: h.o.Log, Now: h.o.Now, Pause: h.o.Pause}
	if o.Pause == 0 {
		o.Pause = pause
	}
	if c.SMTP.Host != "" {
		o.Mail = send.NewMail(&c.SMTP)
	}
	for i := range c.Webhooks {
		w, err := send.NewWebhook(&c.Webhooks[i], c)
		if err != nil {
			return nil, fmt.Errorf("the webhook %s: %w", c.Webhooks[i].Name, err)
		}
		o.Webhooks[c.Webhooks[i].Name] = w
	}
	return notify.New(o), nil
}

// world returns the facts from which notices are made.
func (h *Handler) world() (*notify.World, error) {
	if !h.Synced() {
		return nil, errors.New("the cluster isn't known yet")
	}
	if err := h.people.Fresh(); err != nil {
		return nil, err // everyone would seem to have no address
	}
	w := &notify.World{Actions: h.list(), Address: h.address, KeepTag: h.keepTag}
	for _, j := range h.jobs.All() {
		if j.news != nil {
			w.Jobs = append(w.Jobs, *j.news)
		}
	}
	return w, nil
}

// address returns the address of a person; empty for people without one, and for people who can no longer sign in.
func (h *Handler) address(name string) string {
	p, err := h.people.Person(name)
	if err != nil || p.Disabled || p.Gone {
		return ""
	}
	return p.User.Spec.Email
}

func (h *Handler) keepTag(name string) string {
	if p := h.o.Policies.ByName(name); p != nil && len(p.Exempt.Tags) > 0 {
		return p.Exempt.Tags[0]
	}
	return ""
}

// news returns the facts for notices of a job whose owner asks for them; nil otherwise.
func news(f *jobv1.Framework, row *api.Job) *notify.Job {
	states := jobv1.ReadNotify(f.Annotations[jobv1.AnnotationNotify])
	if len(states) == 0 || f.Status == nil || row.User == "" {
		return nil
	}
	j := &notify.Job{UID: f.UID, User: row.User, Name: row.Name, Notify: states, State: jobv1.NotifyState(row.State), Retries: row.Retries,
		Why: f.Status.Message, Stopped: f.Annotations[jobv1.AnnotationStopped]}
	if row.Started != nil {
		j.Started = *row.Started
	}
	ended := row.State == api.Succeeded || row.State == api.Failed || row.State == api.Stopped
	if row.Completed != nil && ended {
		j.Completed = *row.Completed
	}
	if row.Retries > 0 && f.Status.AttemptStatus.ID == row.Retries {
		j.Retried = f.Status.AttemptStatus.StartTime.Time
	}
	if c := f.Status.AttemptStatus.CompletionStatus; j.Why == "" && c != nil && c.CompletionStatus != nil {
		j.Why = fmt.Sprintf("%s (exit code %d)", c.Phrase, c.Code)
	}
	return j
}

// record is the ConfigMap with the record of notices.
type record struct {
	core      kubernetes.Interface
	namespace string
	read      *corev1.ConfigMap // as it was read or written last
}

// Load reads the record.
func (r *record) Load(ctx context.Context) (*notify.Ledger, error) {
	m, err := r.core.CoreV1().ConfigMaps(r.namespace).Get(ctx, RecordName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the ConfigMap %s of the service is missing; paictl service start makes it again: %w", RecordName, err)
	}
	if err != nil {
		return nil, err
	}
	r.read = m
	text := m.Data[recordKey]
	if text == "" {
		return nil, nil //nolint:nilnil // the interface says so
	}
	return notify.ParseLedger([]byte(text))
}

// Save writes the record. The API server refuses it if another replica has written it since.
func (r *record) Save(ctx context.Context, l *notify.Ledger) error {
	text, err := l.Marshal()
	if err != nil {
		return err
	}
	next := r.read.DeepCopy()
	next.Data = map[string]string{recordKey: string(text)}
	m, err := r.core.CoreV1().ConfigMaps(r.namespace).Update(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", notify.ErrReplaced, err)
	}
	if err != nil {
		return err
	}
	r.read = m
	return nil
}
