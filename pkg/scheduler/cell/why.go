package cell

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// maxHolders is the maximum number of gangs that an explanation names.
const maxHolders = 10

// Why explains why a request doesn't start now. It doesn't change the state.
func (s *Scheduler) Why(r *Request) (e Explanation) {
	s.settle()
	if r != nil && r.VirtualCluster != "" && s.byVC[r.VirtualCluster] == nil {
		return Explanation{Code: NoVirtualCluster, Sentence: fmt.Sprintf("The virtual cluster %s doesn't exist; there are %s.", r.VirtualCluster, s.vcNames())}
	}
	if err := s.malformed(r); err != nil {
		return Explanation{Code: "Malformed", Sentence: sentence(err.Error())}
	}
	defer s.keepMemory()()
	e.GPUs = s.leavesOf(r)
	if s.WantsCPU(r) {
		defer e.inCPUCells()
	}
	for _, set := range r.Sets() {
		e.Pods += set.Count
	}
	v := s.byVC[r.VirtualCluster]
	targets, err := s.targets(v, r)
	if err != nil {
		e.Code, e.Sentence = Unsatisfiable, sentence(err.Error())
		return e
	}
	s.figures(&e, r, targets)
	if g := s.gangs[gangKey{r.VirtualCluster, r.Gang}]; g != nil {
		if what := g.differs(r); what != "" {
			e.Code, e.Sentence = "NameTaken", sentence(g.otherText(what))
			return e
		}
		s.whyGang(&e, g)
		return e
	}
	p, d := s.find(r, nil)
	switch {
	case p != nil && len(p.victims) == 0:
		e.Code, e.Sentence = Ready, fmt.Sprintf("The gang can start now on %s.", nodesText(p.gang))
		e.Nodes = nodesOf(p.gang)
		return e
	case p != nil:
		e.Code = Preemption
		e.Victims = s.podsOf(p.victims)
		e.Sentence = fmt.Sprintf("The gang can start once %s.", goneText(p.victims))
		return e
	case d.Result == Refuse:
		e.Code, e.Sentence = Unsatisfiable, sentence(d.Reason)
		return e
	}
	if reason := s.overQuota(v, r); reason != "" {
		e.Code, e.Sentence = QuotaUsed, sentence(reason)
		return e
	}
	s.whyWait(&e, r, targets)
	return e
}

// inCPUCells moves the figures from the fields for GPUs to the fields for CPU cells.
func (e *Explanation) inCPUCells() {
	e.CPUCells, e.OwnedCPUCells, e.UsedCPUCells, e.FreeCPUCells = e.GPUs, e.OwnedGPUs, e.UsedGPUs, e.FreeGPUs
	e.GPUs, e.OwnedGPUs, e.UsedGPUs, e.FreeGPUs = 0, 0, 0, 0
	for i := range e.Holders {
		e.Holders[i].GPUs, e.Holders[i].CPUCells = 0, e.Holders[i].GPUs
	}
	for i := range e.Missing {
		e.Missing[i].GPUs, e.Missing[i].CPUCells = 0, e.Missing[i].GPUs
	}
	if e.Smaller != nil {
		e.Smaller.GPUsPerPod, e.Smaller.CPUCellsPerPod = 0, e.Smaller.GPUsPerPod
	}
}

// keepMemory returns a function that restores the recorded preemptions. It is used for decisions that must not change this
// record.
func (s *Scheduler) keepMemory() func() {
	before := make([]pressure, len(s.chains))
	for i, ch := range s.chains {
		before[i] = slices.Clone(ch.pressure)
	}
	return func() {
		for i, ch := range s.chains {
			ch.pressure = before[i]
		}
	}
}

// whyGang explains the state of a gang with a place or with reserved cells.
func (s *Scheduler) whyGang(e *Explanation, g *gang) {
	victims := s.victimsOf(g)
	switch {
	case g.preempting && len(victims) > 0:
		e.Code = Preemption
		e.Victims = s.podsOf(victims)
		e.Sentence = fmt.Sprintf("The gang has reserved cells on %s and starts once %s.", nodesText(g), goneText(victims))
	case g.taken > 0:
		e.Code = "BeingPreempted"
		e.Sentence = "The gang is being preempted by a guaranteed one."
	case g.preempting:
		e.Code, e.Sentence = Ready, fmt.Sprintf("The cells of the gang on %s are now free; it starts with the next attempt.", nodesText(g))
	default:
		e.Code = Ready
		e.Sentence = fmt.Sprintf("The gang is placed on %s; %d of its %d pods exist.", nodesText(g), g.running, len(g.slots))
	}
}

