package cell

import (
	"slices"
	"strings"
)

// Gangs returns all gangs, sorted by virtual cluster and name.
func (s *Scheduler) Gangs() []GangStatus {
	s.claimExpected()
	out := make([]GangStatus, 0, len(s.gangs))
	for _, g := range s.gangs {
		out = append(out, g.status())
	}
	slices.SortFunc(out, func(a, b GangStatus) int {
		if a.VC != b.VC {
			return compare(a.VC, b.VC)
		}
		return compare(a.Name, b.Name)
	})
	return out
}

// Gang returns the status of a gang, or false if the gang has no cells.
func (s *Scheduler) Gang(vc, name string) (GangStatus, bool) {
	s.claimExpected()
	g := s.gangs[gangKey{vc, name}]
	if g == nil {
		return GangStatus{}, false
	}
	return g.status(), true
}

// RequestOf returns the request of a gang that has or has reserved cells. It returns nil if the gang has no cells. Callers must
// not change the request.
func (s *Scheduler) RequestOf(vc, name string) *Request {
	s.claimExpected()
	if g := s.gangs[gangKey{vc, name}]; g != nil {
		return g.request
	}
	return nil
}

// ReservesGPUMachines reports whether gangs must not use Request.Alternative.
func (s *Scheduler) ReservesGPUMachines() bool { return s.config.ReserveGPUMachines }

// Brief returns the status of a gang without its places, pods and size. Its run time doesn't depend on the size of the gang.
func (s *Scheduler) Brief(vc, name string) (GangStatus, bool) {
	s.claimExpected()
	g := s.gangs[gangKey{vc, name}]
	if g == nil {
		return GangStatus{}, false
	}
	return g.brief(), true
}

func (g *gang) brief() GangStatus {
	st := GangStatus{
		Name: g.key.name, VC: g.key.vc, Priority: g.priority, Order: g.order, Preemptor: g.preemptor,
		User: g.request.User, UserGroup: g.request.UserGroup, State: "Allocated",
		Downgraded: g.opportunistic() && g.priority >= MinGuaranteed,
	}
	switch {
	case g.preempting:
		st.State = "Preempting"
	case g.taken > 0:
		st.State = "BeingPreempted"
	}
	return st
}

func (g *gang) status() GangStatus {
	st := g.brief()
	st.PhysicalPlacement = map[string][]int32{}
	if st.GPUs = g.gpus(); g.chain.cpu {
		st.GPUs, st.CPUCells = 0, st.GPUs
	}
	if g.preempting {
		st.PreemptingPods = slices.Clone(g.waiting)
	}
	for i := range g.slots {
		sl := &g.slots[i]
		if sl.pod != "" {
			st.AllocatedPods = append(st.AllocatedPods, sl.pod)
		}
		if sl.open() {
			continue
		}
		st.PhysicalPlacement[sl.at.Node] = append(st.PhysicalPlacement[sl.at.Node], sl.at.Indices...)
		for _, v := range sl.virtual {
			if v == nil {
				continue
			}
			if st.VirtualPlacement == nil {
				st.VirtualPlacement = map[string][]string{}
			}
			st.VirtualPlacement[v.root.address] = append(st.VirtualPlacement[v.root.address], v.address)
		}
	}
	for _, indices := range st.PhysicalPlacement {
		slices.Sort(indices)
	}
	return st
}

// Physical returns the physical cells. The top cells are in the order of the configuration.
func (s *Scheduler) Physical() []CellStatus {
	s.settle()
	var out []CellStatus
	for _, ch := range s.chains {
		for _, p := range ch.cells[ch.top()] {
			out = append(out, p.status())
		}
	}
	return out
}

const freePriority = -2

func (p *pcell) status() CellStatus {
	st := p.shallow()
	for _, c := range p.children {
		st.CellChildren = append(st.CellChildren, c.status())
	}
	st.sumUp()
	if v := p.bound; v != nil {
		st.VC = v.space.vc.name
		shallow := v.shallow()
		shallow.CellState, shallow.CellPriority = st.CellState, st.CellPriority
		st.VirtualCell = &shallow
	}
	return st
}

// shallow returns the status of a cell without its children and its virtual cell. It sets the state and the priority only for a
// leaf.
func (p *pcell) shallow() CellStatus {
	ch := p.chain
	st := CellStatus{CellType: ch.names[p.level], IsNodeLevel: p.level == ch.node, CellAddress: p.address, CellState: "Free", CellHealthiness: health(p.badCount), CellPriority: freePriority}
	if p.parent == nil {
		st.LeafCellType = ch.names[0]
	}
	if p.level > 0 {
		return st
	}
	switch {
	case p.reserving != nil && p.using != nil:
		st.CellState, st.CellPriority = "Reserving", p.reserving.priority
	case p.reserving != nil:
		st.CellState, st.CellPriority = "Reserved", p.reserving.priority
	case p.using != nil:
		st.CellState, st.CellPriority = "Used", p.using.effective()
	}
	return st
}

