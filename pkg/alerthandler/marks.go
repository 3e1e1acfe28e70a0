package alerthandler

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// retainted is the time within which the node controller may replace the taint that this program wrote for a cordon. The watch of the node controller
// may be late.
const retainted = 5 * time.Second

// validMark returns the mark of a machine. It returns nil if the machine was uncordoned and cordoned again after the mark was written. The new cordon
// belongs to a person, and a policy must not end it.
func validMark(n *corev1.Node) *v1.Mark {
	m := v1.ReadMark(n.Annotations)
	if m == nil || n.Spec.Unschedulable && !m.Tainted.IsZero() && tainted(n).Sub(m.Tainted).Abs() > retainted {
		return nil
	}
	return m
}

// tainted returns the time of the taint that belongs to the cordon of a machine, or the zero time. Kubernetes removes this taint when the machine is
// uncordoned.
func tainted(n *corev1.Node) time.Time {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			return t.TimeAdded.UTC()
		}
	}
	return time.Time{}
}

// unmark removes the marks of machines that a person has uncordoned. Otherwise a policy could end the next cordon, which may belong to a person. It
// also adds the time of the taint to marks without a time. That time distinguishes this cordon from later cordons, even if the handler doesn't
// observe the change.
func (h *Handler) unmark(ctx context.Context) {
	for name, n := range h.nodes.All() {
		change, err := remark(n)
		if err == nil && change != nil {
			err = h.patchNode(ctx, name, n.UID, n.ResourceVersion, nil, change)
		}
		if err != nil && !errors.Is(err, errMoved) {
			h.o.Log.WarnContext(ctx, "correct the mark of a machine", "machine", name, "error", err.Error())
			return
		}
	}
}

// remark returns the changes of annotations that correct the mark of a machine, or nil.
func remark(n *corev1.Node) (map[string]any, error) {
	if _, marked := n.Annotations[v1.MarkAnnotation]; !marked {
		return nil, nil
	}
	m := v1.ReadMark(n.Annotations)
	if !n.Spec.Unschedulable || m != nil && validMark(n) == nil {
		out := map[string]any{v1.MarkAnnotation: nil}
		if m != nil && m.Stays {
			out[v1.ReturnsAnnotation] = nil
		}
		return out, nil
	}
	at := tainted(n)
	if m == nil || at.IsZero() || !m.Tainted.IsZero() {
		return nil, nil
	}
	m.Tainted = at
	text, err := json.Marshal(m)
	return map[string]any{v1.MarkAnnotation: string(text)}, err
}
