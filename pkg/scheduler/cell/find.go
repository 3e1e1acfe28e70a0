package cell

import (
	"errors"
	"fmt"
)

// find searches for a place for a gang. It tries the chains in order, and prefers a place that requires no evictions.
func (s *Scheduler) find(r *Request, suggested Nodes) (*plan, Decision) {
	v := s.byVC[r.VirtualCluster]
	targets, err := s.targets(v, r)
	if err != nil {
		return nil, Decision{Result: Refuse, Reason: err.Error()}
	}
	if reason := s.overQuota(v, r); reason != "" {
		if !s.couldFitAny(targets) {
			return nil, Decision{Result: Refuse, Reason: s.impossible(r, targets)} // the request couldn't be met even within the quota
		}
		return nil, s.quotaDecision(v, r, reason)
	}
	var best *plan
	for _, t := range targets {
		if p := s.tryFree(t, r, suggested); p != nil && (best == nil || len(best.victims) > 0 && len(p.victims) == 0) {
			best = p
		}
		if best != nil && len(best.victims) == 0 {
			return best, Decision{}
		}
	}
	if best != nil {
		return best, Decision{}
	}
	if r.Priority >= MinGuaranteed {
		for _, t := range targets {
			if p := s.tryPreempt(t, r, suggested); p != nil {
				return p, Decision{}
			}
		}
	}
	return nil, s.noPlace(r, targets, suggested)
}

// target is a set of cells for a search: a space of virtual cells or, if space is nil, the whole chain.
type target struct {
	space  *space
	chain  *chain
	shape  *shape
	policy int // the policy of the virtual cluster, as an index in Policies
}

func (t target) view() *view {
	if t.space != nil {
		return t.space.view
	}
	return t.chain.view
}

// place returns spots for a shape in the free leaves of the target's view. It returns false if the shape doesn't fit.
func (t target) place(sh *shape) ([]spot, bool) {
	v := t.view()
	v.classFirst = t.space == nil && t.chain.spares(&Policies[t.policy])
	return v.place(sh)
}

// targets returns the targets that the request may use. Without such a target, the error explains why.
func (s *Scheduler) targets(v *vc, r *Request) ([]target, error) {
	var spaces []*space
	switch {
	case r.PinnedCell != "":
		sp := v.pinned[r.PinnedCell]
		if sp == nil {
			return nil, fmt.Errorf("virtual cluster %s has no pinned cell %s", v.name, r.PinnedCell)
		}
		if r.Priority < MinGuaranteed {
			return nil, fmt.Errorf("an opportunistic gang can't use the pinned cell %s; give it a priority of 0 or more", r.PinnedCell)
		}
		spaces = []*space{sp}
	case r.Priority >= MinGuaranteed:
		spaces = v.spaces
	default:
		for _, ch := range s.chains {
			spaces = append(spaces, &space{chain: ch})
		}
	}
	var out []target
	var last error
	typed := false
	for _, sp := range spaces {
		if r.PinnedCell == "" && !sp.chain.offers(r.LeafType) {
			continue
		}
		typed = true
		sh, err := sp.chain.shapeOf(r)
		if err != nil {
			last = err
			continue
		}
		t := target{chain: sp.chain, shape: sh, policy: v.policy}
		if sp.vc != nil {
			t.space = sp
		}
		out = append(out, t)
	}
	if len(out) > 0 {
		return out, nil
	}
	if typed && last != nil {
		return nil, last
	}
	return nil, s.noTarget(v, r)
}

// offers reports whether a request for a leaf type may use the chain. A request without a leaf type needs GPUs.
func (ch *chain) offers(leafType string) bool {
	return leafType == ch.names[0] || leafType == "" && !ch.cpu
}