// effective returns the gang's current priority. It returns Opportunistic if the gang runs without a guarantee.
func (g *gang) effective() int {
	if g.opportunistic() {
		return Opportunistic
	}
	return g.priority
}

func health(bad int) string {
	if bad > 0 {
		return "Bad"
	}
	return "Healthy"
}

// sumUp sets a cell's state to the busiest state of its children, and its priority to their highest priority.
func (st *CellStatus) sumUp() {
	for i := range st.CellChildren {
		c := &st.CellChildren[i]
		st.CellPriority = max(st.CellPriority, c.CellPriority)
		if busy(c.CellState) > busy(st.CellState) {
			st.CellState = c.CellState
		}
	}
}

func busy(state string) int {
	return slices.Index([]string{"Free", "Reserved", "Reserving", "Used"}, state)
}

// Virtual returns the virtual cells of each virtual cluster. The physical cells of its opportunistic gangs are additional
// entries.
func (s *Scheduler) Virtual() map[string][]CellStatus {
	s.settle()
	out := map[string][]CellStatus{}
	for _, v := range s.vcs {
		cells := []CellStatus{}
		for _, sp := range v.all() {
			for _, r := range sp.inOrder() {
				cells = append(cells, r.status())
			}
		}
		out[v.name] = append(cells, s.borrowed(v)...)
	}
	return out
}

// all returns the spaces of a virtual cluster. Spaces of pinned cells come last.
func (v *vc) all() []*space {
	out := slices.Clone(v.spaces)
	var pins []string
	for id := range v.pinned {
		pins = append(pins, id)
	}
	slices.Sort(pins)
	for _, id := range pins {
		out = append(out, v.pinned[id])
	}
	return out
}

// inOrder returns the preassigned cells of the space, sorted by address.
func (sp *space) inOrder() []*vcell {
	roots := slices.Clone(sp.roots)
	slices.SortFunc(roots, func(a, b *vcell) int {
		if len(a.address) != len(b.address) {
			return len(a.address) - len(b.address)
		}
		return strings.Compare(a.address, b.address)
	})
	return roots
}

func (v *vcell) status() CellStatus {
	st := v.shallow()
	for _, c := range v.children {
		st.CellChildren = append(st.CellChildren, c.status())
	}
	st.sumUp()
	if v.level == 0 && v.owner != nil {
		st.CellPriority = v.owner.priority
		st.CellState = "Used"
	}
	if p := v.bound; p != nil {
		shallow := p.shallow()
		if v.level == 0 && v.owner != nil {
			st.CellState = shallow.CellState
		}
		shallow.CellState, shallow.CellPriority = st.CellState, st.CellPriority
		st.PhysicalCell = &shallow
	}
	return st
}

func (v *vcell) shallow() CellStatus {
	ch := v.space.chain
	st := CellStatus{CellType: ch.names[v.level], IsNodeLevel: v.level == ch.node, CellAddress: v.address, CellState: "Free", CellHealthiness: "Healthy", CellPriority: freePriority}
	if v.parent == nil {
		st.LeafCellType = ch.names[0]
	}
	if v.bound != nil {
		st.CellHealthiness = health(v.bound.badCount)
	}
	return st
}

// borrowed returns the status of the physical leaves that a virtual cluster's opportunistic gangs use.
func (s *Scheduler) borrowed(v *vc) []CellStatus {
	var out []CellStatus
	for _, ch := range s.chains {
		for _, p := range ch.cells[0] {
			if g := p.using; g != nil && g.opportunistic() && g.key.vc == v.name {
				shallow := p.shallow()
				out = append(out, CellStatus{
					LeafCellType: ch.names[0], CellType: ch.names[0], CellAddress: p.address + "-opp", CellState: "Used",
					CellHealthiness: shallow.CellHealthiness, CellPriority: Opportunistic, PhysicalCell: &shallow,
				})
			}
		}
	}
	return out
}

// PreemptedBy reports whether one gang has reserved cells that another gang uses. by is the gang with the reservation.
func (s *Scheduler) PreemptedBy(vc, gang, byVC, by string) bool {
	v, g := s.gangs[gangKey{vc, gang}], s.gangs[gangKey{byVC, by}]
	if v == nil || g == nil {
		return false
	}
	for i := range v.slots {
		for _, p := range v.slots[i].leaves {
			if p != nil && p.reserving == g {
				return true
			}
		}
	}
	return false
}
