package alerthandler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

const (
	// look is the maximum time between two rounds. Each round checks all Actions and removes old Actions.
	look  = time.Minute
	least = 200 * time.Millisecond
	// retry is the time before a failed step is repeated.
	retry = 5 * time.Second
)

// Lead carries out Actions until ctx ends. Only the replica that holds the lease may call Lead.
func (h *Handler) Lead(ctx context.Context) {
	defer h.metrics.actions.Reset()
	h.tries = tries{}
	h.clock.begin()
	var all sync.WaitGroup
	defer all.Wait()
	if h.notifier != nil {
		all.Go(func() { h.tell(ctx) }) // sending never delays acting
	}
	for ctx.Err() == nil {
		after := h.round(ctx)
		select { // each write of a status would begin another round at once
		case <-ctx.Done():
			return
		case <-time.After(least):
		}
		select {
		case <-ctx.Done():
			return
		case <-h.touched:
		case <-time.After(after):
		}
	}
}

// round advances each unfinished Action by one step, the oldest first. It returns the time until the next round.
func (h *Handler) round(ctx context.Context) time.Duration {
	if !h.Synced() {
		return retry
	}
	after := look
	all := h.list()
	now := h.o.Now()
	h.jumped = h.clock.look(now)
	h.metrics.count(all)
	for i, a := range all {
		if a.Status.Phase.Final() {
			// An earlier round may have written the end of this Action without creating the Action for the next step.
			if err := h.follow(ctx, a, now); err != nil {
				h.o.Log.WarnContext(ctx, "begin the next step", "action", a.Name, "error", trimmed(err.Error()))
				after = min(after, retry)
			}
			continue
		}
		next, err := h.advance(ctx, a, all, now)
		if err != nil {
			if ctx.Err() != nil {
				return retry
			}
			h.o.Log.WarnContext(ctx, "retrying", "action", a.Name, "error", err.Error())
			next.After = retry
		}
		if next.After > 0 {
			after = min(after, next.After)
		}
		// The limits of the other Actions count the new state of this Action.
		seen := *a
		seen.Status = next.Status
		all[i] = &seen
		if err := h.follow(ctx, &seen, now); err != nil {
			h.o.Log.WarnContext(ctx, "begin the next step", "action", a.Name, "error", trimmed(err.Error()))
			after = min(after, retry)
		}
	}
	h.outdated(ctx, all)
	h.records.write(ctx, all, now)
	h.unmark(ctx)
	h.prune(ctx, all, now)
	return after
}

// advance advances an Action by one step. It decides, writes the decision to the status, and carries out the decision.
func (h *Handler) advance(ctx context.Context, a *v1.Action, all []*v1.Action, now time.Time) (step.Next, error) {
	facts, err := h.facts(ctx, a, all, now)
	if err != nil {
		return step.Next{Status: a.Status}, err
	}
	next := step.Decide(a, facts, now)
	if err := h.write(ctx, a, next.Status); err != nil {
		return step.Next{Status: a.Status}, fmt.Errorf("write the status: %w", err)
	}
	if next.Status.Phase != a.Status.Phase {
		h.o.Log.InfoContext(ctx, "a step", "action", a.Name, "do", a.Spec.Do, "target", a.Spec.Target(), "by", a.Spec.By.Name, "phase", next.Status.Phase, "message", next.Status.Message)
	}
	if wait := h.tries[a.UID].next.Sub(now); wait > 0 && next.Effect != step.EffectNone {
		next.After = wait
		return next, nil
	}
	acting := *a
	acting.Status = next.Status
	err = h.do(ctx, &acting, facts, next.Effect)
	if next.Effect != step.EffectEvict { // pods have their own refusals
		h.tries.note(a.UID, err, now)
	}
	return next, err
}

