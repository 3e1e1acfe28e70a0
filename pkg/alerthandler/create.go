package alerthandler

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	// mostOpen limits the number of unfinished Actions of policies for jobs, and for machines. At this limit, the handler rejects alerts, and
	// Alertmanager sends them again later.
	mostOpen = 1000
	// valid is the time after the grace period within which an Action of a policy must begin. It is long because the limits per hour can delay an
	// Action for hours.
	valid = 24 * time.Hour
	// followed is the time after the end of a step within which the next step must begin.
	followed = 12 * time.Hour
)

// full reports whether a limit of Actions is reached. jobs selects the limits for Actions on jobs instead of machines. The limit of all Actions is
// lower for jobs, so that idle jobs leave room for broken machines.
func full(all map[string]*v1.Action, jobs bool) bool {
	open := 0
	for _, a := range all {
		if a.Spec.By.Kind == v1.ByPolicy && !a.Status.Phase.Final() && (a.Spec.Job != nil) == jobs {
			open++
		}
	}
	most := mostActions
	if jobs {
		most -= mostOpen
	}
	return open >= mostOpen || len(all) >= most
}

// target returns the job or the machine that the labels of an alert name, in its current state. problem is the reason why the target is invalid, or
// "".
func (h *Handler) target(p *policy.Policy, alert *policy.Alert) (spec v1.ActionSpec, subject policy.Subject, problem string) {
	t := alert.Target()
	if p.ForJobs() {
		if t.User == "" || t.Job == "" {
			return spec, subject, "the alert names no job: it has no labels user and job_name"
		}
		j, ok := h.jobs.Get(jobv1.ObjectName(t.User, t.Job))
		if !ok || j.user != t.User || j.name != t.Job {
			return spec, subject, "the cluster has no job " + policy.OneLine(t.User+"/"+t.Job, 200)
		}
		if alert.Start(h.o.Now()).Before(j.made) {
			return spec, subject, "the alert is about a former job " + policy.OneLine(t.User+"/"+t.Job, 200) + ": this one was submitted later"
		}
		spec.Job = &v1.Job{Object: j.object, UID: j.uid, Name: j.user + "/" + j.name, VirtualCluster: j.vc}
		return spec, policy.Subject{User: j.user, VirtualCluster: j.vc, Tags: j.tags}, ""
	}
	n, ok := h.nodes.Get(t.Machine)
	if !ok {
		return spec, subject, "the alert names no machine of the cluster: its label node is " + strconv.Quote(policy.OneLine(t.Machine, 200))
	}
	if alert.Start(h.o.Now()).Before(n.CreationTimestamp.Time) {
		return spec, subject, "the alert is about a former machine " + n.Name + ": this one was added later"
	}
	if !runsJobs(n) {
		return spec, subject, n.Name + " belongs to the control plane and runs no jobs"
	}
	if t.GPU == nil && p.Does(v1.OperationResetGPU) {
		return spec, subject, "the alert names no GPU to reset: it has no label gpu"
	}
	if p.Does(v1.OperationRestartMachine) { // it would be drained, and stay cordoned
		m := step.Machine{ControlPlane: controlPlane(n), Agent: hasAgent(n)}
		if problem := m.Never(n.Name); problem != "" {
			return spec, subject, problem
		}
	}
	spec.Machine = &v1.Machine{Name: n.Name, UID: n.UID, GPU: t.GPU}
	return spec, policy.Subject{Machine: n.Name}, ""
}

// create creates the Action for the step with index at. made is nil if the Action already exists.
func (h *Handler) create(ctx context.Context, p *policy.Policy, incident string, at int, spec v1.ActionSpec, annotations map[string]string) (made *v1.Action, err error) {
	s := p.Steps[at]
	spec.Do, spec.By, spec.DryRun = s.Do, v1.Requester{Kind: v1.ByPolicy, Name: p.Name}, spec.DryRun || p.DryRun
	spec.GraceSeconds = int64(s.Grace.D().Seconds())
	begins := h.o.Now().Add(s.Grace.D())
	if at == 0 {
		begins = p.Opens().Next(begins)
	}
	spec.NotAfter = metav1.NewTime(begins.Add(valid).UTC().Truncate(time.Second))
	labels := map[string]string{}
	if at == len(p.Steps)-1 {
		labels[LabelLast] = "true"
	}
	if _, ok := p.Next(at, v1.PhaseFailed); ok {
		labels[LabelAlternative] = "true"
	}
	return h.makeStep(ctx, incident, at, labels, spec, annotations)
}

// makeStep creates the Action for a step of the policy in spec.By. It adds to labels. made is nil if the Action already exists.
func (h *Handler) makeStep(ctx context.Context, incident string, at int, labels map[string]string, spec v1.ActionSpec, annotations map[string]string) (made *v1.Action, err error) {
	p := policy.Policy{Name: spec.By.Name}
	labels[LabelPolicy], labels[LabelIncident], labels[LabelStep] = p.Name, incident, strconv.Itoa(at)
	a := &v1.Action{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind}, Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Name: p.ActionName(incident, at), Labels: labels, Annotations: annotations,
	}}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		return nil, err
	}
	u, err := h.objects.Resource(v1.Actions).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil, nil //nolint:nilnil // see above
	}
	if err != nil {
		return nil, fmt.Errorf("make the action %s: %w", a.Name, err)
	}
	h.actions.Put(u)
	h.metrics.made.Inc()
	return keepAction(u)
}

