package cell

// Stats counts.
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
	for _, v := range s.vcs {
		st.VirtualClusters = append(st.VirtualClusters, s.vcStats(v))
	}
	return st
}

func (s *Scheduler) vcStats(v *vc) VCStats {
	st := VCStats{Name: v.name}
	largest, free := 0, 0
	for _, sp := range v.all() {
		used, bad := 0, 0
		for _, leaf := range sp.leaves {
			if leaf.owner != nil {
				used++
			} else if !leaf.available() {
				bad++
			}
		}
		if sp.chain.cpu {
			st.CPU.Guaranteed, st.CPU.Used, st.CPU.Bad = st.CPU.Guaranteed+len(sp.leaves), st.CPU.Used+used, st.CPU.Bad+bad
		} else {
			st.Guaranteed, st.UsedGuaranteed, st.Bad = st.Guaranteed+len(sp.leaves), st.UsedGuaranteed+used, st.Bad+bad
		}
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
	for _, g := range s.gangs {
		switch {
		case g.key.vc != v.name || !g.opportunistic():
		case g.chain.cpu:
			st.CPU.Opportunistic += g.gpus()
		default:
			st.Opportunistic += g.gpus()
		}
	}
	return st
}

// freeCell is a physical or a virtual cell whose free pieces are counted.
type freeCell interface {
	freeLeaves() int
	size() int
	typeName() string
	cpu() bool
	eachChild(func(freeCell))
}

// countFree adds the largest free cells below and including c.
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

// levelCount is one cell of a type.
func levelCount(name string, leaves int, cpu bool) LevelCount {
	if cpu {
		return LevelCount{CellType: name, CPUCells: leaves, Count: 1}
	}
	return LevelCount{CellType: name, GPUs: leaves, Count: 1}
}

func (p *pcell) freeLeaves() int {
	n := 0
	for _, leaf := range p.chain.cells[0][p.lo:p.hi] {
		if leaf.idle() {
			n++
		}
	}
	return n
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
	n := 0
	for _, leaf := range v.space.leaves[v.lo:v.hi] {
		if leaf.available() {
			n++
		}
	}
	return n
}
func (v *vcell) size() int        { return int(v.hi - v.lo) }
func (v *vcell) typeName() string { return v.space.chain.names[v.level] }
func (v *vcell) cpu() bool        { return v.space.chain.cpu }
func (v *vcell) eachChild(f func(freeCell)) {
	for _, c := range v.children {
		f(c)
	}
}
