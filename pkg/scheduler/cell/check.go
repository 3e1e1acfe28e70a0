package cell

import "fmt"

// Check recomputes all derived state, and returns an error for the first difference.
func (s *Scheduler) Check() error {
	s.settle()
	for _, check := range []func() error{s.checkGangs, s.checkSlots, s.checkPods, s.checkPhysical, s.checkBuddies, s.checkVirtual, s.checkQuota} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkGangs checks that every leaf of a gang refers to the gang, and that no leaf belongs to two gangs.
func (s *Scheduler) checkGangs() error {
	using, reserving := map[*pcell]*gang{}, map[*pcell]*gang{}
	virtual := map[*vcell]*gang{}
	for key, g := range s.gangs {
		if g.key != key {
			return fmt.Errorf("gang %s is stored as %s", g.key, key)
		}
		running := 0
		for i := range g.slots {
			sl := &g.slots[i]
			if sl.pod != "" {
				running++
			}
			for k, p := range sl.leaves {
				if p == nil {
					continue
				}
				side := using
				if g.preempting {
					side = reserving
				}
				if other := side[p]; other != nil {
					return fmt.Errorf("leaf %s is in two allocations: %s and %s", p.address, other.key, g.key)
				}
				side[p] = g
				v := sl.leaf(k)
				if v == nil {
					continue
				}
				if v.bound != p {
					return fmt.Errorf("gang %s has %s on %s, which aren't bound", g.key, v.address, p.address)
				}
				if v.owner == g {
					virtual[v] = g
				} else if p.reserving == nil || p.reserving != v.owner {
					return fmt.Errorf("gang %s lost %s, which no other gang has", g.key, v.address)
				}
			}
		}
		if running != g.running || running == 0 && !g.preempting {
			return fmt.Errorf("gang %s has %d pods and counts %d", g.key, running, g.running)
		}
		if g.preempting && len(g.waiting) == 0 {
			return fmt.Errorf("gang %s holds reservations for no pod", g.key)
		}
	}
	for _, ch := range s.chains {
		for _, p := range ch.cells[0] {
			if p.using != using[p] || p.reserving != reserving[p] {
				return fmt.Errorf("leaf %s says that %v uses it and %v reserves it, its gangs say %v and %v", p.address, p.using.keyText(), p.reserving.keyText(), using[p].keyText(), reserving[p].keyText())
			}
		}
	}
	for _, sp := range s.spaces() {
		for _, v := range sp.leaves {
			if v.owner != virtual[v] {
				return fmt.Errorf("virtual leaf %s has owner %s, the gangs say %s", v.address, v.owner.keyText(), virtual[v].keyText())
			}
		}
	}
	for _, g := range s.gangs {
		taken := 0
		for p, u := range using {
			if u == g && p.reserving != nil {
				taken++
			}
		}
		if taken != g.taken {
			return fmt.Errorf("%d leaves of gang %s are reserved for others, it counts %d", taken, g.key, g.taken)
		}
	}
	return nil
}

// checkSlots checks that a slot has the cells of its place, that an open slot has no cells, and that the gang's placement
// agrees.
func (s *Scheduler) checkSlots() error {
	for _, g := range s.gangs {
		if g.placement.Moves != g.moves || len(g.placement.Pods) != len(g.slots) {
			return fmt.Errorf("gang %s has moved %d times and its placement says %d", g.key, g.moves, g.placement.Moves)
		}
		for i := range g.slots {
			sl := &g.slots[i]
			switch {
			case sl.expected:
				return fmt.Errorf("slot %d of gang %s still has to get its cells", i, g.key)
			case sl.open() && sl.pod != "":
				return fmt.Errorf("pod %s of gang %s has no place", sl.pod, g.key)
			case len(sl.leaves) != len(sl.at.Indices):
				return fmt.Errorf("slot %d of gang %s has %d leaves for %d devices", i, g.key, len(sl.leaves), len(sl.at.Indices))
			case !sl.isAt(&g.placement.Pods[i]):
				return fmt.Errorf("slot %d of gang %s is at %v, and its placement says %v", i, g.key, sl.at, g.placement.Pods[i])
			}
			for k, p := range sl.leaves {
				if p == nil {
					continue
				}
				if p.machine.name != sl.at.Node || p.device != sl.at.Indices[k] {
					return fmt.Errorf("slot %d of gang %s has leaf %s for device %d of node %s", i, g.key, p.address, sl.at.Indices[k], sl.at.Node)
				}
				if p.using == g && int(p.slot) != i {
					return fmt.Errorf("leaf %s of slot %d of gang %s says slot %d", p.address, i, g.key, p.slot)
				}
				if (g.space == nil) != (sl.leaf(k) == nil) {
					return fmt.Errorf("slot %d of gang %s has its guarantee, or not, against its gang", i, g.key)
				}
			}
		}
	}
	return nil
}

func (g *gang) keyText() string {
	if g == nil {
		return "no gang"
	}
	return g.key.String()
}

func (s *Scheduler) spaces() []*space {
	var out []*space
	for _, v := range s.vcs {
		out = append(out, v.all()...)
	}
	return out
}

func (s *Scheduler) checkPods() error {
	n := 0
	for _, g := range s.gangs {
		for i := range g.slots {
			if pod := g.slots[i].pod; pod != "" {
				n++
				if at := s.pods[pod]; at.gang != g || at.slot != i {
					return fmt.Errorf("pod %s sits in slot %d of %s and isn't known there", pod, i, g.key)
				}
			}
		}
	}
	if n != len(s.pods) {
		return fmt.Errorf("%d pods are known, %d sit in gangs", len(s.pods), n)
	}
	return nil
}

func (s *Scheduler) checkPhysical() error {
	for _, ch := range s.chains {
		for _, cells := range ch.cells {
			for _, p := range cells {
				bad := 0
				for _, leaf := range ch.cells[0][p.lo:p.hi] {
					if leaf.bad {
						bad++
					}
				}
				if bad != p.badCount {
					return fmt.Errorf("cell %s has %d bad leaves and counts %d", p.address, bad, p.badCount)
				}
				if v := p.bound; v != nil && (v.bound != p || v.level != p.level || v.parent != nil && v.parent.bound != p.parent) {
					return fmt.Errorf("cell %s is bound to %s, and the cells around them are not", p.address, v.address)
				}
			}
		}
		for _, n := range ch.cells[ch.node] {
			if n.wasFree != (n.isFree() && n.badCount == 0) || n.wasClean != (n.wasFree && n.freeLeaves() == n.size()) {
				return fmt.Errorf("node %s is counted wrongly as free or idle", n.address)
			}
		}
		err := ch.view.check(func(node, offset int32) bool { return ch.cells[0][ch.view.nodes[node].lo+offset].idle() })
		if err != nil {
			return fmt.Errorf("view of chain %s: %w", ch.names[ch.top()], err)
		}
	}
	return nil
}

// checkBuddies checks that the free cells match the bindings, and that they are enough for all owed cells.
func (s *Scheduler) checkBuddies() error {
	spaces := s.spaces()
	for _, ch := range s.chains {
		for l, cells := range ch.cells {
			free, owed := 0, 0
			for _, p := range cells {
				split := 0
				for _, sp := range spaces {
					for _, r := range sp.roots {
						if b := r.bound; b != nil && b.chain == ch && b != p && b.level < p.level && b.upTo(p.level) == p {
							split++
						}
					}
				}
				if split != p.split {
					return fmt.Errorf("cell %s has %d preassigned cells in it and counts %d", p.address, split, p.split)
				}
				largest := p.isFree() && (p.parent == nil || !p.parent.isFree())
				if largest {
					free++
				}
				if largest != ch.largest[l].has(p.index) {
					return fmt.Errorf("cell %s is in the wrong list of free cells", p.address)
				}
			}
			for _, sp := range spaces {
				if sp.chain == ch {
					owed += sp.unbound[l]
				}
			}
			if free != ch.free[l] || owed != ch.owed[l] {
				return fmt.Errorf("level %s: %d cells are free and %d owed, counted %d and %d", ch.names[l], free, owed, ch.free[l], ch.owed[l])
			}
		}
		if !ch.feasible(-1, -1, nil) {
			return fmt.Errorf("the free cells of chain %s are not enough for the cells that the virtual clusters own", ch.names[ch.top()])
		}
	}
	return nil
}

// checkVirtual checks that bindings form trees, that virtual clusters don't use more than their cells, and that the views are
// correct.
func (s *Scheduler) checkVirtual() error {
	for _, sp := range s.spaces() {
		unbound := make([]int, len(sp.unbound))
		used := make([]int, len(sp.used))
		for _, r := range sp.roots {
			if r.bound == nil {
				unbound[r.level]++
			}
			if err := r.check(); err != nil {
				return err
			}
		}
		for l := range unbound {
			if unbound[l] != sp.unbound[l] {
				return fmt.Errorf("virtual cluster %s has %d unbound cells at level %d and counts %d", sp.vc.name, unbound[l], l, sp.unbound[l])
			}
		}
		for _, leaf := range sp.leaves {
			if leaf.owner != nil {
				used[leaf.owner.priority]++
			}
		}
		for p := range used {
			if used[p] != sp.used[p] {
				return fmt.Errorf("virtual cluster %s uses %d leaves at priority %d and counts %d", sp.vc.name, used[p], p, sp.used[p])
			}
		}
		err := sp.view.check(func(node, offset int32) bool { return sp.leaves[sp.view.nodes[node].lo+offset].available() })
		if err != nil {
			return fmt.Errorf("view of virtual cluster %s: %w", sp.vc.name, err)
		}
	}
	return nil
}

func (v *vcell) check() error {
	kids := 0
	for _, k := range v.children {
		if k.bound != nil {
			kids++
			if v.bound == nil || k.bound.parent != v.bound {
				return fmt.Errorf("virtual cell %s is bound outside of its parent", k.address)
			}
		}
		if err := k.check(); err != nil {
			return err
		}
	}
	if kids != v.boundKids {
		return fmt.Errorf("virtual cell %s has %d bound children and counts %d", v.address, kids, v.boundKids)
	}
	if v.bound != nil && v.bound.bound != v {
		return fmt.Errorf("virtual cell %s is bound to %s, which doesn't know it", v.address, v.bound.address)
	}
	if v.bound != nil && kids == 0 && v.owner == nil && !v.doomed && !v.isPinned() {
		return fmt.Errorf("virtual cell %s is bound without a reason", v.address)
	}
	if v.need != 0 || v.target != nil {
		return fmt.Errorf("virtual cell %s keeps marks of a mapping", v.address)
	}
	return nil
}

// check compares a view with its leaves.
func (v *view) check(free func(node, offset int32) bool) error {
	if len(v.undo) != 0 {
		return fmt.Errorf("%d places were not released", len(v.undo))
	}
	total := 0
	for i := range v.nodes {
		n := &v.nodes[i]
		have := int32(0)
		for o := range int32(v.leaves[n.top]) {
			if free(int32(i), o) != n.free.has(o) {
				return fmt.Errorf("leaf %d of node %d is shown wrongly", o, i)
			}
			if n.free.has(o) {
				have++
			}
		}
		if n.blocked || n.have != have || n.bucket == nil || n.bucket.have != int(have) || !n.bucket.nodes.has(int32(i)) {
			return fmt.Errorf("node %d is in the wrong list", i)
		}
		total += int(have)
	}
	if total != v.free {
		return fmt.Errorf("%d leaves are free, counted %d", total, v.free)
	}
	for l := range v.upper {
		for i := range v.upper[l] {
			c := &v.upper[l][i]
			hist, sum := make([]int32, len(c.hist)), int32(0)
			for _, n := range v.nodes[c.lo:c.hi] {
				hist[n.have]++
				sum += n.have
			}
			for k := range hist {
				if hist[k] != c.hist[k] || sum != c.free {
					return fmt.Errorf("cell %d of level %d above the node counts wrongly", i, l)
				}
			}
		}
	}
	return nil
}

func (s *Scheduler) checkQuota() error {
	for _, v := range s.vcs {
		users, groups := map[string]int{}, map[string]int{}
		for _, g := range s.gangs {
			if g.key.vc == v.name && g.space != nil && !g.chain.cpu {
				users[g.request.User] += g.gpus()
				groups[g.request.UserGroup] += g.gpus()
			}
		}
		delete(groups, "")
		if len(users) != len(v.userUse) || len(groups) != len(v.groupUse) {
			return fmt.Errorf("virtual cluster %s charges users that hold nothing", v.name)
		}
		for u, n := range users {
			if v.userUse[u] != n {
				return fmt.Errorf("user %s holds %d GPUs in %s and is charged %d", u, n, v.name, v.userUse[u])
			}
		}
		for u, n := range groups {
			if v.groupUse[u] != n {
				return fmt.Errorf("group %s holds %d GPUs in %s and is charged %d", u, n, v.name, v.groupUse[u])
			}
		}
	}
	return nil
}
