package gangs

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

// placeAtOnce is how many pods of a gang get places before the lock is released for other requests.
const placeAtOnce = 1000

// placing assigns places in memory to the pods of one class in a gang. The places are written to Kubernetes later.
type placing struct {
	gang *gang
	left []*pod
	// nodes are the nodes that may run all of these pods. apart means that the gang already runs, so its pods may be placed one
	// by one. A pod without a place then doesn't prevent the places of other pods.
	nodes cell.Nodes
	apart bool
	first *cell.Decision // the decision about the first pod
	// failed means that at least one pod has no place.
	failed bool
	// lost explains why a pod no longer has a place. When the first pod got its place, all pods had places, but the state has
	// changed since.
	lost string
}

// place assigns places to the first placeAtOnce pods, and leaves the other pods for later. It returns the pods that have a
// place now. Its result for the gang is valid only if the other pods also get places.
func (s *state) place(r *placing) (queue.Attempt, []*corev1.Pod) {
	part := r.left[:min(placeAtOnce, len(r.left))]
	r.left = r.left[len(part):]
	if len(r.left) > 0 {
		s.leave(r.gang, func() (queue.Attempt, []*corev1.Pod) {
			if !r.gang.runs(r.left[0].class) {
				return queue.Unfit, nil // the gang has lost its places since; the next pass begins again from the start
			}
			return s.place(r)
		})
	}
	var out []*corev1.Pod
	for _, p := range part {
		if s.pods[p.uid] != p || p.gang != r.gang || !p.ready() {
			continue // the pod was deleted since the previous part
		}
		if s.placeOne(r, p) {
			out = append(out, p.object)
		} else {
			r.failed = true
		}
	}
	if len(r.left) == 0 && r.lost != "" {
		s.takeBack(r.gang, r.lost) // the gang starts with all its pods, or not at all
		return queue.Unfit, nil
	}
	if r.failed {
		return queue.Unfit, out
	}
	return queue.Starts, out
}

func (s *state) placeOne(r *placing, p *pod) bool {
	nodes := r.nodes
	if r.apart {
		if s.paused([]*pod{p}) != nil {
			p.reason = pausing(p)
			return false
		}
		nodes = s.nodesFor(r.gang, []*pod{p})
	}
	d := r.first
	if r.first = nil; d == nil {
		found := s.schedule(p, nodes)
		d = &found
		s.count.decisions.WithLabelValues(string(d.Result)).Inc()
	}
	if r.apart {
		if d.Result == cell.Refuse {
			s.refused(p, d.Reason)
			return false
		}
		s.forgetTrial(p)
	}
	ok := s.give(p, d)
	if !ok && !r.apart && d.Result != cell.Refuse {
		r.lost = p.reason
	}
	return ok
}

// give assigns the place in a decision to a pod if the decision is Bind. It reports whether the pod has the place now.
func (s *state) give(p *pod, d *cell.Decision) bool {
	if d.Result != cell.Bind {
		s.wait(p, d.Reason)
		return false
	}
	downgrades, err := s.core.Allocate(cell.PodID(p.uid), p.request, d.Placement, d.Slot)
	if err != nil {
		s.log.Error("a placement that was found can't be used", "pod", p.key, "err", err)
		s.wait(p, err.Error())
		return false
	}
	s.hold(p, d, downgrades)
	return true
}

// hold records the place of a pod, so that kube-scheduler binds the pod to its node.
func (s *state) hold(p *pod, d *cell.Decision, downgrades []cell.Downgrade) {
	p.state, p.reason, p.assumed = api.Binding, "", s.now()
	p.node, p.indices, p.slot = d.Node, d.Indices, d.Slot
	if p.details = nil; Claims(p.object) {
		p.bound, p.details = annotation.Bound{Isolation: annotation.Isolation(d.Indices)}, annotation.WriteOwn(d.Placement, d.Slot)
	} else {
		p.bound = annotation.Write(p.request, d)
	}
	if s.core.WantsCPU(p.request) {
		p.bound.Isolation = "" // containers would mistake the numbers of CPU cells for numbers of GPUs, which may belong to other pods
	}
	p.trial, p.could = "", ""
	s.comes(p, p.node)
	s.places.set(p.uid, p.node, false)
	s.apply(downgrades)
	s.log.Debug("decided", "pod", p.key, "node", p.node, "gpus", p.bound.Isolation)
}
