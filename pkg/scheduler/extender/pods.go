package extender

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/plural"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// reconcile brings what is known of a name to what the API server has there; nil is nothing. It
// may be called with an object that is older than what is known, never with one of a past life.
func (s *state) reconcile(key string, obj *corev1.Pod) {
	known := s.named[key]
	if known != nil && (obj == nil || obj.UID != known.uid || completed(obj)) {
		s.log.Debug("pod is gone", "pod", key, "state", known.state)
		s.remove(known)
		known = nil
	}
	if obj == nil || completed(obj) || !wantsGPUs(obj) {
		return
	}
	if known == nil {
		known = s.add(obj)
	}
	s.update(known, obj)
}

func (s *state) update(p *pod, obj *corev1.Pod) {
	if obj.Spec.NodeName == "" {
		s.updateUnbound(p, obj)
		return
	}
	p.object = obj
	switch p.state {
	case api.Binding:
		if obj.Spec.NodeName == p.node && obj.Annotations[annotation.IsolationKey] == p.bound.Isolation {
			s.markBound(p)
			return
		}
		s.log.Warn("a pod was bound elsewhere", "pod", p.key, "node", obj.Spec.NodeName, "chosen", p.node)
		s.release(p)
		s.takeOver(p)
	case api.Waiting, api.Preempting:
		s.takeOver(p)
	}
}

// updateUnbound takes note of a request that was corrected.
func (s *state) updateUnbound(p *pod, obj *corev1.Pod) {
	if p.state != api.Waiting && p.state != api.Preempting {
		return // the informer is behind: no one unbinds a pod
	}
	old := p.object
	p.object = obj
	if old.Annotations[annotation.SpecKey] == obj.Annotations[annotation.SpecKey] && maps.Equal(old.Labels, obj.Labels) {
		return
	}
	s.release(p)
	s.leaveGang(p)
	s.parse(p)
}

func (s *state) markBound(p *pod) {
	p.state, p.reason = api.Bound, ""
	if p.bound.Placement != p.object.Annotations[annotation.PlacementKey] {
		s.todo(task{annotate, p.uid}) // it was downgraded while it was being bound
	}
	if p.told != "" {
		// kube-scheduler tells everybody that a pod is scheduled; we only those who heard of waiting.
		s.tell(p, corev1.EventTypeNormal, api.ReasonBound, fmt.Sprintf("runs on %s with %s", p.node, p.has()))
	}
}

// has says which cells a bound pod has.
func (p *pod) has() string {
	if p.bound.Isolation == "" {
		return plural.Of(len(p.indices), "CPU cell")
	}
	return "GPUs " + p.bound.Isolation
}

// takeOver accepts the place of a pod that Kubernetes has bound already.
func (s *state) takeOver(p *pod) {
	if s.ignoreForeign(p) {
		return
	}
	placement, slot, err := annotation.ReadBound(p.request, p.object.Annotations)
	if err != nil {
		s.ignore(p, fmt.Sprintf("its annotations don't say which GPUs it has: %v", err))
		return
	}
	s.accept(p, placement, slot)
}

// ignoreForeign ignores a pod without annotations of ours or HiveD's.
func (s *state) ignoreForeign(p *pod) bool {
	switch {
	case p.request == nil:
		s.ignore(p, fmt.Sprintf("its request can't be read: %s", p.reason))
	case p.object.Annotations[annotation.BindInfoKey] == "":
		s.ignore(p, "it was bound by another scheduler; no GPU is counted as used by it")
	default:
		return false
	}
	return true
}

func (s *state) accept(p *pod, placement *cell.Placement, slot int) {
	p.slot = slot
	downgrades, err := s.core.Allocate(cell.PodID(p.uid), p.request, placement, slot)
	if err != nil {
		s.ignore(p, fmt.Sprintf("its place contradicts others: %v", err))
		return
	}
	at := &placement.Pods[slot]
	p.node, p.indices = at.Node, at.Indices
	p.bound = annotation.Bound{
		Isolation: p.object.Annotations[annotation.IsolationKey],
		BindInfo:  p.object.Annotations[annotation.BindInfoKey],
		Placement: p.object.Annotations[annotation.PlacementKey],
	}
	s.markBound(p)
	s.apply(downgrades)
}

// ignore counts a pod as no user of GPUs, and says so.
func (s *state) ignore(p *pod, why string) {
	s.release(p)
	p.state, p.reason, p.node = api.Ignored, why, p.object.Spec.NodeName
	s.log.Warn("a bound pod is ignored", "pod", p.key, "node", p.node, "reason", why)
	s.tell(p, corev1.EventTypeWarning, api.ReasonNotManaged, why)
}

// replay rebuilds everything from all pods: those that run in the order in which their gangs were
// placed, and of others, which HiveD placed, the oldest first.
func (s *state) replay(objects []*corev1.Pod) {
	type running struct {
		*pod
		at    *cell.Placement
		slot  int
		order uint64
		start time.Time
	}
	var list []running
	for _, obj := range objects {
		if completed(obj) || !wantsGPUs(obj) {
			continue
		}
		p := s.add(obj)
		if obj.Spec.NodeName == "" || s.ignoreForeign(p) {
			continue
		}
		at, slot, err := annotation.ReadBound(p.request, obj.Annotations)
		if err != nil {
			s.ignore(p, fmt.Sprintf("its annotations don't say which GPUs it has: %v", err))
			continue
		}
		start := obj.CreationTimestamp.Time
		if obj.Status.StartTime != nil {
			start = obj.Status.StartTime.Time
		}
		list = append(list, running{p, at, slot, at.Order, start})
	}
	slices.SortFunc(list, func(a, b running) int {
		return cmp.Or(cmp.Compare(a.order, b.order), a.start.Compare(b.start), cmp.Compare(a.key, b.key))
	})
	for _, r := range list {
		s.accept(r.pod, r.at, r.slot)
	}
}
