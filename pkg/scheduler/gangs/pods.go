package gangs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// observe applies a pod from the API server. The pod may be older than the known state, and may no longer exist.
func (s *state) observe(obj *corev1.Pod) {
	known := s.pods[obj.UID]
	switch {
	case known == nil && upTo(obj.ResourceVersion, s.listed):
		return // the pod was already gone when the state was built
	case known != nil && obj.ResourceVersion != known.object.ResourceVersion && upTo(obj.ResourceVersion, known.object.ResourceVersion):
		return
	case completed(obj):
		s.gone(obj.UID)
		return
	case !RequestsCells(obj) || !s.ours(obj):
		return
	case known == nil:
		known = s.add(obj)
	}
	known.missing = false
	s.update(known, obj)
}

// gone records that a pod no longer exists. It doesn't affect another pod with the same name.
func (s *state) gone(uid types.UID) {
	if p := s.pods[uid]; p != nil {
		s.log.Debug("pod is gone", "pod", p.key, "state", p.state)
		s.remove(p)
	}
}

// upTo reports whether resource version a is at most resource version b. According to KEP-5504, resource versions are numbers.
// upTo returns false for other texts.
func upTo(a, b string) bool {
	x, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return false
	}
	y, err := strconv.ParseUint(b, 10, 64)
	return err == nil && x <= y
}

// sweepEvery is how often the state is compared with the informer.
const sweepEvery = 5 * time.Second

// sweep removes pods whose deletion the informer didn't report. If a pod was created and deleted between two lists, the
// informer may miss the pod, although the list for the state contained it. stored returns a pod of the informer. synced is the
// version up to which the informer has received events. The informer may not have stored all events yet, so a pod must be
// missing in two sweeps.
func (b *Store) sweep(stored func(key string) *corev1.Pod, synced string) {
	var pods []*pod
	b.locked(func(s *state) {
		if s.now().Sub(s.swept) >= sweepEvery {
			s.swept, pods = s.now(), slices.Collect(maps.Values(s.pods))
		}
	})
	inParts(b, pods, func(s *state, p *pod) {
		obj := stored(p.key)
		switch {
		case s.pods[p.uid] != p:
		case obj != nil && obj.UID == p.uid, !upTo(p.object.ResourceVersion, synced):
			p.missing = false
		case !p.missing:
			p.missing = true
		default:
			s.log.Warn("a pod is gone without an event", "pod", p.key, "state", p.state)
			s.gone(p.uid)
		}
	})
}

func (s *state) update(p *pod, obj *corev1.Pod) {
	if obj.Spec.NodeName == "" {
		s.updateUnbound(p, obj)
		return
	}
	p.object = obj
	switch p.state {
	case api.Binding:
		if obj.Spec.NodeName == p.node && s.hasItsPlace(p) {
			s.markBound(p)
			return
		}
		s.log.Warn("a pod was bound by another scheduler", "pod", p.key, "node", obj.Spec.NodeName, "chosen", p.node)
		s.release(p)
		s.takeOver(p)
	case api.Waiting, api.Preempting:
		s.takeOver(p)
	}
}

// hasItsPlace reports whether a pod on the node of its place also has the cells of this place. A former leader may have bound
// the pod with other cells, in a request that took effect late.
func (s *state) hasItsPlace(p *pod) bool {
	if !Claims(p.object) {
		return p.object.Annotations[annotation.IsolationKey] == p.bound.Isolation
	}
	at, ok := s.claims[p.uid]
	return !ok || sameGPUs(at, p.claim()) // a pod without a claim can't run before this leader writes its claim
}

