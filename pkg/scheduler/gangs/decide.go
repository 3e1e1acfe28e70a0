package gangs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
	"github.com/openpai/paictl/pkg/ui/plural"
)

const (
	// gangGrace is how long a gang waits for missing pods after the creation of its last pod.
	gangGrace = 10 * time.Second
	// placeLimit is how long a gang keeps its place while kube-scheduler doesn't bind the pods.
	placeLimit = 2 * time.Minute
	// refusedFor is how long a gang first avoids a node that couldn't run one of its pods. The time doubles with each further
	// failed node.
	refusedFor = 30 * time.Second
	// mostRefused is the maximum of this time.
	mostRefused = 10 * time.Minute
	// firstPause is how long an unbound pod gets no new place after its place was released. The pause doubles up to
	// mostRefused.
	firstPause = 10 * time.Second
	// refreshEvery is how often places are searched for all gangs without a change, because some gangs are held back only for a
	// time.
	refreshEvery = 10 * time.Second
)

// expire releases places of pods that kube-scheduler doesn't bind. It also periodically retries all gangs.
func (s *state) expire() {
	now := s.now()
	if now.Sub(s.refreshed) >= refreshEvery {
		s.refreshed = now
		s.epoch++
	}
	for _, uid := range s.places.uids() {
		p := s.pods[uid]
		if p == nil {
			continue
		}
		if p.trial != "" && now.Sub(p.assumed) >= placeLimit {
			if p.object.DeletionTimestamp != nil {
				s.forgetTrial(p) // kube-scheduler no longer tries this pod, and its gang continues without it
			} else {
				s.unanswered(p)
			}
			continue
		}
		if p.state == api.Binding && p.sent && now.Sub(p.assumed) >= placeLimit {
			s.todo(task{ask, p.uid})
		}
		if p.state != api.Binding || p.sent || now.Sub(p.assumed) < placeLimit || now.Sub(p.assumed) < 2*gatherMost && now.Sub(p.gang.moved) < placeLimit {
			continue // or the pod's gang is large and still being bound
		}
		s.log.Warn("a placement is released: kube-scheduler didn't bind the pod", "pod", p.key, "node", p.node)
		g := p.gang
		g.refusal = fmt.Sprintf("kube-scheduler didn't bind %s to %s within %s", p.key, p.node, placeLimit)
		if p.claimError != "" {
			g.refusal += ": " + p.claimError
		}
		s.unbound(p)
	}
}

// unbound releases the place of a pod that kube-scheduler didn't bind. It also releases the places of the pod's gang, unless
// the gang already runs. Other gangs may then use the cells for a while. It returns the pods that lost their place.
func (s *state) unbound(p *pod) []*pod {
	g, reason := p.gang, p.gang.refusal
	with := []*pod{p}
	if !slices.ContainsFunc(g.pods, func(q *pod) bool { return q.class == p.class && (q.state == api.Bound || q.sent) }) {
		with = slices.DeleteFunc(slices.Clone(g.pods), func(q *pod) bool { return q.class != p.class || q.state != api.Binding })
	}
	for _, q := range with {
		s.release(q)
		s.wait(q, reason)
		q.pause = s.now().Add(min(firstPause<<min(q.unbound, 10), mostRefused))
		q.unbound++
	}
	return with
}

// paused returns a pod that may not get a place yet, or nil.
func (s *state) paused(pods []*pod) *pod {
	i := slices.IndexFunc(pods, func(p *pod) bool { return p.state == api.Waiting && s.now().Before(p.pause) })
	if i < 0 {
		return nil
	}
	return pods[i]
}

// mostHeld is how often the binding of a gang may fail before cells are no longer held for the gang during pauses.
const mostHeld = 3

// alike reports whether all pods of a gang have the same class and may run on the same nodes.
func (g *gang) alike() bool {
	first := g.pods[0]
	return !slices.ContainsFunc(g.pods, func(p *pod) bool { return p.class != first.class || p.limits != first.limits })
}

