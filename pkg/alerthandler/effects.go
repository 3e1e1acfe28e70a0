package alerthandler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

func same(a, b *v1.ActionStatus) bool { return equality.Semantic.DeepEqual(a, b) }

// patch adds the UID of the intended object to a patch and calls send. It returns errMoved if another object now has the name, because the API server
// then rejects the patch.
func (h *Handler) patch(_ context.Context, uid types.UID, patch map[string]any, send func([]byte) error) error {
	meta, _ := patch["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		patch["metadata"] = meta
	}
	meta["uid"] = uid
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	switch err := send(data); {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", errMoved, err)
	default:
		return err
	}
}

var frameworks = jobv1.Resource

// stopJob requests the end of a job. It stores the reason in an annotation, which the command "job why" shows.
func (h *Handler) stopJob(ctx context.Context, a *v1.Action) error {
	reason := a.Spec.Reason + " (" + a.Spec.By.Text() + ")"
	patch := map[string]any{
		"spec":     map[string]any{"executionType": jobv1.ExecutionStop},
		"metadata": map[string]any{"annotations": map[string]any{jobv1.AnnotationStopped: reason}},
	}
	err := h.patch(ctx, a.Spec.Job.UID, patch, func(data []byte) error {
		_, err := h.objects.Resource(frameworks).Namespace(h.o.JobNamespace).Patch(ctx, a.Spec.Job.Object, types.MergePatchType, data, metav1.PatchOptions{})
		return err
	})
	if errors.Is(err, errMoved) {
		return nil // it has ended; the watch shows it
	}
	return err
}

// cordon cordons a machine and adds the mark of the Action. If a policy has already cordoned the machine, the Action of another policy adds its alert
// to the mark. The Action of a person replaces that mark. The patch for a new cordon includes the taint, which the node controller would otherwise
// add later. The time of the taint identifies this cordon, even if the machine is uncordoned and cordoned again at once.
func (h *Handler) cordon(ctx context.Context, a *v1.Action, m *step.Machine) error {
	mark, spec := h.markOf(a, a.Spec.Reason), map[string]any{"unschedulable": true}
	switch n, ok := h.nodes.Get(a.Spec.Machine.Name); {
	case m.Unschedulable && m.Mark != nil && a.Spec.By.Kind == v1.ByPolicy:
		mark = m.Mark.With(mark)
	case m.Unschedulable:
	case !ok || n.ResourceVersion != m.Version:
		return errMoved
	default:
		at := metav1.NewTime(mark.At.Truncate(time.Second))
		mark.Tainted = at.Time
		spec["taints"] = append(slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }),
			corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at})
	}
	return h.mark(ctx, a, m.Version, spec, mark)
}

func (h *Handler) markOf(a *v1.Action, reason string) v1.Mark {
	return v1.Mark{Action: a.Name, By: a.Spec.By, Reason: reason, At: h.o.Now().UTC()}
}

// mark writes the mark of a machine, and the given fields of the Node's spec.
func (h *Handler) mark(ctx context.Context, a *v1.Action, version string, spec map[string]any, m v1.Mark) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return h.patchNode(ctx, a.Spec.Machine.Name, a.Spec.Machine.UID, version, spec, map[string]any{v1.MarkAnnotation: string(text)})
}

// uncordon makes a machine schedulable again. If other alerts still need the cordon, it only removes the alert of this Action from the mark. For a
// policy, it records the time, which counts toward a limit. For a person, it removes the recorded times.
func (h *Handler) uncordon(ctx context.Context, a *v1.Action, m *step.Machine) error {
	if a.Spec.By.Kind == v1.ByPolicy && m.Mark != nil {
		if rest := m.Mark.Without(a.Name); rest != nil {
			return h.mark(ctx, a, m.Version, nil, *rest)
		}
	}
	annotations := map[string]any{v1.MarkAnnotation: nil, v1.ReturnsAnnotation: nil}
	if a.Spec.By.Kind == v1.ByPolicy {
		text, err := v1.WriteReturns(m.Returns, h.o.Now())
		if err != nil {
			return err
		}
		annotations[v1.ReturnsAnnotation] = text
	}
	return h.patchNode(ctx, a.Spec.Machine.Name, a.Spec.Machine.UID, m.Version, map[string]any{"unschedulable": nil}, annotations)
}