// updateUnbound applies a corrected request and the removal of scheduling gates to an unbound pod.
func (s *state) updateUnbound(p *pod, obj *corev1.Pod) {
	if limits := limitsOf(obj).text(); p.gang != nil && p.limits != limits {
		p.limits, p.gang.searched = limits, 0 // clients can add tolerations to any pod, and more constraints while the pod has a gate
	}
	if p.state != api.Waiting && p.state != api.Preempting {
		p.object = latest(p.object, obj)
		return // the informer is behind, because a pod is never unbound
	}
	old := p.object
	p.object = obj
	if p.gang != nil && (len(old.Spec.SchedulingGates) != len(obj.Spec.SchedulingGates) || (old.DeletionTimestamp == nil) != (obj.DeletionTimestamp == nil)) {
		p.gang.searched = 0
	}
	if old.Annotations[annotation.SpecKey] == obj.Annotations[annotation.SpecKey] && maps.Equal(old.Labels, obj.Labels) {
		return
	}
	s.release(p)
	s.leaveGang(p)
	s.parse(p)
}

// latest returns the newer object of a pod, unless the known object is already bound.
func latest(known, obj *corev1.Pod) *corev1.Pod {
	if known.Spec.NodeName != "" {
		return known
	}
	return obj
}

func (s *state) markBound(p *pod) {
	p.state, p.reason, p.sent = api.Bound, "", false
	p.gang.gather() // a former leader may have bound the pod while others wait for its claim
	s.places.remove(p.uid)
	p.gang.refusals, p.gang.calm, p.unbound = 0, time.Time{}, 0
	if Claims(p.object) {
		p.gang.moved = s.now()
	}
	if p.retold || !Claims(p.object) && p.bound.Placement != p.object.Annotations[annotation.PlacementKey] {
		s.todo(task{annotate, p.uid}) // the gang was downgraded while the pod was being bound
	}
	if p.told != "" {
		// kube-scheduler always reports that a pod is scheduled. Only pods with an event about waiting get an additional event.
		s.tell(p, corev1.EventTypeNormal, api.ReasonBound, fmt.Sprintf("runs on %s with %s", p.node, p.has()))
	}
}

func (p *pod) has() string {
	if p.bound.Isolation == "" {
		return plural.Of(len(p.indices), "CPU cell")
	}
	return "GPUs " + p.bound.Isolation
}

// takeOver accepts the place of a pod that Kubernetes has already bound.
func (s *state) takeOver(p *pod) {
	if placement, slot, ok := s.read(p); ok {
		s.accept(p, placement, slot)
	}
}

// read returns the place of a bound pod from its claim or, if the pod expects no claim, from its annotations. It ignores a pod
// with an unknown place.
func (s *state) read(p *pod) (*cell.Placement, int, bool) {
	if s.ignoreForeign(p) {
		return nil, 0, false
	}
	s.useBound(p)
	if Claims(p.object) {
		placement, slot, err := s.claimed(p)
		if err != nil {
			s.ignore(p, err.Error())
		}
		return placement, slot, err == nil
	}
	placement, slot, err := annotation.ReadBound(p.request, p.object.Annotations)
	if err != nil {
		s.ignore(p, fmt.Sprintf("its annotations don't say which GPUs it has: %v", err))
	}
	return placement, slot, err == nil
}

// ignoreForeign ignores a bound pod without a readable request, and a bound pod without annotations or claim of paictl's
// scheduler or HiveD. It reports whether it ignored the pod.
func (s *state) ignoreForeign(p *pod) bool {
	switch {
	case p.request == nil:
		s.ignore(p, fmt.Sprintf("its request can't be read: %s", p.reason))
	case p.object.Annotations[annotation.BindInfoKey] == "" && !Claims(p.object):
		s.ignore(p, "it was bound by another scheduler")
	default:
		return false
	}
	return true
}

func (s *state) accept(p *pod, placement *cell.Placement, slot int) {
	p.slot = slot
	downgrades, err := s.core.Allocate(cell.PodID(p.uid), p.request, placement, slot)
	if err != nil {
		s.ignore(p, fmt.Sprintf("its placement conflicts with others: %v", err))
		return
	}
	at := &placement.Pods[slot]
	p.node, p.indices = at.Node, at.Indices
	if Claims(p.object) {
		p.bound, p.details = annotation.Bound{Isolation: annotation.Isolation(at.Indices)}, s.claims[p.uid].Details
		s.markBound(p)
		s.apply(downgrades)
		return
	}
	p.bound = annotation.Bound{
		Isolation: p.object.Annotations[annotation.IsolationKey],
		BindInfo:  p.object.Annotations[annotation.BindInfoKey],
		Placement: p.object.Annotations[annotation.PlacementKey],
	}
	s.markBound(p)
	s.apply(downgrades)
}

