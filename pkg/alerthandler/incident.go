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

// Labels of Actions that a policy made.
const (
	LabelPolicy   = "paictl.openpai.org/policy"
	LabelIncident = "paictl.openpai.org/incident"
	LabelStep     = "paictl.openpai.org/step"
	// LabelLast marks the last step: a policy that gets further steps later doesn't take them for alerts whose steps are done.
	LabelLast = "paictl.openpai.org/last-step"
)

// Annotations of the Action of an incident's first step, with times in RFC 3339. Each annotation holds one field of policy.Incident, so that two
// replicas don't overwrite each other's fields.
const (
	// AnnotationLastAlert is about when Alertmanager last sent a message about the alert.
	AnnotationLastAlert = "paictl.openpai.org/last-alert"
	// AnnotationAlertStarted is the latest start of the alert in a message.
	AnnotationAlertStarted = "paictl.openpai.org/alert-started"
	// AnnotationAlertEnded is the end of the alert; without it the alert fires.
	AnnotationAlertEnded = "paictl.openpai.org/alert-ended"
)

// AnnotationAlertLabels is an annotation of the Action of an incident's first step. It holds the labels of the alert as JSON; the policy selects the
// alert by these labels.
const AnnotationAlertLabels = "paictl.openpai.org/alert-labels"

// mostLabels bounds the labels that are kept, in bytes.
const mostLabels = 16 << 10

const (
	// mostTries bounds how often a message is decided again because the API server has a later Action than the watch.
	mostTries = 5
	// noted is how much later a repeated alert has to be to be written, and notedOver the same for an Action that has begun or has ended.
	noted, notedOver = 5 * time.Minute, time.Hour
)

var errBehind = errors.New("other replicas changed the actions of the alert")

// incidentOf returns the incident of a first step; nil for all other Actions.
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

// lastAlert returns the time of the last message about an Action's alert, or of the Action's creation.
func lastAlert(a *v1.Action) time.Time {
	if i := incidentOf(a); i != nil && i.Last.After(a.CreationTimestamp.Time) {
		return i.Last
	}
	return a.CreationTimestamp.Time
}

// unheard says that an alert may have ended without a message, or is silenced.
func unheard(a *v1.Action, now time.Time) string {
	if last := lastAlert(a); incidentOf(a) != nil && now.Sub(last) > policy.Fresh {
		return "it waits: Alertmanager hasn't repeated the alert since " + last.UTC().Format(time.RFC3339)
	}
	return ""
}

// latest holds the first step of the latest incident of each alert, by policy and key.
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

// incident returns the latest incident of an alert and its first step, as the watch has it now. Before the first incident it has number 0 and no step.
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

// take begins the steps of the policies that select an alert, or cancels them if it has ended.
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

// fires makes the Action of a policy's first step, unless the alert's incident has one. again reports that another replica was faster.
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

// selects reports whether a policy still selects the alert of an Action. Later steps complete the first one, and have no labels.
func selects(p *policy.Policy, a *v1.Action) bool {
	alert := policy.Alert{}
	text := a.Annotations[AnnotationAlertLabels]
	return text == "" || json.Unmarshal([]byte(text), &alert.Labels) != nil || p.Applies(&alert)
}

// sameTarget reports whether the target is still the same one, not only one of the same name.
func sameTarget(a, b *v1.ActionSpec) bool {
	switch {
	case a.Job != nil && b.Job != nil:
		return a.Job.UID == b.Job.UID
	case a.Machine != nil && b.Machine != nil:
		return a.Machine.UID == b.Machine.UID
	}
	return false
}

// repeated records that the alert of an Action still fires: the Action is kept, and may begin.
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

// ended ends the incident of an alert, and cancels its first step if that hasn't begun. Later steps complete the first one, and continue.
func (h *Handler) ended(ctx context.Context, known latest, p *policy.Policy, alert *policy.Alert) (again bool, err error) {
	now := h.o.Now()
	key := p.Key(alert)
	i, a := h.incident(known, p, key)
	if a == nil || !i.Ended.IsZero() {
		if !i.Ended.IsZero() && !alert.End(now).After(i.Ended) {
			return false, nil
		}
		// Another replica may have made the Action just now.
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

// alertEnded is the reason of an Action that is canceled because its alert ended before the Action began.
const alertEnded = "the alert has ended"

// finish ends an incident.
func (h *Handler) finish(ctx context.Context, known latest, a *v1.Action, end time.Time) (again bool, err error) {
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationAlertEnded: annotation(end), AnnotationLastAlert: annotation(h.o.Now())}}}
	if !a.Begun() && !a.Status.Phase.Final() && a.Spec.Canceled == "" {
		patch["spec"] = map[string]any{"canceled": alertEnded}
	}
	return h.change(ctx, known, a, patch)
}

// outdated ends the incidents of policies that have left the configuration, began or stopped making dry runs, or no longer select the alert. If the
// policy is changed back, the alert begins another incident: it may have ended in between without a message that the handler took.
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

// change patches an Action, unless it has changed since. again reports whether the Action has changed.
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

// read reads an Action from the API server, which may be ahead of the watch.
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

// endings are the ends of alerts without an Action. A message that such an alert fires may arrive late.
type endings struct {
	mu  sync.Mutex
	all map[string]policy.Incident
}

// mostEndings bounds the ends that are remembered.
const mostEndings = 10_000

func (e *endings) add(key string, end, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil || len(e.all) >= mostEndings {
		e.all = map[string]policy.Incident{}
	}
	e.all[key] = policy.Incident{Ended: end, Last: now}
}

// after reports whether an alert that fires has ended since.
func (e *endings) after(key string, alert *policy.Alert, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	i, known := e.all[key]
	return known && i.Part(alert, now) == policy.Late
}
