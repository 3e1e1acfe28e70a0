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
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/job/api"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	// RecordName is the name of the ConfigMap that records sent notices. The chart creates the ConfigMap, so that the handler needs no permission to
	// create ConfigMaps.
	RecordName = v1.RecordName
	recordKey  = v1.RecordKey
	// pause is the minimum time between two checks for notices. Notices of events within this time are combined into one message.
	pause = 2 * time.Second
	// askedWithin is the time within which a request for a test message is valid.
	askedWithin = time.Hour
)

// newNotifier returns a notifier for the objects that the handler watches.
func (h *Handler) newNotifier() (*notify.Notifier, error) {
	c := h.o.Notify
	o := notify.Options{Config: c, World: h.world, Webhooks: map[string]notify.Channel{}, Store: &record{core: h.core, namespace: h.o.SystemNamespace},
		Counters: h.metrics, Log: h.o.Log, Now: h.o.Now, Pause: h.o.Pause, Jumped: func() bool { return h.clock.look(h.o.Now()) }}
	if o.Pause == 0 {
		o.Pause = pause
	}
	if c.SMTP.Host != "" {
		o.Mail = send.NewMail(&c.SMTP)
	}
	if c.PersonalWebhooks {
		o.OwnWebhook = func(person string) notify.Channel { return &ownWebhook{h, person} }
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

// world returns the facts from which notices are made. It returns an error if the facts are incomplete or may be stale.
func (h *Handler) world() (*notify.World, error) {
	if !h.Synced() {
		return nil, errors.New("the cluster isn't known yet")
	}
	if err := h.people.Fresh(); err != nil {
		return nil, err // everyone would seem to have no address
	}
	w := &notify.World{Now: h.o.Now(), Actions: h.list(), Person: h.person, KeepTag: h.keepTag, NotifiesOwners: h.notifiesOwners, Opens: h.opens}
	for _, j := range h.jobs.All() {
		if j.news != nil {
			w.Jobs = append(w.Jobs, *j.news)
		}
	}
	for _, p := range h.people.Users() {
		if n := p.User.Spec.Notifications; n != nil && n.Test != nil && w.Now.Sub(n.Test.Time) < askedWithin {
			w.TestRequests = append(w.TestRequests, h.person(p.Name))
		}
	}
	w.Weekly = h.weeklyNotice(w.Now)
	return w, nil
}

// person returns the data about a person for notices. A person has no address after the person was removed or blocked from signing in.
func (h *Handler) person(name string) notify.Person {
	p, err := h.people.Person(name)
	if err != nil || p.Disabled || p.Unconfirmed {
		return notify.Person{Name: name}
	}
	return notify.Person{Name: name, Address: p.User.Spec.Email, Chosen: p.User.Spec.Notifications, Groups: p.Groups, Administrator: p.Grants.Administrator}
}

// ownWebhook is the channel of a person's own webhook. It reads the address again for each connection, because the person may change the address.
type ownWebhook struct {
	h    *Handler
	name string
}

// Open implements notify.Channel.
func (o *ownWebhook) Open(ctx context.Context) (notify.Session, error) {
	p, err := o.h.people.Person(o.name)
	if err != nil {
		return nil, err
	}
	w, err := o.h.people.Webhook(ctx, p)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, fmt.Errorf("the address of the webhook of %s is missing", o.name)
	}
	c, err := send.NewWebhook(&notify.Webhook{Name: "the webhook of " + o.name, Type: notify.Type(w.Type), SecretURL: w.URL, SigningSecret: w.SigningSecret}, o.h.o.Notify)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx)
}

func (h *Handler) opens(name string, from time.Time) time.Time {
	if p := h.o.Policies.ByName(name); p != nil {
		return p.Opens().Next(from)
	}
	return from
}

func (h *Handler) keepTag(name string) string {
	if p := h.o.Policies.ByName(name); p != nil && len(p.Exempt.Tags) > 0 {
		return p.Exempt.Tags[0]
	}
	return ""
}

// notifiesOwners reports whether a policy makes dry runs and notifies owners of jobs about them.
func (h *Handler) notifiesOwners(name string) bool {
	p := h.o.Policies.ByName(name)
	return p != nil && p.DryRun && p.NotifyOwners
}

// news returns the facts that notices about a job need. It returns nil if the job has no owner.
func news(f *jobv1.Framework, row *api.Job) *notify.Job {
	if row.User == "" {
		return nil
	}
	text, selects := f.Annotations[jobv1.AnnotationNotify]
	j := &notify.Job{UID: f.UID, User: row.User, Name: row.Name, Selects: selects, Notify: jobv1.ReadNotify(text), State: jobv1.NotifyState(row.State), Retries: row.Retries,
		Stopped: f.Annotations[jobv1.AnnotationStopped]}
	if row.State == api.Waiting {
		j.Waits = row.Submitted
	}
	if f.Status == nil {
		return j
	}
	a := &f.Status.AttemptStatus
	j.Why = f.Status.Message
	if row.Started != nil {
		j.Started = *row.Started
	}
	ended := row.State == api.Succeeded || row.State == api.Failed || row.State == api.Stopped
	if row.Completed != nil && ended {
		j.Completed = *row.Completed
	}
	for _, r := range jobv1.ReadRequeues(f.Annotations) {
		// The current attempt may end before the controller handles the request for another attempt.
		if follows := a.CompletionStatus != nil && !f.Finished(); follows || r.Restart != f.Requested() {
			j.Requests = append(j.Requests, r.Action)
		}
	}
	if row.Retries > 0 && a.ID == row.Retries {
		j.Retried, j.Preempted = a.StartTime.Time, f.Status.PreviousAttempt.Preempted()
		if p := f.Status.PreviousAttempt; p != nil && !ended && row.State != api.Waiting {
			j.Why = fmt.Sprintf("%s (exit code %d)", p.Phrase, p.Code)
		}
		if r := f.Requeued(); r != nil {
			j.Requeued = r.Action
			if !ended && row.State != api.Waiting {
				j.Why = r.Reason
			}
		}
	}
	switch {
	case row.State != api.Waiting:
	case a.CompletionTime != nil:
		j.Waits = a.CompletionTime.Time
	case a.ID > 0:
		j.Waits = a.StartTime.Time
	}
	if c := a.CompletionStatus; j.Why == "" && c != nil && c.CompletionStatus != nil {
		j.Why = fmt.Sprintf("%s (exit code %d)", c.Phrase, c.Code)
	}
	return j
}

type record struct {
	core      kubernetes.Interface
	namespace string
	read      *corev1.ConfigMap // as it was read or written last
}

// Load reads the record. It returns nil if the ConfigMap contains no record.
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

// Save writes the record. It returns notify.ErrReplaced if another replica has written the ConfigMap since the record was read.
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
