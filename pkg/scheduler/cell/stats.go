package cell

// Stats returns the figures of the cluster and of each virtual cluster.
func (s *Scheduler) Stats() Stats {
	s.settle()
	st := Stats{Gangs: len(s.gangs)}
	for _, g := range s.gangs {
		if g.preempting {
			st.PreemptingGangs++
		}
		if g.opportunistic() && g.priority >= MinGuaranteed {
			st.DowngradedGangs++
		}
	}
	for _, ch := range s.chains {
		used := 0
		for _, p := range ch.cells[0] {
			if p.using != nil {
				used++
			}
		}
		if ch.cpu {
			st.CPUCells, st.BadCPUCells, st.UsedCPUCells = st.CPUCells+len(ch.cells[0]), st.BadCPUCells+ch.bad, st.UsedCPUCells+used
		} else {
			st.GPUs, st.BadGPUs, st.UsedGPUs = st.GPUs+len(ch.cells[0]), st.BadGPUs+ch.bad, st.UsedGPUs+used
		}
		for _, top := range ch.cells[ch.top()] {
			countFree(top, &st.FreeByLevel)
		}
	}
	st.VirtualClusters = s.Used()
	for i, v := range s.vcs {
		v.countFree(&st.VirtualClusters[i])
	}
	return st
}

// Used returns the figures of virtual clusters without the figures of free cells. Its run time is proportional to the number of
// gangs.
func (s *Scheduler) Used() []VCStats {
	s.settle()
	out, of := make([]VCStats, len(s.vcs)), make(map[string]*VCStats, len(s.vcs))
	for i, v := range s.vcs {
		out[i] = v.used()
		of[v.name] = &out[i]
	}
	for _, g := range s.gangs {
		st := of[g.key.vc]
		switch {
		case st == nil || !g.opportunistic():
		case g.chain.cpu:
			st.CPU.Opportunistic += g.gpus()
		default:
			st.Opportunistic += g.gpus()
		}
	}
	return out
}

func (v *vc) used() VCStats {
	st := VCStats{Name: v.name}
	for _, sp := range v.all() {
		used := 0
		for _, n := range sp.used {
			used += n
		}
		bad := len(sp.leaves) - used - sp.view.free
		if sp.chain.cpu {
			st.CPU.Guaranteed, st.CPU.Used, st.CPU.Bad = st.CPU.Guaranteed+len(sp.leaves), st.CPU.Used+used, st.CPU.Bad+bad
		} else {
			st.Guaranteed, st.UsedGuaranteed, st.Bad = st.Guaranteed+len(sp.leaves), st.UsedGuaranteed+used, st.Bad+bad
		}
		st.leaves(LeafStats{sp.chain.names[0], len(sp.leaves), used, bad})
	}
	return st
}

func (st *VCStats) leaves(more LeafStats) {
	for i := range st.Leaves {
		if l := &st.Leaves[i]; l.LeafType == more.LeafType {
			l.Guaranteed, l.Used, l.Bad = l.Guaranteed+more.Guaranteed, l.Used+more.Used, l.Bad+more.Bad
			return
		}
	}
	st.Leaves = append(st.Leaves, more)
}

func (v *vc) countFree(st *VCStats) {
	largest, free := 0, 0
	for _, sp := range v.all() {
		for _, r := range sp.roots {
			countFree(r, &st.FreeByLevel)
		}
	}
	for _, f := range st.FreeByLevel {
		largest = max(largest, f.GPUs)
		free += f.GPUs * f.Count
		st.CPU.Free += f.CPUCells * f.Count
	}
	if free > 0 {
		st.Fragmentation = 1 - float64(largest)/float64(free)
	}
}

// freeCell is a physical or virtual cell for countFree.
type freeCell interface {
	freeLeaves() int
	size() int
	typeName() string
	cpu() bool
	eachChild(func(freeCell))
}

// freeIn returns the number of free leaves between lo and hi. They are on the nodes from first to last.
func (v *view) freeIn(first, last, lo, hi int32) int {
	if n := &v.nodes[first]; first == last {
		return n.free.count(int(lo-n.lo), int(hi-n.lo))
	}
	have := 0
	for i := first; i <= last; i++ {
		have += int(v.nodes[i].have)
	}
	return have
}

// countFree adds the largest free cells in c to a list. They may include c.
func countFree(c freeCell, to *[]LevelCount) {
	free := c.freeLeaves()
	if free == 0 {
		return
	}
	if free < c.size() {
		c.eachChild(func(k freeCell) { countFree(k, to) })
		return
	}
	for i := range *to {
		if (*to)[i].CellType == c.typeName() {
			(*to)[i].Count++
			return
		}
	}
	*to = append(*to, levelCount(c.typeName(), c.size(), c.cpu()))
}

func levelCount(name string, leaves int, cpu bool) LevelCount {
	if cpu {
		return LevelCount{CellType: name, CPUCells: leaves, Count: 1}
	}
	return LevelCount{CellType: name, GPUs: leaves, Count: 1}
}

func (p *pcell) freeLeaves() int {
	leaves := p.chain.cells[0]
	return p.chain.view.freeIn(leaves[p.lo].node.index, leaves[p.hi-1].node.index, p.lo, p.hi)
}
func (p *pcell) size() int        { return int(p.hi - p.lo) }
func (p *pcell) typeName() string { return p.chain.names[p.level] }
func (p *pcell) cpu() bool        { return p.chain.cpu }
func (p *pcell) eachChild(f func(freeCell)) {
	for _, c := range p.children {
		f(c)
	}
}

func (v *vcell) freeLeaves() int {
	leaves := v.space.leaves
	return v.space.view.freeIn(leaves[v.lo].node, leaves[v.hi-1].node, v.lo, v.hi)
}
func (v *vcell) size() int        { return int(v.hi - v.lo) }
func (v *vcell) typeName() string { return v.space.chain.names[v.level] }
func (v *vcell) cpu() bool        { return v.space.chain.cpu }
func (v *vcell) eachChild(f func(freeCell)) {
	for _, c := range v.children {
		f(c)
	}
}
