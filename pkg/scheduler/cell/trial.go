package cell

import "slices"

// Trial tests whether hypothetical gangs would start. A gang that would start keeps its cells until End, so that later gangs of
// the trial can't use them. Until End, the caller must not use the scheduler otherwise.
type Trial struct {
	s            *Scheduler
	gangs        []*gang
	memory       func()
	epoch, order uint64
}

// Trial starts a trial. The caller must call End.
func (s *Scheduler) Trial() *Trial {
	s.settle()
	return &Trial{s: s, memory: s.keepMemory(), epoch: s.epoch, order: s.order}
}

// End releases all cells of the trial. A trial doesn't affect later decisions.
func (t *Trial) End() {
	for _, g := range slices.Backward(t.gangs) {
		t.s.leave(g)
	}
	t.s.settle()
	t.memory()
	t.s.epoch, t.s.order = t.epoch, t.order
}

// Start assigns cells to a new gang if the gang would start now without evictions. It reports whether the gang would start, and
// returns its nodes. nodes are the permitted nodes. nil means all nodes.
func (t *Trial) Start(r *Request, nodes Nodes) (on []string, starts bool) {
	s := t.s
	s.settle()
	if s.malformed(r) != nil || s.gangs[gangKey{r.VirtualCluster, r.Gang}] != nil {
		return nil, false
	}
	p, _ := s.find(r, nodes)
	if p == nil || len(p.victims) > 0 {
		return nil, false
	}
	if len(p.demoted)+len(p.cancels) == 0 { // for other plans, End couldn't restore the guarantees and reservations of other gangs
		s.order = max(s.order, p.gang.order)
		s.enter(p.gang)
		t.gangs = append(t.gangs, p.gang)
	}
	return nodesOf(p.gang), true
}

// Why is like Scheduler.Why, for a new gang that may only run on nodes. nil means all nodes.
func (t *Trial) Why(r *Request, nodes Nodes) Explanation {
	s := t.s
	e := s.Why(r)
	if nodes == nil {
		return e
	}
	e.Sentence, e.Smaller = e.WithoutSmaller(e.Sentence), nil
	if e.Code != Ready && e.Code != Preemption {
		return e // the gang wouldn't start even on all nodes
	}
	defer s.keepMemory()()
	p, d := s.find(r, nodes)
	e.Nodes, e.Victims = nil, nil
	switch {
	case p != nil && len(p.victims) > 0:
		e.Code, e.Victims = Preemption, s.podsOf(p.victims)
	case p != nil:
		e.Code, e.Nodes = Ready, nodesOf(p.gang)
	case d.Result == Refuse:
		e.Code, e.Sentence = Unsatisfiable, sentence(d.Reason)
	default:
		e.Code, e.Sentence = Fragmented, sentence(d.Reason)
	}
	return e
}

// fewPods is the size of gangs up to which Largest ignores late.
const fewPods = 64

// Largest returns the maximum number of equal pods that would start now as a gang, without evictions. It returns 0 if no pod
// would start, or if the request has pods of several sizes. It also returns 0 if late returns true during the search among
// large gangs.
func (t *Trial) Largest(r *Request, nodes Nodes, late func() bool) int {
	s := t.s
	s.settle()
	if s.malformed(r) != nil || len(r.Root.Pods) != 1 || len(r.Root.Children) > 0 {
		return 0
	}
	defer s.keepMemory()()
	v := s.byVC[r.VirtualCluster]
	sized := func(pods int) *Request {
		probe := *r
		probe.Root.Pods = []PodSet{r.Root.Pods[0]}
		probe.Root.Pods[0].Count = pods
		return &probe
	}
	one, err := s.targets(v, sized(1))
	if err != nil {
		return 0
	}
	most := 0 // the number of pods for which all free leaves are enough
	for _, t := range one {
		most = max(most, t.view().free/t.shape.total)
	}
	starts := func(pods int) bool {
		probe := sized(pods)
		if s.overQuota(v, probe) != "" {
			return false
		}
		targets, err := s.targets(v, probe)
		return err == nil && slices.ContainsFunc(targets, func(t target) bool {
			p := s.tryFree(t, probe, nodes)
			return p != nil && len(p.victims) == 0
		})
	}
	low := 0 // a gang of low pods starts, and a gang of high pods doesn't
	for high := most + 1; high-low > 1; {
		middle := min((low+high+1)/2, max(2*low, 1)) // limited, so that the last attempt before late is also short
		if middle > fewPods && late() {
			return 0
		}
		if starts(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