// ready returns the waiting pods of a class that can run when they have a place.
func (g *gang) ready(class string) []*pod {
	var out []*pod
	for _, p := range g.pods {
		if p.class == class && p.ready() {
			out = append(out, p)
		}
	}
	return out
}

func (p *pod) ready() bool {
	return p.request != nil && (p.state == api.Waiting || p.state == api.Preempting) && p.object.DeletionTimestamp == nil && len(p.object.Spec.SchedulingGates) == 0
}

// try searches places for a gang's pods. If it finds places, pods are the pods with a place.
func (s *state) try(g *gang) (attempt queue.Attempt, pods []*corev1.Pod) {
	g.held = false
	attempt = queue.Unfit
	var classes []string
	for _, p := range slices.Clone(g.pods) {
		if p.request == nil || slices.Contains(classes, p.class) || p.state != api.Waiting && p.state != api.Preempting {
			continue
		}
		classes = append(classes, p.class)
		a, found := s.tryClass(g, p)
		pods = append(pods, found...)
		attempt = min(attempt, a) // Starts is the lowest value
	}
	g.searched, g.attempt = s.epoch, attempt
	if len(pods) > 0 || s.paused(g.pods) != nil { // a pause ends without a change of the epoch
		g.searched = 0
	}
	return attempt, pods
}

// tryClass works like try, for the pods with the class of a given pod.
func (s *state) tryClass(g *gang, like *pod) (queue.Attempt, []*corev1.Pod) {
	ready := g.ready(like.class)
	if reason := s.incomplete(g, like, ready); reason != "" {
		for _, p := range g.pods {
			if p.class == like.class && p.state == api.Waiting {
				p.reason = reason
			}
		}
		return queue.Unfit, nil
	}
	s.rejoin(g, ready)
	if g.runs(like.class) {
		return s.place(&placing{gang: g, left: ready, apart: true})
	}
	if p := s.paused(ready); p != nil {
		for _, q := range ready {
			q.reason = pausing(p)
		}
		if p.unbound <= mostHeld {
			return queue.Waits, nil // cells that have become free for the gang stay reserved
		}
		return queue.Unfit, nil
	}
	p := ready[0]
	nodes := s.nodesFor(g, ready)
	d := s.searchBoth(ready, nodes)
	s.count.decisions.WithLabelValues(string(d.Result)).Inc()
	if d.Result == cell.Preempt {
		// Release the lock before the cells are reserved, because the search and the reservation take long for a whole cluster.
		s.leave(g, func() (queue.Attempt, []*corev1.Pod) { return s.reserve(g, p, nodes, d) })
		return queue.Waits, nil
	}
	return s.carryOut(g, ready, nodes, d)
}

// reserve reserves the cells that were found for a gang. If the state has changed since the search, it searches again.
func (s *state) reserve(g *gang, p *pod, nodes cell.Nodes, d cell.Decision) (queue.Attempt, []*corev1.Pod) {
	ready := g.ready(p.class)
	if s.pods[p.uid] != p || p.gang != g || !p.ready() || s.incomplete(g, p, ready) != "" {
		return queue.Unfit, nil // the next pass begins again from the start
	}
	if p.preferred.Alternative != nil {
		useAll(ready, p.request == p.preferred.Alternative) // some pods may have been added since
	}
	i := slices.Index(ready, p) // the decision is about the pod p
	ready[0], ready[i] = ready[i], ready[0]
	return s.carryOut(g, ready, nodes, s.taken(p, nodes, d))
}

// carryOut applies a decision about the first ready pod of a gang. For a Preempt, the cells must already be reserved.
func (s *state) carryOut(g *gang, ready []*pod, nodes cell.Nodes, d cell.Decision) (queue.Attempt, []*corev1.Pod) {
	switch d.Result {
	case cell.Bind:
		return s.place(&placing{gang: g, left: ready, nodes: nodes, first: &d})
	case cell.Preempt:
		pods, could := s.tryOut(ready, d.Placement)
		if could {
			s.preempt(g, ready)
		}
		return queue.Waits, pods
	case cell.Refuse:
		for _, q := range ready {
			s.refused(q, d.Reason)
		}
		return queue.Unfit, nil
	}
	for _, q := range ready {
		s.forgetTrial(q)
		s.wait(q, d.Reason)
	}
	return s.waitsFor(g, ready[0]), nil
}