// numbered returns the index of the step that an Action carries out. ok is false if no policy created the Action.
func numbered(a *v1.Action) (at int, ok bool) {
	if a.Spec.By.Kind != v1.ByPolicy || a.Labels[LabelPolicy] != a.Spec.By.Name {
		return 0, false
	}
	named := policy.Policy{Name: a.Spec.By.Name}
	at, err := strconv.Atoi(a.Labels[LabelStep])
	return at, err == nil && at >= 0 && a.Name == named.ActionName(a.Labels[LabelIncident], at)
}

// next returns the index and the name of the step that follows Action a. ok is false if no step follows. p is the policy of a, or nil if the policy was
// removed. Then the step after a succeeded step has the next index, and no step follows a failed one.
func next(a *v1.Action, p *policy.Policy) (at int, name string, ok bool) {
	at, ok = numbered(a)
	if !ok || a.Status.EndTime == nil {
		return 0, "", false
	}
	switch {
	case a.Status.Phase == v1.PhaseSucceeded && a.Labels[LabelLast] != "", a.Status.Phase == v1.PhaseFailed && a.Labels[LabelAlternative] == "":
		return 0, "", false
	case p != nil:
		at, ok = p.Next(at, a.Status.Phase)
	case a.Status.Phase == v1.PhaseSucceeded:
		at++
	default:
		ok = false
	}
	named := policy.Policy{Name: a.Spec.By.Name}
	return at, named.ActionName(a.Labels[LabelIncident], at), ok
}

// follow creates the Action for the step of a policy that follows Action a.
func (h *Handler) follow(ctx context.Context, a *v1.Action, now time.Time) error {
	p := h.o.Policies.ByName(a.Spec.By.Name)
	at, name, ok := next(a, p)
	if !ok {
		return nil // for example, because this configuration didn't make the Action
	}
	if _, known := h.actions.Get(name); known {
		return nil
	}
	incident := a.Labels[LabelIncident]
	spec := v1.ActionSpec{Job: a.Spec.Job, Machine: a.Spec.Machine, Reason: a.Spec.Reason, DryRun: a.Spec.DryRun}
	late := now.Sub(endOf(a)) > followed
	if late && h.jumped {
		return nil // the time may be wrong
	}
	if late || p == nil || p.DryRun && !a.Spec.DryRun {
		return h.abandon(ctx, a, at, p, spec, now)
	}
	// After a dry run, the next step is a dry run too, because the machine wasn't drained.
	_, err := h.create(ctx, p, incident, at, spec, nil)
	return err
}

// abandon handles a next step that must not begin, because the policy has changed or the handler wasn't running. If the machine would stay cordoned
// without a notice, abandon creates an Action that is refused or expires at once. Administrators then get a notice about this Action.
func (h *Handler) abandon(ctx context.Context, a *v1.Action, at int, p *policy.Policy, spec v1.ActionSpec, now time.Time) error {
	if a.Status.Phase != v1.PhaseSucceeded {
		return nil // administrators got a notice about the failed step
	}
	// A later step may already have been removed because of its age.
	if a.Spec.DryRun || now.Sub(a.Status.EndTime.Time) > h.o.Policies.Keep.D() || !h.holds(a) || endOf(a).Before(h.cordonedSince(a)) {
		return nil
	}
	spec.Do, spec.By = v1.OperationUncordon, a.Spec.By
	if p != nil {
		spec.Do = p.Steps[at].Do
	}
	spec.NotAfter = metav1.NewTime(a.Status.EndTime.Add(followed))
	if spec.NotAfter.After(now) {
		spec.NotAfter = metav1.NewTime(now.UTC().Truncate(time.Second))
	}
	_, err := h.makeStep(ctx, a.Labels[LabelIncident], at, map[string]string{LabelLast: "true"}, spec, nil)
	return err
}

// endOf returns the latest of an Action's end, start and creation times. The clock may have been behind at the end.
func endOf(a *v1.Action) time.Time {
	end := a.Status.EndTime.Time
	if t := a.Status.StartTime; t != nil && t.After(end) {
		end = t.Time
	}
	if a.CreationTimestamp.After(end) {
		end = a.CreationTimestamp.Time
	}
	return end
}

// cordonedSince returns the time at which the machine of an Action was cordoned, or the zero time if the machine has no mark.
func (h *Handler) cordonedSince(a *v1.Action) time.Time {
	n, ok := h.nodes.Get(a.Spec.Machine.Name)
	if !ok {
		return time.Time{}
	}
	m := validMark(n)
	if m == nil {
		return time.Time{}
	}
	return m.Since()
}

// holds reports whether the machine is cordoned for the alert of a policy's Action.
func (h *Handler) holds(a *v1.Action) bool {
	if a.Spec.Machine == nil {
		return false
	}
	n, ok := h.nodes.Get(a.Spec.Machine.Name)
	if !ok || n.UID != a.Spec.Machine.UID || !n.Spec.Unschedulable {
		return false
	}
	m := validMark(n)
	return m != nil && m.By.Kind == v1.ByPolicy && m.Holds(a.Name)
}
