package cell

// downgradable reports whether the gang may lose its guarantee and continue when another gang needs its virtual cells.
func (g *gang) downgradable() bool {
	return g.request.LazyPreemption && !g.preempting && g.taken == 0
}

func (sp *space) hasLazy(below int) bool {
	for _, v := range sp.leaves {
		if o := v.owner; o != nil && o.priority < below && o.downgradable() {
			return true
		}
	}
	return false
}

// mayTake reports whether the search may use the cells of gang g.
func (p *preemption) mayTake(g *gang) bool {
	return g.priority < p.priority && (!p.lazy || g.downgradable())
}