func (h *Handler) evict(ctx context.Context, pods []step.Pod) error {
	var errs []error
	for _, p := range pods {
		if p.Leaving || !p.Managed {
			continue
		}
		uid := p.UID
		err := h.core.PolicyV1().Evictions(p.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
		})
		switch {
		case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
			h.refused.set(uid, "")
		case apierrors.IsTooManyRequests(err), apierrors.IsForbidden(err):
			h.refused.set(uid, trimmed(err.Error()))
		default:
			errs = append(errs, fmt.Errorf("evict %s/%s: %w", p.Namespace, p.Name, err))
		}
	}
	return errors.Join(errs...)
}

// managed reports whether the job controller replaces a deleted pod although the pod has no owner reference.
func managed(p *corev1.Pod) bool { return p.Labels[jobv1.LabelFramework] != "" }

// reset writes a request to reset a GPU, which the agent on the machine reads. The request contains the Action's UID, so that repeated calls make
// only one request.
func (h *Handler) reset(ctx context.Context, a *v1.Action) error {
	m := a.Spec.Machine
	n, err := h.core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if n.UID != m.UID {
		return errMoved
	}
	requests, err := repair.Read(n)
	if err != nil {
		requests = nil // the agent carries out none of them
	}
	answers, err := repair.ReadAnswers(n)
	if err != nil {
		answers = nil
	}
	for _, r := range requests {
		answered := slices.ContainsFunc(answers, func(a repair.Answer) bool { return a.ID == r.ID })
		switch other := r.GPU == *m.GPU && !answered && h.o.Now().Sub(r.At) <= repair.Valid; {
		case r.ID == string(a.UID), other: // it waits for its answer, or for that to a person's request, which it would replace
			return nil
		}
	}
	return repair.Add(ctx, h.core, m.Name, repair.Request{ID: string(a.UID), GPU: *m.GPU, Action: repair.Reset, Reason: a.Spec.Reason, At: h.o.Now().UTC(), By: a.Spec.By.Text()})
}

// restart orders the agent on a machine to restart the machine. The order contains the Action's UID and the current boot ID.
func (h *Handler) restart(ctx context.Context, a *v1.Action, m *step.Machine) error {
	n, err := h.core.CoreV1().Nodes().Get(ctx, a.Spec.Machine.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if n.UID != a.Spec.Machine.UID {
		return errMoved
	}
	if order, err := repair.ReadRestart(n); err == nil && order != nil && order.ID == string(a.UID) {
		return nil // it waits for its answer
	}
	if n.ResourceVersion != m.Version { // a person may have uncordoned it, or taken it over
		return errMoved
	}
	return repair.WriteRestart(ctx, h.core, n, repair.Restart{ID: string(a.UID), Boot: a.Status.Boot, Reason: a.Spec.Reason, At: a.Status.StartTime.UTC(), By: a.Spec.By.Text()})
}

// refusals holds, for each pod, the latest reason why the API server rejected the eviction.
type refusals struct {
	mu  sync.Mutex
	why map[types.UID]string
}

// mostRefusals limits the number of stored reasons, including reasons for deleted pods.
const mostRefusals = 10_000

func (r *refusals) get(uid types.UID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why[uid]
}

func (r *refusals) set(uid types.UID, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why == "" {
		delete(r.why, uid)
		return
	}
	if r.why == nil || len(r.why) >= mostRefusals {
		r.why = map[types.UID]string{}
	}
	r.why[uid] = why
}