func (h *Handler) facts(ctx context.Context, a *v1.Action, all []*v1.Action, now time.Time) (*step.Facts, error) {
	f := &step.Facts{Refused: h.tries[a.UID].why, RefusedSince: h.tries[a.UID].since, DrainTimeout: h.o.Policies.DrainTimeout.D(), Unheard: unheard(a, now), Restarts: h.o.Policies.RestartMachines, Restarting: restarting(a, all), Restarted: restartedSince(a, all)}
	f.Jumped = h.jumped
	f.Announced, f.Withdrawn = announced(a, all, now)
	f.Notice = h.notice(a)
	var err error
	if f.Forbidden, err = h.forbidden(a); err != nil {
		return nil, err
	}
	if a.Spec.Job != nil {
		if j, ok := h.jobs.Get(a.Spec.Job.Object); ok {
			f.Job = &step.Job{UID: j.uid, Ended: j.ended, Stopping: j.stopping}
			h.requeueFacts(f, a, j, now)
		}
	}
	if a.Spec.Machine != nil {
		if n, ok := h.nodes.Get(a.Spec.Machine.Name); ok {
			if n, err = h.confirmed(ctx, a, n); err != nil {
				return nil, err
			}
			f.Machine = machineOf(a, n)
		}
	}
	if p := h.o.Policies.ByName(a.Spec.By.Name); p != nil && incidentOf(a) != nil {
		f.Hours = p.Opens() // later steps complete the first one
	}
	limits := h.o.Policies.Limits.Step()
	limits.Hours, limits.Waits = f.Hours, h.waits
	if f.Machine != nil {
		f.NoReturn = limits.NoReturn(f.Machine.Returns, now)
		f.Spent = spent(a, all, f.Machine.Mark)
	}
	f.Limit = limits.Check(a, all, h.machines(), now)
	if step.NeedsPods(a, f) {
		f.Machine.Pods, err = h.pods(ctx, a.Spec.Machine.Name)
	}
	return f, err
}

// notice returns the delivery of the notice that announces the end of a job, or nil if no such notice is sent.
func (h *Handler) notice(a *v1.Action) *step.Notice {
	if h.notifier == nil || a.Spec.Job == nil || a.Status.NoticeTime == nil {
		return nil
	}
	d, known := h.notifier.Delivery(a.UID)
	return &step.Notice{Unknown: !known, Waits: d.Waits, Sent: d.Sent}
}

// waits reports whether an Action waits for its notice to be sent.
func (h *Handler) waits(a *v1.Action) bool {
	n := h.notice(a)
	return n != nil && (n.Unknown || n.Waits)
}

// forbidden returns refusal if the requester may not request the Action. It returns err if the requester's rights can't be read now.
func (h *Handler) forbidden(a *v1.Action) (refusal, err error) {
	by := a.Spec.By
	switch by.Kind {
	case v1.ByOperator:
		return nil, nil
	case v1.ByPolicy:
		return h.withdrawn(a), nil
	case v1.ByPerson:
		if err := h.people.Fresh(); err != nil {
			return nil, err
		}
		p, err := h.people.Person(by.Name)
		if err != nil || p.UID != by.UID {
			return fmt.Errorf("%s is no longer a person of this cluster", by.Name), nil
		}
		if p.Disabled || p.Unconfirmed || !p.Grants.Administrator {
			return fmt.Errorf("%s is no longer an administrator", by.Name), nil
		}
		return nil, nil
	}
	return fmt.Errorf("the kind of requester %q is unknown", by.Kind), nil
}

// withdrawn returns the reason why the policy no longer applies to the target of an Action, or nil. The configuration or the job may have changed
// since the Action was created.
func (h *Handler) withdrawn(a *v1.Action) error {
	p := h.o.Policies.ByName(a.Spec.By.Name)
	if p == nil {
		return fmt.Errorf("the configuration has no policy %s", a.Spec.By.Name)
	}
	if p.DryRun && !a.Spec.DryRun {
		return fmt.Errorf("the policy %s makes dry runs only now", p.Name)
	}
	if !selects(p, a) {
		return fmt.Errorf("the policy %s no longer selects the alert", p.Name)
	}
	var s policy.Subject
	if a.Spec.Machine != nil {
		s.Machine = a.Spec.Machine.Name
	}
	if a.Spec.Job != nil {
		if j, ok := h.jobs.Get(a.Spec.Job.Object); ok && j.uid == a.Spec.Job.UID {
			s = policy.Subject{User: j.user, VirtualCluster: j.vc, Tags: j.tags}
		}
	}
	if why := p.Exempts(&s); why != "" {
		return errors.New(why)
	}
	return nil
}

// confirmed reads a Node again if the watch reports that the Node was uncordoned during a drain. A new watch may deliver an old version, and the
// drain would fail.
func (h *Handler) confirmed(ctx context.Context, a *v1.Action, n *corev1.Node) (*corev1.Node, error) {
	if a.Spec.Do != v1.OperationDrain || len(a.Status.Results) == 0 || n.Spec.Unschedulable {
		return n, nil
	}
	now, err := h.core.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return n, nil // the watch shows it soon
	}
	return now, err
}

