package alerthandler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Labels of Actions that a policy has created.
const (
	LabelPolicy   = "paictl.openpai.org/policy"
	LabelIncident = "paictl.openpai.org/incident"
	LabelStep     = "paictl.openpai.org/step"
	// LabelLast marks the Action of the last step. If the policy gets more steps later, the additional steps don't run for alerts whose steps were
	// already completed.
	LabelLast = "paictl.openpai.org/last-step"
	// LabelAlternative marks an Action that a step with ifFailed follows if it fails. If the policy gets such a step later, that step doesn't run for
	// earlier failures.
	LabelAlternative = "paictl.openpai.org/alternative-step"
)

// Annotations of the Action for the first step of an incident. Times are in RFC 3339. Each annotation holds one field of policy.Incident, so that two
// replicas don't overwrite each other's fields.
const (
	// AnnotationLastAlert is the approximate time of Alertmanager's last message about the alert.
	AnnotationLastAlert = "paictl.openpai.org/last-alert"
	// AnnotationAlertStarted is the latest start time of the alert in Alertmanager's messages.
	AnnotationAlertStarted = "paictl.openpai.org/alert-started"
	// AnnotationAlertEnded is the time at which the alert ended. The annotation is missing while the alert fires.
	AnnotationAlertEnded = "paictl.openpai.org/alert-ended"
)

// AnnotationAlertLabels holds the labels of the alert as JSON, on the Action for the first step of an incident.
const AnnotationAlertLabels = "paictl.openpai.org/alert-labels"

// mostLabels limits the size of the stored labels, in bytes.
const mostLabels = 16 << 10

const (
	// mostTries limits how often the handler repeats a change after a conflict. A conflict means that the watch holds an old version of the Action.
	mostTries = 5
	// noted is the minimum interval between two writes of AnnotationLastAlert. notedOver is the minimum interval for an Action that has begun or
	// ended.
	noted, notedOver = 5 * time.Minute, time.Hour
)

var errBehind = errors.New("other replicas changed the actions of the alert")

// incidentOf returns the incident of an Action, or nil if the Action isn't the first step of an incident.
func incidentOf(a *v1.Action) *policy.Incident {
	if a.Spec.By.Kind != v1.ByPolicy || a.Labels[LabelPolicy] != a.Spec.By.Name || a.Labels[LabelStep] != "0" {
		return nil
	}
	i, ok := policy.ParseIncident(a.Labels[LabelIncident])
	if !ok {
		return nil
	}
	i.Started, i.Ended = annotated(a, AnnotationAlertStarted), annotated(a, AnnotationAlertEnded)
	i.Last = a.CreationTimestamp.Time
	if last := annotated(a, AnnotationLastAlert); !last.IsZero() {
		i.Last = last
	}
	return &i
}

func annotated(a *v1.Action, name string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, a.Annotations[name])
	if err != nil {
		return time.Time{}
	}
	return t
}