// ignore excludes a pod with unknown cells from all gangs, and withholds its devices from other pods until it ends.
func (s *state) ignore(p *pod, why string) {
	s.release(p)
	p.state, p.node = api.Ignored, p.object.Spec.NodeName
	s.keep(p, why)
	s.log.Warn("a bound pod is ignored", "pod", p.key, "node", p.node, "reason", p.reason)
	s.tell(p, corev1.EventTypeWarning, api.ReasonNotManaged, p.reason)
}

const untilItEnds = "; until it ends "

// keep withholds the configured devices that an ignored pod may use.
func (s *state) keep(p *pod, why string) {
	devices := s.core.Devices(p.node)
	p.indices = s.isolated(p.object, devices)
	p.reason = why + untilItEnds + kept(p.indices, len(devices), p.node)
	s.block(p)
}

// kept describes the withheld devices.
func kept(indices []int32, all int, node string) string {
	switch len(indices) {
	case 0:
		return "nothing is reserved, because " + node + " has no cells"
	case all:
		return "no cell of " + node + " is allocated to others"
	}
	return fmt.Sprintf("%v of %s are not allocated to others", indices, node)
}

// isolated returns the devices of a node that a pod may use. They come from its claim or its annotations. If these contain no
// devices, isolated returns all devices.
func (s *state) isolated(obj *corev1.Pod, devices []int32) []int32 {
	text := obj.Annotations[annotation.IsolationKey]
	if Claims(obj) {
		text = ""
		if at, ok := s.claims[obj.UID]; ok && at.Node == obj.Spec.NodeName && at.Doubt == "" {
			text = annotation.Isolation(at.Indices)
		}
	}
	if text == "" {
		return devices
	}
	var out []int32
	for part := range strings.SplitSeq(text, ",") {
		index, err := strconv.ParseInt(part, 10, 32)
		if err != nil || !slices.Contains(devices, int32(index)) {
			return devices
		}
		out = append(out, int32(index))
	}
	return out
}

// block withholds a node's devices from other pods because of a pod with unknown cells. unblock undoes block.
func (s *state) block(p *pod) {
	n := s.nodes[p.node]
	if n == nil || len(p.indices) == 0 {
		return
	}
	if n.blocked == nil {
		n.blocked = map[types.UID][]int32{}
	}
	n.blocked[p.uid] = p.indices
	s.setDevices(p.node, n)
}

func (s *state) unblock(p *pod) {
	if n := s.nodes[p.node]; n != nil && n.blocked[p.uid] != nil {
		delete(n.blocked, p.uid)
		s.setDevices(p.node, n)
	}
}

// replay rebuilds the state from all pods. It adds running pods in the order in which their gangs were placed. HiveD's pods
// have no such order, so replay adds them by age.
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
		if completed(obj) || !RequestsCells(obj) || !s.ours(obj) {
			continue
		}
		p := s.add(obj)
		if obj.Spec.NodeName == "" {
			continue
		}
		at, slot, ok := s.read(p)
		if !ok {
			continue
		}
		order := at.Order
		if Claims(obj) {
			at = nil // each pod has a placement as large as the gang, and it can be read again
		}
		start := obj.CreationTimestamp.Time
		if obj.Status.StartTime != nil {
			start = obj.Status.StartTime.Time
		}
		list = append(list, running{p, at, slot, order, start})
	}
	slices.SortFunc(list, func(a, b running) int {
		return cmp.Or(cmp.Compare(a.order, b.order), a.start.Compare(b.start), cmp.Compare(a.key, b.key))
	})
	for _, r := range list {
		if r.at == nil {
			s.takeOver(r.pod)
			continue
		}
		s.accept(r.pod, r.at, r.slot)
	}
	for _, p := range s.pods {
		s.resume(p)
	}
}