// pausing explains why a pod and its gang get no place now, and when the pause ends.
func pausing(p *pod) string {
	return fmt.Sprintf("%s; it gets a new placement at %s", p.gang.refusal, p.pause.UTC().Format(time.RFC3339))
}

// refused reports that a pod can't get a place.
func (s *state) refused(p *pod, reason string) {
	s.forgetTrial(p)
	p.reason = reason
	s.tell(p, corev1.EventTypeWarning, api.ReasonRefused, reason)
}

// runs reports whether a pod of a class in the gang has a place.
func (g *gang) runs(class string) bool {
	return slices.ContainsFunc(g.pods, func(p *pod) bool {
		return p.class == class && (p.state == api.Binding || p.state == api.Bound)
	})
}

// waitsFor returns Unfit if holding free cells for a gang is due but wouldn't help the gang. Otherwise it returns Waits.
func (s *state) waitsFor(g *gang, p *pod) queue.Attempt {
	if s.reserves < 0 || s.now().Sub(g.since()) < s.reserves {
		return queue.Waits
	}
	for _, r := range s.requests(p) {
		switch s.core.Why(r).Code {
		case cell.NoCapacity, cell.Fragmented:
			return queue.Waits
		}
	}
	return queue.Unfit
}

// incomplete describes the missing parts of a gang before the search, or returns "".
func (s *state) incomplete(g *gang, like *pod, ready []*pod) string {
	want, there, gated := 0, 0, 0
	for _, set := range like.request.Sets() {
		want += set.Count
	}
	for _, p := range g.pods {
		if p.class != like.class {
			continue
		}
		there++
		if len(p.object.Spec.SchedulingGates) > 0 {
			gated++
		}
	}
	switch {
	case gated > 0:
		return fmt.Sprintf("the gang waits for the scheduling gates of %s to be removed", plural.Of(gated, "pod"))
	case len(ready) == 0:
		return "its pods are being deleted"
	case there < want && s.now().Sub(g.arrived) < s.grace:
		return fmt.Sprintf("%d of %d pods of the gang exist", there, want)
	}
	return ""
}

// schedule requests a decision from package cell, and reserves the cells of a Preempt.
func (s *state) schedule(p *pod, nodes cell.Nodes) cell.Decision {
	d := because(p, s.search(p, nodes))
	if d.Result == cell.Preempt {
		d = s.taken(p, nodes, d)
	}
	return d
}

// search requests a decision from package cell. It doesn't change the state, except that it may release a useless reservation.
// The caller uses because to add the reasons why nodes rejected the pod.
func (s *state) search(p *pod, nodes cell.Nodes) cell.Decision {
	start := time.Now()
	defer func() { s.count.decided.Observe(time.Since(start).Seconds()) }()
	d := s.core.Find(cell.PodID(p.uid), requestOn(p, nodes), nodes)
	s.apply(d.Changes)
	d = s.possible(p, d)
	if d.Result == cell.Preempt && p.state == api.Waiting && s.now().Before(p.gang.calm) {
		return cell.Decision{Result: cell.Wait, Reason: fmt.Sprintf(
			"%s; it preempts no other gangs before %s", p.gang.refusal, p.gang.calm.UTC().Format(time.RFC3339))}
	}
	return d
}

// taken reserves the cells of a Preempt, and returns the decision of the reservation.
func (s *state) taken(p *pod, nodes cell.Nodes, d cell.Decision) cell.Decision {
	start := time.Now()
	defer func() { s.count.decided.Observe(time.Since(start).Seconds()) }()
	d = s.core.Reserve(cell.PodID(p.uid), requestOn(p, nodes), nodes, d)
	if p.state == api.Waiting {
		s.postpone(p.gang, d.Changes)
	} else {
		s.apply(d.Changes)
	}
	return because(p, s.possible(p, d))
}