func (s *Scheduler) noTarget(v *vc, r *Request) error {
	known := map[string]bool{}
	for _, ch := range s.chains {
		known[ch.names[0]] = true
	}
	switch {
	case r.LeafType != "" && !known[r.LeafType]:
		return fmt.Errorf("the cluster has no leaf cell type %s", r.LeafType)
	case r.LeafType != "" && r.Priority >= MinGuaranteed:
		return fmt.Errorf("virtual cluster %s has no cells of the type %s", v.name, r.LeafType)
	case r.LeafType == "" && r.PinnedCell == "" && r.Priority < MinGuaranteed:
		return errors.New("the cluster has no GPUs")
	case len(v.spaces) > 0 && r.Priority >= MinGuaranteed:
		return fmt.Errorf("virtual cluster %s owns no GPUs; name another, or use priority -1", v.name)
	}
	return fmt.Errorf("virtual cluster %s has only pinned cells; name one with pinnedCellId, or use priority -1", v.name)
}

// tryFree searches for a place in the free leaves of the target. It returns nil if no place is found.
func (s *Scheduler) tryFree(t target, r *Request, suggested Nodes) *plan {
	v := t.view()
	if t.shape.total > v.free {
		return nil
	}
	blocked := s.blockUnoffered(t, suggested, nil)
	defer func() { unblock(v, blocked) }()
	for range mapTries {
		spots, ok := s.wholeNodes(t)
		if !ok {
			spots, ok = t.place(t.shape)
		}
		if !ok {
			return nil
		}
		if t.space == nil && s.holdsBack(t.chain, t.policy, spots) {
			// A gang that fits on one node may use the idle leaves beside other gangs. Larger gangs would be spread over racks.
			if t.shape.total > t.chain.leaves[t.chain.node] {
				return nil
			}
			blocked = append(blocked, t.chain.blockClean()...)
			if spots, ok = t.place(t.shape); !ok {
				return nil
			}
		}
		g := s.newGang(t, r, spots)
		if t.space == nil {
			return s.finish(g, nil)
		}
		if s.mapLeaves(t.space, g.slots, suggested) {
			return s.finish(g, nil)
		}
		// The mapping failed because hardware is bad or not offered. Search on other nodes.
		for i := range spots {
			if t.space.isNowhere(spots[i].node) {
				blocked = append(blocked, t.space.blockRoot(t.space.rootOf(spots[i].node))...)
			}
		}
	}
	return nil
}

// mapTries is the maximum number of attempts to find virtual cells that can be mapped to hardware.
const mapTries = 4

func (sp *space) rootOf(node int32) *vcell { return sp.leaves[sp.view.nodes[node].lo].root }

// isNowhere reports whether a node is in an unbound preassigned cell. It returns false for blocked nodes.
func (sp *space) isNowhere(node int32) bool {
	return sp.rootOf(node).bound == nil && !sp.view.nodes[node].blocked
}

// blockRoot excludes all nodes of a preassigned cell from the search. It returns the newly excluded nodes.
func (sp *space) blockRoot(root *vcell) []int32 {
	var out []int32
	for i := sp.leaves[root.lo].node; i <= sp.leaves[root.hi-1].node; i++ {
		if !sp.view.nodes[i].blocked {
			sp.view.block(i, true)
			out = append(out, i)
		}
	}
	return out
}

// blockUnoffered excludes nodes on hardware that isn't offered. It returns the newly excluded nodes.
func (s *Scheduler) blockUnoffered(t target, suggested Nodes, blocked []int32) []int32 {
	if suggested == nil {
		return blocked
	}
	v := t.view()
	for i := range v.nodes {
		n := &v.nodes[i]
		var m *machine
		if t.space == nil {
			m = t.chain.cells[t.chain.node][i].machine
		} else {
			m = t.space.machineOf(n)
		}
		if m != nil && !suggested.Has(m.name) && !n.blocked {
			v.block(int32(i), true)
			blocked = append(blocked, int32(i))
		}
	}
	return blocked
}

// machineOf returns the machine of a bound node, or nil for an unbound node.
func (sp *space) machineOf(n *viewNode) *machine {
	for c := sp.leaves[n.lo]; c != nil && c.level <= int(n.top); c = c.parent {
		if c.level == int(n.top) && c.bound != nil {
			return c.bound.machine
		}
	}
	return nil
}

func unblock(v *view, nodes []int32) {
	for _, i := range nodes {
		v.block(i, false)
	}
}
