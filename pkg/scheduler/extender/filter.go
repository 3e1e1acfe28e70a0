package extender

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// waitKey is the name of the node that FailedNodes has for a pod that waits.
const waitKey = "hivedscheduler"

// filter decides about a pod: its node, or why it has none.
func (e *Extender) filter(ctx context.Context, args *filterArgs) (*filterResult, error) {
	if args.Pod == nil || args.Pod.Metadata.UID == "" {
		return nil, badRequest("the field Pod is empty")
	}
	if args.NodeNames == nil {
		return nil, badRequest("the field NodeNames is empty: the extender needs nodeCacheCapable")
	}
	if err := e.lead(ctx, 0); err != nil {
		return nil, err
	}
	e.turn.Lock()
	defer e.turn.Unlock()
	if err := e.discover(ctx, args.Pod); err != nil {
		return nil, err
	}
	out, waits, err := e.decide(args)
	if waits > 0 {
		pause(ctx, waits)
	}
	return out, err
}

// pause holds up the next pod, where the configuration asks for that.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// discover asks for a pod that the informer hasn't told us about yet. kube-scheduler may be faster.
func (e *Extender) discover(ctx context.Context, ref *podRef) error {
	e.mu.Lock()
	known := e.state != nil && e.state.pods[ref.Metadata.UID] != nil
	e.mu.Unlock()
	if known {
		return nil
	}
	obj, err := e.client.CoreV1().Pods(ref.Metadata.Namespace).Get(ctx, ref.Metadata.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the pod %s: %w", ref.key(), err)
	}
	if err != nil || obj.UID != ref.Metadata.UID || completed(obj) || !wantsGPUs(obj) {
		return badRequest("the pod %s (%s) is not known", ref.key(), ref.Metadata.UID)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		return errNotLeading
	}
	e.state.reconcile(podKey(obj), obj)
	return nil
}

// decide answers for one pod, and says how long the next one is held up.
func (e *Extender) decide(args *filterArgs) (out *filterResult, hold time.Duration, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.state
	if s == nil {
		return nil, 0, errNotLeading
	}
	p := s.pods[args.Pod.Metadata.UID]
	switch {
	case p == nil:
		return nil, 0, badRequest("the pod %s is gone", args.Pod.key())
	case p.state == api.Bound, p.state == api.Ignored:
		return nil, 0, badRequest("the pod %s is bound already, to %s", p.key, p.node)
	case p.state == api.Binding:
		e.repeat(p, args.NodeNames)
		return &filterResult{NodeNames: &[]string{p.node}}, 0, nil
	}
	p.asked = s.now()
	if p.request == nil {
		s.tell(p, corev1.EventTypeWarning, api.ReasonRefused, p.reason)
		return nil, 0, badRequest("%s", p.reason)
	}
	d, err := s.schedule(p, args.NodeNames)
	if err != nil {
		return nil, 0, badRequest("the field NodeNames can't be read: %v", err)
	}
	e.count.decisions.WithLabelValues(string(d.Result)).Inc()
	switch d.Result {
	case cell.Bind:
		err := s.assume(p, &d)
		if err == nil && e.nodeObject(p.node) == nil {
			s.todo(task{bind, p.uid}) // Kubernetes removes the pod then, and its gang is tried again as a whole
		}
		return &filterResult{NodeNames: &[]string{p.node}}, 0, err
	case cell.Preempt:
		failed := s.preempt(p, &d, "")
		return &filterResult{FailedNodes: failed, FailedAndUnresolvableNodes: failed}, 0, nil
	case cell.Refuse:
		p.reason = d.Reason
		s.tell(p, corev1.EventTypeWarning, api.ReasonRefused, d.Reason)
		return nil, 0, badRequest("%s", d.Reason)
	}
	s.wait(p, d.Reason)
	return &filterResult{FailedNodes: map[string]string{waitKey: d.Reason}}, e.active.block, nil
}

// schedule asks the core. Cells that have to be emptied are reserved at once: kube-scheduler doesn't
// ask for victims where GPUs alone are short (docs/adr/0014).
func (s *state) schedule(p *pod, offered *nodeNames) (cell.Decision, error) {
	var nodes cell.Nodes
	if p.request.OnlySuggested {
		if err := offered.decode(); err != nil {
			return cell.Decision{}, err
		}
		nodes = offered
	}
	start := time.Now()
	d := s.core.Schedule(cell.PodID(p.uid), p.request, cell.Filtering, nodes)
	s.apply(d.Changes)
	if reason := tooLong(p, &d); reason != "" {
		s.apply(s.core.DeleteUnallocated(cell.PodID(p.uid), p.request)) // what an earlier configuration let it reserve
		d = cell.Decision{Result: cell.Refuse, Reason: reason}
	}
	if d.Result == cell.Preempt {
		d = s.core.Schedule(cell.PodID(p.uid), p.request, cell.Preempting, nodes)
		s.apply(d.Changes)
	}
	s.count.decided.Observe(time.Since(start).Seconds())
	return d, nil
}

// tooLong says why a gang can't have a place: each of its pods would be told the places of all, and Kubernetes
// doesn't let anyone write a pod with longer annotations any more, its kubelet and who deletes it included.
// Empty if there is nothing against it.
func tooLong(p *pod, d *cell.Decision) string {
	if d.Placement == nil {
		return ""
	}
	size := annotation.Size(p.request, d.Placement)
	for key, value := range p.object.Annotations {
		size += len(key) + len(value)
	}
	if size <= annotation.MaxSize {
		return ""
	}
	return fmt.Sprintf("the gang %s is too large: the places of its %d pods are %d KiB in the annotations of each of them, and %d KiB is the limit; make the gang smaller, with fewer tasks or fewer cells per task, or let its tasks start one by one (extras: {gangAllocation: false})",
		p.request.Gang, len(d.Placement.Pods), size>>10, annotation.MaxSize>>10)
}

// assume gives a pod its place, before Kubernetes knows.
func (s *state) assume(p *pod, d *cell.Decision) error {
	downgrades, err := s.core.Allocate(cell.PodID(p.uid), p.request, d.Placement, d.Slot)
	if err != nil {
		return fmt.Errorf("allocate the place of %s: %w", p.key, err)
	}
	p.state, p.reason, p.attempts = api.Binding, "", 0
	p.node, p.indices, p.slot = d.Node, d.Indices, d.Slot
	p.bound = annotation.Write(p.request, d)
	if s.core.WantsCPU(p.request) {
		p.bound.Isolation = "" // containers would take the numbers of CPU cells for GPUs, which on a machine that has some are others'
	}
	s.apply(downgrades)
	s.log.Debug("decided", "pod", p.key, "node", p.node, "gpus", p.bound.Isolation)
	return nil
}

// wait keeps a pod waiting.
func (s *state) wait(p *pod, reason string) {
	p.state, p.reason = api.Waiting, reason
	s.tell(p, corev1.EventTypeNormal, api.ReasonWaiting, reason)
}

// repeat counts a question about a pod that has its place, and binds it without kube-scheduler if that
// doesn't manage: its reasons against the node don't count, the gang has its place there.
func (e *Extender) repeat(p *pod, offered *nodeNames) {
	p.attempts++
	known := e.nodeObject(p.node) != nil
	if p.attempts < e.active.forceBind && known && offered.mentions(p.node) {
		return
	}
	e.log.Warn("binding a pod that kube-scheduler doesn't", "pod", p.key, "node", p.node, "attempts", p.attempts, "nodeKnown", known)
	e.work.add(task{bind, p.uid})
}