// machineOf returns the facts about an Action's machine. It ignores invalid answers of the agent.
func machineOf(a *v1.Action, n *corev1.Node) *step.Machine {
	m := &step.Machine{UID: n.UID, Version: n.ResourceVersion, Unschedulable: n.Spec.Unschedulable, Mark: validMark(n), Returns: v1.ReadReturns(n.Annotations), BrokenGPUs: sick(n),
		Ready: ready(n), Boot: n.Status.NodeInfo.BootID, ControlPlane: controlPlane(n), Agent: hasAgent(n)}
	if a.Spec.Do == v1.OperationResetGPU {
		answers, err := repair.ReadAnswers(n)
		if err != nil {
			answers = nil // the Action fails in the end
		}
		for _, answer := range answers {
			if answer.ID == string(a.UID) {
				m.Reset = &step.Answer{Done: answer.Done, Message: answer.Message}
			}
		}
	}
	if a.Spec.Do == v1.OperationRestartMachine {
		if order, err := repair.ReadRestart(n); err == nil && order != nil {
			m.Ordered = order.ID == string(a.UID)
		}
		if answer, err := repair.ReadRestartAnswer(n); err == nil && answer != nil && answer.ID == string(a.UID) {
			m.Restart = &step.Answer{Done: answer.Done, Message: trimmed(answer.Message)}
		}
	}
	return m
}

// pods returns the pods of a machine that a drain must move.
func (h *Handler) pods(ctx context.Context, machine string) (out []step.Pod, err error) {
	list, err := h.core.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + machine, ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", machine, err)
	}
	for i := range list.Items {
		if p := &list.Items[i]; moves(p) {
			out = append(out, step.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Managed: metav1.GetControllerOf(p) != nil || managed(p),
				Leaving: p.DeletionTimestamp != nil, Refused: h.refused.get(p.UID)})
		}
	}
	return out, nil
}

// moves reports whether a drain must move a pod. A drain doesn't move finished pods or static pods of the kubelet. It also doesn't move pods of
// DaemonSets, because the DaemonSet would create them again on the same machine.
func moves(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	owner := metav1.GetControllerOf(p)
	return owner == nil || owner.Kind != "DaemonSet"
}

// write writes the status of an Action if the status has changed. It returns a conflict error if the Action has changed in the API server.
func (h *Handler) write(ctx context.Context, a *v1.Action, status v1.ActionStatus) error {
	if same(&a.Status, &status) {
		return nil
	}
	next := a.DeepCopy()
	next.Status = status
	next.APIVersion, next.Kind = v1.GroupVersion.String(), v1.Kind
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return err
	}
	u, err := h.objects.Resource(v1.Actions).UpdateStatus(ctx, &unstructured.Unstructured{Object: object}, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	h.actions.Put(u)
	return nil
}

// do carries out an effect. It may be called again for the same effect.
func (h *Handler) do(ctx context.Context, a *v1.Action, f *step.Facts, e step.Effect) error {
	switch e {
	case step.EffectNone:
		return nil
	case step.EffectStopJob:
		return h.stopJob(ctx, a)
	case step.EffectRequeue:
		return h.requeueJob(ctx, a)
	case step.EffectCordon:
		return h.cordon(ctx, a, f.Machine)
	case step.EffectUncordon:
		return h.uncordon(ctx, a, f.Machine)
	case step.EffectStay:
		return h.mark(ctx, a, f.Machine.Version, nil, f.Machine.Mark.KeptOut(f.NoReturn))
	case step.EffectEvict:
		return h.evict(ctx, f.Machine.Pods)
	case step.EffectReset:
		return h.reset(ctx, a)
	case step.EffectRestart:
		return h.restart(ctx, a, f.Machine)
	}
	return fmt.Errorf("the effect %q is unknown", e)
}

var errMoved = errors.New("the target has changed")

// patchNode patches fields of a Node's spec and annotations. It returns errMoved if the Node's resourceVersion has changed, because a person may have
// cordoned the machine since it was read.
func (h *Handler) patchNode(ctx context.Context, name string, uid types.UID, version string, spec, annotations map[string]any) error {
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": version, "annotations": annotations}}
	if spec != nil {
		patch["spec"] = spec
	}
	return h.patch(ctx, uid, patch, func(data []byte) error {
		_, err := h.core.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
		return err
	})
}

// trimmed shortens the text of another program before it is written to a status.
func trimmed(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