func annotation(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// lastAlert returns the time of the last message about an Action's alert, but not earlier than the creation of the Action.
func lastAlert(a *v1.Action) time.Time {
	if i := incidentOf(a); i != nil && i.Last.After(a.CreationTimestamp.Time) {
		return i.Last
	}
	return a.CreationTimestamp.Time
}

// unheard returns a message if Alertmanager hasn't repeated the alert of an Action for a while, otherwise "". Such an alert may have ended without a
// message, or may be silenced.
func unheard(a *v1.Action, now time.Time) string {
	if last := lastAlert(a); incidentOf(a) != nil && now.Sub(last) > policy.Fresh {
		return "it waits: Alertmanager hasn't repeated the alert since " + last.UTC().Format(time.RFC3339)
	}
	return ""
}

// latest holds, by policy and alert key, the Action for the first step of the latest incident.
type latest map[string]*v1.Action

func (h *Handler) latest() latest {
	out := latest{}
	for _, a := range h.actions.All() {
		out.add(a)
	}
	return out
}

func (l latest) add(a *v1.Action) {
	i := incidentOf(a)
	if i == nil {
		return
	}
	at := a.Spec.By.Name + "/" + i.Key
	if have, ok := l[at]; !ok || incidentOf(have).Number <= i.Number {
		l[at] = a
	}
}

// incident returns the latest incident of an alert, and the Action for its first step as the watch holds it. If the alert has no incident, it returns
// an incident with number 0 and a nil Action.
func (h *Handler) incident(known latest, p *policy.Policy, key string) (*policy.Incident, *v1.Action) {
	at := p.Name + "/" + key
	a := known[at]
	if a == nil {
		return &policy.Incident{Key: key}, nil
	}
	if now, ok := h.actions.Get(a.Name); ok && now.UID == a.UID && incidentOf(now) != nil {
		a = now
	}
	return incidentOf(a), a
}

// take handles an alert for each policy that selects the alert. It begins the policy's steps, or cancels them if the alert has ended.
func (h *Handler) take(ctx context.Context, known latest, alert *policy.Alert) error {
	h.metrics.alerts.Inc()
	var errs []error
	for i := range h.o.Policies.Policies {
		p := &h.o.Policies.Policies[i]
		if !p.Applies(alert) {
			continue
		}
		do := h.fires
		if !alert.Firing() {
			do = h.ended
		}
		var again bool
		var err error
		for range mostTries {
			if again, err = do(ctx, known, p, alert); !again || err != nil {
				break
			}
		}
		if again && err == nil {
			err = errBehind
		}
		errs = append(errs, err) // other policies have their own Actions
	}
	return errors.Join(errs...)
}

// fires creates the Action for a policy's first step, unless the current incident of the alert already has such an Action. again reports that another
// replica has changed the Action at the same time.
func (h *Handler) fires(ctx context.Context, known latest, p *policy.Policy, alert *policy.Alert) (again bool, err error) {
	now := h.o.Now()
	key := p.Key(alert)
	before, a := h.incident(known, p, key)
	spec, subject, problem := h.target(p, alert)
	if a == nil && h.endings.after(p.Name+"/"+key, alert, now) {
		return false, nil
	}
	if a != nil {
		part := before.Part(alert, now)
		if part == policy.Same && (problem != "" || sameTarget(&a.Spec, &spec)) {
			return h.repeated(ctx, known, a, before, alert)
		}
		if part == policy.Late {
			return false, nil
		}
		if before.Ended.IsZero() { // without a message
			_, err := h.finish(ctx, known, a, alert.Start(now))
			return true, err
		}
	}
	if problem == "" {
		problem = p.Exempts(&subject)
	}
	if problem != "" {
		h.metrics.ignored.Inc()
		h.o.Log.DebugContext(ctx, "an alert is left alone", "policy", p.Name, "alert", trimmed(alert.Labels["alertname"]), "why", problem)
		return false, nil
	}
	if full(h.actions.All(), p.ForJobs()) {
		return false, errFull
	}
	spec.Reason = alert.Reason()
	next := before.Next(alert, now)
	annotations := map[string]string{AnnotationLastAlert: annotation(next.Last), AnnotationAlertStarted: annotation(next.Started)}
	if labels, err := json.Marshal(alert.Labels); err == nil && len(labels) <= mostLabels {
		annotations[AnnotationAlertLabels] = string(labels)
	}
	made, err := h.create(ctx, p, next.String(), 0, spec, annotations)
	if err != nil {
		return false, err
	}
	if made == nil {
		_, err = h.read(ctx, known, p.ActionName(next.String(), 0))
		return true, err
	}
	known.add(made)
	return false, nil
}

// selects reports whether a policy still selects the alert of an Action. It returns true for later steps, because they have no labels and must
// complete the work of the first step.
func selects(p *policy.Policy, a *v1.Action) bool {
	alert := policy.Alert{}
	text := a.Annotations[AnnotationAlertLabels]
	return text == "" || json.Unmarshal([]byte(text), &alert.Labels) != nil || p.Applies(&alert)
}

// sameTarget reports whether two Actions have the same target. Targets with the same name but different UIDs differ.
func sameTarget(a, b *v1.ActionSpec) bool {
	switch {
	case a.Job != nil && b.Job != nil:
		return a.Job.UID == b.Job.UID
	case a.Machine != nil && b.Machine != nil:
		return a.Machine.UID == b.Machine.UID
	}
	return false
}

// repeated records that the alert of an Action still fires. The Action is then kept and may begin.
func (h *Handler) repeated(ctx context.Context, known latest, a *v1.Action, i *policy.Incident, alert *policy.Alert) (again bool, err error) {
	now, least := h.o.Now(), noted
	if a.Begun() || a.Status.Phase.Final() {
		least = notedOver
	}
	record := map[string]any{AnnotationLastAlert: annotation(now)}
	if alert.StartsAt.After(i.Started) {
		record[AnnotationAlertStarted] = annotation(alert.StartsAt)
	} else if now.Sub(i.Last) < least {
		return false, nil
	}
	return h.change(ctx, known, a, map[string]any{"metadata": map[string]any{"annotations": record}})
}

// ended ends the incident of an alert, and cancels the first step if the step hasn't begun. Later steps continue, because they complete the work of
// the first step.
func (h *Handler) ended(ctx context.Context, known latest, p *policy.Policy, alert *policy.Alert) (again bool, err error) {
	now := h.o.Now()
	key := p.Key(alert)
	i, a := h.incident(known, p, key)
	if a == nil || !i.Ended.IsZero() {
		if !i.Ended.IsZero() && !alert.End(now).After(i.Ended) {
			return false, nil
		}
		// Another replica may just have created the Action.
		next := policy.Incident{Key: key, Number: i.Number + 1}
		found, err := h.read(ctx, known, p.ActionName(next.String(), 0))
		if !found && err == nil && a == nil {
			h.endings.add(p.Name+"/"+key, alert.End(now), now)
		}
		return found, err
	}
	if !i.Ends(alert, now) {
		return false, nil
	}
	return h.finish(ctx, known, a, alert.End(now))
}

// alertEnded is the reason for the cancellation of an Action that hadn't begun when the alert ended.
const alertEnded = "the alert has ended"

// finish records the end of an incident on its first Action, and cancels the Action if the Action hasn't begun.
func (h *Handler) finish(ctx context.Context, known latest, a *v1.Action, end time.Time) (again bool, err error) {
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationAlertEnded: annotation(end), AnnotationLastAlert: annotation(h.o.Now())}}}
	if !a.Begun() && !a.Status.Phase.Final() && a.Spec.Canceled == "" {
		patch["spec"] = map[string]any{"canceled": alertEnded}
	}
	return h.change(ctx, known, a, patch)
}