func goneText(victims []*gang) string {
	if len(victims) == 1 {
		return fmt.Sprintf("%s is gone", victims[0].key)
	}
	return fmt.Sprintf("%d gangs are gone, among them %s", len(victims), victims[0].key)
}

func nodesText(g *gang) string {
	names := nodesOf(g)
	switch len(names) {
	case 0:
		return "no node"
	case 1:
		return "node " + names[0]
	}
	return fmt.Sprintf("%d nodes, %s first", len(names), names[0])
}

func nodesOf(g *gang) []string {
	var names []string
	for i := range g.slots {
		if n := g.slots[i].at.Node; n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// figures sets the numbers of owned, used and free leaves for the priority of the request.
func (s *Scheduler) figures(e *Explanation, r *Request, targets []target) {
	for _, t := range targets {
		e.OwnedGPUs += t.size()
		e.FreeGPUs += t.freeAt(r.Priority)
		if t.space != nil {
			for _, root := range t.space.roots {
				countFree(root, &e.Free)
			}
			continue
		}
		for _, top := range t.chain.cells[t.chain.top()] {
			countFree(top, &e.Free)
		}
	}
	e.UsedGPUs = e.OwnedGPUs - e.FreeGPUs - s.badIn(targets)
}

// badIn returns the number of bad, unused leaves in the targets.
func (s *Scheduler) badIn(targets []target) int {
	bad := 0
	for _, t := range targets {
		if t.space == nil {
			for _, p := range t.chain.cells[0] {
				if p.bad && p.using == nil && p.reserving == nil {
					bad++
				}
			}
			continue
		}
		for _, v := range t.space.leaves {
			if v.owner == nil && !v.available() {
				bad++
			}
		}
	}
	return bad
}

func (s *Scheduler) whyWait(e *Explanation, r *Request, targets []target) {
	where := "The cluster"
	if r.Priority >= MinGuaranteed {
		where = "Virtual cluster " + r.VirtualCluster
	}
	unit, bad := unitOf(targets), s.badIn(targets)
	held := false
	for _, t := range targets {
		if t.space == nil && t.chain.pressure[t.policy] > 0 {
			_, fits := t.place(t.shape)
			held = held || fits
		}
	}
	e.Holders = s.holders(r, targets)
	e.Smaller = s.smaller(r, targets)
	e.Missing = missing(targets, e)
	switch {
	case held:
		e.Code = HeldBack
		e.Sentence = fmt.Sprintf("The gang would fit, but opportunistic gangs are delayed for a while because guaranteed gangs had to preempt some; %d %ss are idle.", e.FreeGPUs, unit)
	case e.FreeGPUs < e.GPUs && e.FreeGPUs+bad >= e.GPUs:
		e.Code = BadNodes
		more := "1 more is"
		if bad > 1 {
			more = fmt.Sprintf("%d more are", bad)
		}
		e.Sentence = fmt.Sprintf("%s has %d %ss free for the gang's %d; %s on bad nodes.", where, e.FreeGPUs, unit, e.GPUs, more)
	case e.FreeGPUs < e.GPUs:
		e.Code = NoCapacity
		e.Sentence = fmt.Sprintf("%s has %d of %d %ss free for jobs of priority %d, but the gang requests %d.", where, e.FreeGPUs, e.OwnedGPUs, unit, r.Priority, e.GPUs)
	case bad > 0:
		e.Code = BadNodes
		e.Sentence = fmt.Sprintf("%s has %d %ss free, but no cells that fit the gang without bad nodes (%d bad %[3]ss).", where, e.FreeGPUs, unit, bad)
	default:
		e.Code = Fragmented
		e.Sentence = fmt.Sprintf("%s has %d %ss free for the gang's %d, but not in cells that fit it (%s).", where, e.FreeGPUs, unit, e.GPUs, levelsText(e.Free))
	}
	if e.Smaller != nil {
		e.Sentence += fmt.Sprintf(promise, plural.Of(e.Smaller.Pods, "pod"), plural.Of(e.Smaller.GPUsPerPod, unit))
	}
}

// promise is the last sentence of an explanation with a Smaller.
const promise = " %s of %s would start now."

// WithoutSmaller removes the sentence about a smaller gang from a text. This sentence considers only cells, so it is wrong for
// gangs that may not run on all nodes.
func (e *Explanation) WithoutSmaller(text string) string {
	if e.Smaller == nil {
		return text
	}
	unit, n := "GPU", e.Smaller.GPUsPerPod
	if e.Smaller.CPUCellsPerPod > 0 {
		unit, n = "CPU cell", e.Smaller.CPUCellsPerPod
	}
	return strings.Replace(text, fmt.Sprintf(promise, plural.Of(e.Smaller.Pods, "pod"), plural.Of(n, unit)), "", 1)
}

func levelsText(free []LevelCount) string {
	if len(free) == 0 {
		return "nothing idle"
	}
	text := ""
	for i, f := range free {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d %s", f.Count, f.CellType)
	}
	return text + " idle"
}

// holders returns the gangs on cells that the request can't take.
func (s *Scheduler) holders(r *Request, targets []target) []Holder {
	var out []Holder
	for _, g := range s.gangs {
		for _, t := range targets {
			if t.space != nil && g.space == t.space && g.priority >= r.Priority || t.space == nil && g.chain == t.chain {
				out = append(out, Holder{VC: g.key.vc, Gang: g.key.name, Priority: g.effective(), GPUs: g.gpus()})
			}
		}
	}
	slices.SortFunc(out, func(a, b Holder) int {
		return cmp.Or(b.GPUs-a.GPUs, cmp.Compare(a.VC, b.VC), cmp.Compare(a.Gang, b.Gang))
	})
	return out[:min(len(out), maxHolders)]
}

// smaller returns the largest part of a gang with equal pods, or the largest single pod, that would start now.
func (s *Scheduler) smaller(r *Request, targets []target) *Smaller {
	sets := r.Sets()
	if len(sets) != 1 || len(r.Root.Children) > 0 || r.Root.Within != "" {
		return nil
	}
	n := 0
	for _, t := range targets {
		n = max(n, t.shape.sets[0].n)
	}
	lo, hi := 0, sets[0].Count
	for lo < hi-1 {
		if mid := (lo + hi) / 2; s.fitsNow(targets, mid, n) {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo > 0 {
		return &Smaller{Pods: lo, GPUsPerPod: n}
	}
	for g := min(n, maxOnNode(targets)+1) - 1; g > 0; g-- {
		if s.fitsNow(targets, 1, g) {
			return &Smaller{Pods: 1, GPUsPerPod: g}
		}
	}
	if n > 0 && sets[0].Count > 1 && s.fitsNow(targets, 1, n) {
		return &Smaller{Pods: 1, GPUsPerPod: n}
	}
	return nil
}

func maxOnNode(targets []target) int {
	most := 0
	for _, t := range targets {
		most = max(most, t.chain.leaves[t.chain.node])
	}
	return most
}

func (s *Scheduler) fitsNow(targets []target, pods, gpus int) bool {
	probe := Request{Root: Group{Pods: []PodSet{{Count: pods, Cells: gpus}}}}
	for _, t := range targets {
		sh, err := t.chain.shapeOf(&probe)
		if err != nil {
			continue
		}
		if spots, ok := t.place(sh); ok && (t.space != nil || !s.wanted(t.chain, t.policy, spots)) {
			return true
		}
	}
	return false
}

// missing returns how many more cells the request needs, in cells of the lowest level that can hold a pod.
func missing(targets []target, e *Explanation) []LevelCount {
	if len(targets) == 0 || len(targets[0].shape.sets) != 1 {
		return nil
	}
	t := targets[0]
	set := t.shape.sets[0]
	level := 0
	for level < t.chain.node && t.chain.leaves[level] < set.n {
		level++
	}
	have := 0
	if e.Smaller != nil && e.Smaller.GPUsPerPod == set.n {
		have = e.Smaller.Pods
	}
	return []LevelCount{{CellType: t.chain.names[level], GPUs: t.chain.leaves[level], Count: set.count - have}}
}

func sentence(text string) string {
	if text == "" {
		return ""
	}
	if c := text[0]; c >= 'a' && c <= 'z' {
		text = string(c-'a'+'A') + text[1:]
	}
	return text + "."
}