// requestOn returns a pod's request for the given nodes. nil means all nodes.
func requestOn(p *pod, nodes cell.Nodes) *cell.Request {
	if nodes == nil {
		return p.request
	}
	only := *p.request
	only.OnlySuggested = true
	return &only
}

// possible changes a decision to Refuse if its place can't be written to Kubernetes.
func (s *state) possible(p *pod, d cell.Decision) cell.Decision {
	reason := cmp.Or(s.unclaimable(p), tooLong(p, &d))
	if reason == "" {
		return d
	}
	s.apply(s.core.DeleteUnallocated(cell.PodID(p.uid), p.request)) // the gang may have reserved cells under an earlier configuration
	return cell.Decision{Result: cell.Refuse, Reason: reason}
}

// because adds the reason why nodes can't run a waiting gang.
func because(p *pod, d cell.Decision) cell.Decision {
	if d.Result == cell.Wait && len(p.gang.refused) > 0 && !strings.Contains(d.Reason, p.gang.refusal) {
		d.Reason += "; " + p.gang.refusal
	}
	return d
}

// tooLong explains why the annotations of a gang would be too long, or returns "". The annotations of each pod contain the
// places of all pods of the gang. Above the limit, Kubernetes would reject every update of such a pod. This includes updates by
// the kubelet and by a client that deletes the pod.
func tooLong(p *pod, d *cell.Decision) string {
	if d.Placement == nil || Claims(p.object) {
		return ""
	}
	size := annotation.Size(p.request, d.Placement) + ownSize(p)
	if size <= annotation.MaxSize {
		return ""
	}
	return fmt.Sprintf("the gang %s is too large: the placements of its %d pods need %d KiB in each pod's annotations, but the limit is %d KiB; make the gang smaller, with fewer tasks or fewer cells per task, or let its tasks start one by one (extras: {gangAllocation: false})",
		p.request.Gang, len(d.Placement.Pods), size>>10, annotation.MaxSize>>10)
}

func ownSize(p *pod) int {
	n := 0
	for key, value := range p.object.Annotations {
		n += len(key) + len(value)
	}
	return n
}

// longAnnotations is the size of a pod's own annotations, in bytes, above which they may make its gang too large.
const longAnnotations = 16 << 10

func (s *state) wait(p *pod, reason string) {
	p.state, p.reason = api.Waiting, reason
	s.tell(p, corev1.EventTypeNormal, api.ReasonWaiting, reason)
}

// refuse releases the places of a gang because a pod can't run on its node. It returns the pods that had a place.
func (s *state) refuse(p *pod, reason string) []types.UID {
	refused := s.avoid(p, p.node, reason)
	// The gang may have evicted other gangs without success. Pause, so that the gang doesn't evict gangs on one node after the
	// other. The node is refused for longer than this pause, so that the gang then tries another node.
	p.gang.calm = s.now().Add(refused * 5 / 6)
	return s.takeBack(p.gang, cantRun(p, p.node, reason))
}

// avoid excludes a node that can't run a pod of the gang. It returns the duration, which increases with the number of failed
// nodes.
func (s *state) avoid(p *pod, node, reason string) time.Duration {
	g := p.gang
	if g.refused == nil {
		g.refused = map[string]time.Time{}
	}
	refused := min(refusedFor<<min(g.refusals, 10), mostRefused)
	g.refusals++
	g.refused[node], g.refusal = s.now().Add(refused), cantRun(p, node, reason)
	s.log.Info("a node can't run a pod that was to run there", "pod", p.key, "node", node, "reason", reason)
	return refused
}

func cantRun(p *pod, node, reason string) string {
	return fmt.Sprintf("%s can't run %s: %s", node, p.key, reason)
}

// takeBack releases the places of a gang's unbound pods, and returns these pods.
func (s *state) takeBack(g *gang, reason string) []types.UID {
	var out []types.UID
	for _, p := range g.pods {
		if p.state == api.Binding && !p.sent {
			out = append(out, p.uid)
			s.release(p)
			s.wait(p, reason)
		}
	}
	return out
}