// outdated ends incidents whose policy was removed, no longer selects the alert, or has a different dryRun setting. If the configuration is changed
// back later, the alert begins a new incident. The alert may have ended in between, and the handler may have missed that message.
func (h *Handler) outdated(ctx context.Context, all []*v1.Action) {
	for _, seen := range all {
		a, ok := h.actions.Get(seen.Name)
		if !ok || a.UID != seen.UID || !a.Status.Phase.Final() {
			continue
		}
		i := incidentOf(a)
		if i == nil || !i.Ended.IsZero() {
			continue
		}
		if p := h.o.Policies.ByName(a.Spec.By.Name); p != nil && p.DryRun == a.Spec.DryRun && selects(p, a) {
			continue
		}
		end := i.Started // so that the alert isn't late, whenever it began
		if end.IsZero() {
			end = i.Last
		}
		if _, err := h.finish(ctx, latest{}, a, end); err != nil {
			h.o.Log.WarnContext(ctx, "end the incident of an outdated action", "action", a.Name, "error", trimmed(err.Error()))
			return
		}
	}
}

// change patches an Action, unless the Action has changed since it was read. again reports whether the Action has changed.
func (h *Handler) change(ctx context.Context, known latest, a *v1.Action, patch map[string]any) (again bool, err error) {
	meta, _ := patch["metadata"].(map[string]any)
	meta["uid"], meta["resourceVersion"] = a.UID, a.ResourceVersion
	data, err := json.Marshal(patch)
	if err != nil {
		return false, err
	}
	u, err := h.objects.Resource(v1.Actions).Patch(ctx, a.Name, types.MergePatchType, data, metav1.PatchOptions{})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		_, err = h.read(ctx, known, a.Name)
		return true, err
	case err != nil:
		return false, fmt.Errorf("record the alert in the action %s: %w", a.Name, err)
	}
	h.actions.Put(u)
	return false, nil
}

// read reads an Action from the API server, because the watch may hold an older version. found is false if the Action doesn't exist.
func (h *Handler) read(ctx context.Context, known latest, name string) (found bool, err error) {
	u, err := h.objects.Resource(v1.Actions).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		for at, a := range known {
			if a.Name == name {
				delete(known, at)
			}
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the action %s: %w", name, err)
	}
	h.actions.Put(u)
	a, err := keepAction(u)
	if err != nil {
		return false, err
	}
	known.add(a)
	return true, nil
}

// endings holds the end times of alerts without an Action. A message that such an alert fires may arrive after the message about its end.
type endings struct {
	mu  sync.Mutex
	all map[string]policy.Incident
}

const mostEndings = 10_000

func (e *endings) add(key string, end, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil || len(e.all) >= mostEndings {
		e.all = map[string]policy.Incident{}
	}
	e.all[key] = policy.Incident{Ended: end, Last: now}
}

// after reports whether a message that an alert fires is late, because a message about the alert's end has already arrived.
func (e *endings) after(key string, alert *policy.Alert, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	i, known := e.all[key]
	return known && i.Part(alert, now) == policy.Late
}
