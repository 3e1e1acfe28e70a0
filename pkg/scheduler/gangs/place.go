package gangs

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// Place is the node on which a pod should run.
type Place struct {
	Node string
	// Number increases with each place. kube-scheduler binds the pods in the order of their numbers.
	Number uint64
	// Trial means that the pod can run only after evictions. Before the evictions, kube-scheduler checks whether the pod could
	// run there.
	Trial bool
}

// places contains the places of pods until Kubernetes has bound the pods. It includes pods on trial.
type places struct {
	mu sync.RWMutex
	of map[types.UID]Place
	// number is the last number.
	number uint64
}

func (p *places) get(uid types.UID) (Place, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	at, ok := p.of[uid]
	return at, ok
}

func (p *places) set(uid types.UID, node string, trial bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[types.UID]Place{}
	}
	p.number++
	p.of[uid] = Place{node, p.number, trial}
}

func (p *places) uids() []types.UID {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Keys(p.of))
}

func (p *places) remove(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, uid)
}

func (p *places) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.of)
}

// Place returns the place of a pod, or false if the pod has no place. It doesn't wait for a running decision.
func (b *Store) Place(pod types.UID) (Place, bool) { return b.places.get(pod) }

// Permit records that kube-scheduler can bind a pod. If kube-scheduler can bind all pods of the gang that have a place,
// together is true and pods are these pods. has is false if the pod has lost its place.
func (b *Store) Permit(uid types.UID) (pods []types.UID, together, has bool) {
	b.locked(func(s *state) {
		p := s.pods[uid]
		if p == nil || p.state != api.Binding {
			return
		}
		p.permitted, has = true, true
		placing := slices.ContainsFunc(s.unfinished, func(r remainder) bool { return r.gang == p.gang })
		if together = !placing && p.gang.together(); !together {
			return
		}
		for _, q := range p.gang.pods {
			if q.state == api.Binding {
				pods = append(pods, q.uid)
			}
		}
	})
	return pods, together, has
}

// together reports whether kube-scheduler can bind all pods of a gang that have a place.
func (g *gang) together() bool {
	return g.all(&g.unpermitted, func(p *pod) bool { return p.state != api.Binding || p.permitted })
}

// all reports whether is returns true for all pods of a gang. It starts at the index from, which is the last pod for which is
// returned false. This is faster, because all is called for each pod of a large gang.
func (g *gang) all(from *int, is func(*pod) bool) bool {
	for range g.pods {
		if *from >= len(g.pods) {
			*from = 0
		}
		if !is(g.pods[*from]) {
			return false
		}
		*from++
	}
	return true
}

// Withdraw undoes Permit if kube-scheduler couldn't bind the pod.
func (b *Store) Withdraw(uid types.UID) {
	b.locked(func(s *state) {
		if p := s.pods[uid]; p != nil {
			p.permitted, p.claimed = false, false
		}
	})
}

// Refuse releases a gang's places because a pod can't run on its node, for a reason outside the state. The gang avoids the node
// for a while.
func (b *Store) Refuse(uid types.UID, node, reason string) {
	var pods []types.UID
	b.locked(func(s *state) {
		p := s.pods[uid]
		if p == nil || p.state != api.Binding || p.node != node {
			return
		}
		pods = s.refuse(p, reason)
	})
	b.queue.Reject(pods, reason)
	b.signal()
}

// Lower returns a function that reports whether a pod's gang may evict the gang of another pod. The function also returns the
// name of the other gang. ok is false for pods without cells.
func (b *Store) Lower(uid types.UID) func(other types.UID) (gang string, lower, ok bool) {
	return func(other types.UID) (name string, lower, ok bool) {
		b.locked(func(s *state) {
			p, v := s.pods[uid], s.pods[other]
			if p == nil || v == nil || p.gang == nil || v.gang == nil || v.gang == p.gang {
				return
			}
			name, ok = v.gang.vc+"/"+v.gang.name, true
			lower = s.mayEnd(p.gang, v.gang)
		})
		return name, lower, ok
	}
}

// Beside returns the pods that will run on the node where a pod is on trial. They have a place on the node, or their gang has
// reserved cells there. kube-scheduler may already count some of these pods.
func (b *Store) Beside(uid types.UID) (out []*corev1.Pod) {
	b.locked(func(s *state) {
		p := s.pods[uid]
		if p == nil || p.gang == nil || p.trial == "" {
			return
		}
		for _, q := range s.coming[p.trial] {
			if q != p && q.isComing(p.trial) {
				out = append(out, q.object)
			}
		}
	})
	return out
}

// isComing reports whether a pod has a place on a node, or could run there after evictions.
func (p *pod) isComing(node string) bool {
	return p.could == node || p.state == api.Binding && p.node == node
}

// comes records that a pod will run on a node. It drops recorded pods that will no longer run on the node.
func (s *state) comes(p *pod, node string) {
	s.coming[node] = append(slices.DeleteFunc(s.coming[node], func(q *pod) bool { return q == p || !q.isComing(node) }), p)
}

// Tried applies the result of a pod's trial on a node. reason explains why the pod couldn't run there.
func (b *Store) Tried(uid types.UID, node string, could bool, reason string) {
	b.locked(func(s *state) {
		if p := s.pods[uid]; p != nil && p.gang != nil && p.trial == node {
			s.tried(p, could, reason)
		}
	})
	b.signal()
}

// Evict evicts the gangs of the victims because the pod's node is short of a resource other than cells.
func (b *Store) Evict(uid types.UID, victims []types.UID) {
	b.locked(func(s *state) {
		if p := s.pods[uid]; p != nil && p.state == api.Binding {
			s.makeRoom(p, victims)
		}
	})
}
