package alerthandler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
)

// Labels of Actions that a policy made.
const (
	LabelPolicy   = "paictl.openpai.org/policy"
	LabelIncident = "paictl.openpai.org/incident"
	LabelStep     = "paictl.openpai.org/step"
)

// AnnotationLastAlert of an Action is about when Alertmanager last sent its alert, in RFC 3339.
const AnnotationLastAlert = "paictl.openpai.org/last-alert"

const (
	// mostMessage bounds a message of Alertmanager, in bytes.
	mostMessage = 8 << 20
	// mostAlerts bounds the alerts in one message.
	mostAlerts = 10_000
	// mostOpen bounds the Actions of policies that aren't finished. Alertmanager repeats alerts that come on top of these.
	mostOpen = 1000
	// valid is how long an Action of a policy may wait to begin, after its grace. The limits of an hour make it wait for hours.
	valid = 24 * time.Hour
	// followed is how long a step may be the reason for the next one.
	followed = time.Hour
)

// errFull means that too many Actions are open.
var errFull = errors.New("too many actions aren't finished")

// message is a message of Alertmanager to a webhook.
type message struct {
	Version string         `json:"version"`
	Alerts  []policy.Alert `json:"alerts"`
}

// ServeAlerts takes alerts from Alertmanager. It answers 503 if an alert couldn't be taken, so that Alertmanager sends the message again.
func (h *Handler) ServeAlerts(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostMessage))
	var m message
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	switch {
	case err != nil:
		http.Error(w, "this isn't a message of Alertmanager: "+err.Error(), http.StatusBadRequest)
		return
	case len(m.Alerts) > mostAlerts:
		http.Error(w, fmt.Sprintf("the message has %d alerts, and may have %d", len(m.Alerts), mostAlerts), http.StatusRequestEntityTooLarge)
		return
	case !h.Synced():
		http.Error(w, "the cluster isn't known yet", http.StatusServiceUnavailable)
		return
	}
	var errs []error
	for i := range m.Alerts {
		if err := h.take(r.Context(), &m.Alerts[i]); err != nil {
			errs = append(errs, err)
			if errors.Is(err, errFull) || r.Context().Err() != nil {
				break
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		h.o.Log.WarnContext(r.Context(), "alerts were not taken", "error", trimmed(err.Error()))
		http.Error(w, "some alerts were not taken; send the message again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// take begins the steps of the policies that select an alert, or cancels them if it has ended.
func (h *Handler) take(ctx context.Context, a *policy.Alert) error {
	h.metrics.alerts.Inc()
	for i := range h.o.Policies.Policies {
		p := &h.o.Policies.Policies[i]
		if !p.Applies(a) {
			continue
		}
		incident := p.Incident(a)
		if !a.Firing() {
			if err := h.cancel(ctx, p, incident); err != nil {
				return err
			}
			continue
		}
		if err := h.begin(ctx, p, a, incident); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the Action of a policy's first step. A repeated alert finds it there already.
func (h *Handler) begin(ctx context.Context, p *policy.Policy, alert *policy.Alert, incident string) error {
	name := p.ActionName(incident, 0)
	if a, known := h.actions.Get(name); known {
		return h.fires(ctx, a)
	}
	spec, subject, problem := h.target(p, alert)
	if problem == "" {
		problem = p.Exempts(&subject)
	}
	if problem != "" {
		h.metrics.ignored.Inc()
		h.o.Log.DebugContext(ctx, "an alert is left alone", "policy", p.Name, "alert", trimmed(alert.Labels["alertname"]), "why", problem)
		return nil
	}
	if h.open() >= mostOpen {
		return errFull
	}
	spec.Reason = alert.Reason()
	return h.create(ctx, p, incident, 0, spec)
}

// fires records that the alert of an Action still fires, so that the Action is kept. A few times within the time that it is kept are enough.
func (h *Handler) fires(ctx context.Context, a *v1.Action) error {
	now := h.o.Now()
	if now.Sub(lastAlert(a)) < h.o.Policies.Keep.D()/4 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": a.UID, "annotations": map[string]any{AnnotationLastAlert: now.UTC().Format(time.RFC3339)}}})
	if err != nil {
		return err
	}
	u, err := h.objects.Resource(v1.Actions).Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("record the alert in the action %s: %w", a.Name, err)
	}
	h.actions.Put(u)
	return nil
}

// lastAlert is when an Action was made, or its alert was last recorded.
func lastAlert(a *v1.Action) time.Time {
	if t, err := time.Parse(time.RFC3339, a.Annotations[AnnotationLastAlert]); err == nil && t.After(a.CreationTimestamp.Time) {
		return t
	}
	return a.CreationTimestamp.Time
}

// open counts the Actions of policies that aren't finished.
func (h *Handler) open() (n int) {
	for _, a := range h.actions.All() {
		if a.Spec.By.Kind == v1.ByPolicy && !a.Status.Phase.Final() {
			n++
		}
	}
	return n
}

// target finds the job or the machine that an alert names, as it is now. problem says why there isn't one.
func (h *Handler) target(p *policy.Policy, alert *policy.Alert) (spec v1.ActionSpec, subject policy.Subject, problem string) {
	t := alert.Target()
	if p.StopsJobs() {
		if t.User == "" || t.Job == "" {
			return spec, subject, "the alert names no job: it has no labels user and job_name"
		}
		j, ok := h.jobs.Get(jobv1.ObjectName(t.User, t.Job))
		if !ok || j.user != t.User || j.name != t.Job {
			return spec, subject, "the cluster has no job " + policy.OneLine(t.User+"/"+t.Job, 200)
		}
		spec.Job = &v1.Job{Object: j.object, UID: j.uid, Name: j.user + "/" + j.name, VirtualCluster: j.vc}
		return spec, policy.Subject{User: j.user, VirtualCluster: j.vc, Tags: j.tags}, ""
	}
	n, ok := h.nodes.Get(t.Machine)
	if !ok {
		return spec, subject, "the alert names no machine of the cluster: its label node is " + strconv.Quote(policy.OneLine(t.Machine, 200))
	}
	if !runsJobs(n) {
		return spec, subject, n.Name + " belongs to the control plane and runs no jobs"
	}
	if t.GPU == nil && p.ResetsGPU() {
		return spec, subject, "the alert names no GPU to reset: it has no label gpu"
	}
	spec.Machine = &v1.Machine{Name: n.Name, UID: n.UID, GPU: t.GPU}
	return spec, policy.Subject{Machine: n.Name}, ""
}

// create makes the Action of a step. One that exists already isn't an error.
func (h *Handler) create(ctx context.Context, p *policy.Policy, incident string, at int, spec v1.ActionSpec) error {
	s := p.Steps[at]
	spec.Do, spec.By, spec.DryRun = s.Do, v1.Requester{Kind: v1.ByPolicy, Name: p.Name}, spec.DryRun || p.DryRun
	spec.GraceSeconds = int64(s.Grace.D().Seconds())
	spec.NotAfter = metav1.NewTime(h.o.Now().Add(s.Grace.D() + valid).UTC().Truncate(time.Second))
	a := &v1.Action{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind}, Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Name: p.ActionName(incident, at), Labels: map[string]string{LabelPolicy: p.Name, LabelIncident: incident, LabelStep: strconv.Itoa(at)},
	}}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		return err
	}
	u, err := h.objects.Resource(v1.Actions).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the action %s: %w", a.Name, err)
	}
	h.actions.Put(u)
	h.metrics.made.Inc()
	return nil
}

// follow begins the step of a policy after one that succeeded.
func (h *Handler) follow(ctx context.Context, a *v1.Action, now time.Time) error {
	if a.Status.Phase != v1.PhaseSucceeded || a.Spec.By.Kind != v1.ByPolicy || a.Labels[LabelPolicy] != a.Spec.By.Name {
		return nil
	}
	if a.Status.EndTime == nil || now.Sub(a.Status.EndTime.Time) > followed {
		return nil
	}
	p := h.o.Policies.ByName(a.Spec.By.Name)
	at, err := strconv.Atoi(a.Labels[LabelStep])
	if p == nil || err != nil || at < 0 || at+1 >= len(p.Steps) || a.Name != p.ActionName(a.Labels[LabelIncident], at) {
		return nil //nolint:nilerr // this configuration didn't make it
	}
	if _, known := h.actions.Get(p.ActionName(a.Labels[LabelIncident], at+1)); known {
		return nil
	}
	// The step after a dry run is one as well: the machine isn't drained.
	return h.create(ctx, p, a.Labels[LabelIncident], at+1, v1.ActionSpec{Job: a.Spec.Job, Machine: a.Spec.Machine, Reason: a.Spec.Reason, DryRun: a.Spec.DryRun})
}

// cancel withdraws the first step of an incident that hasn't begun. Later steps complete the first one, and continue.
func (h *Handler) cancel(ctx context.Context, p *policy.Policy, incident string) error {
	a, known := h.actions.Get(p.ActionName(incident, 0))
	if !known || a.Begun() || a.Status.Phase.Final() || a.Spec.Canceled != "" {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": a.UID}, "spec": map[string]any{"canceled": "the alert has ended"}})
	if err != nil {
		return err
	}
	u, err := h.objects.Resource(v1.Actions).Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cancel the action %s: %w", a.Name, err)
	}
	h.actions.Put(u)
	return nil
}
