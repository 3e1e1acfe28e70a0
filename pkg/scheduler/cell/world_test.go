package cell

import (
	"fmt"
	"strings"
)

// world simulates the environment of a scheduler: controllers that create and end pods, an API server that stores annotations,
// and nodes that fail. It applies the scheduler's decisions and checks that they are consistent.
type world struct {
	conf    Config
	hw      *hardware
	s       *Scheduler
	gangs   []*wgang
	byName  map[gangKey]*wgang
	made    int // number of names that were used
	nodeOK  map[string]bool
	broken  map[gpu]bool
	using   map[gpu]*wgang
	lifted  map[gpu]bool // leaves of the slot that moves in the decision that is judged
	inexact bool         // whether the annotations of some gang don't contain its exact virtual cells
	step    int
	every   int  // the expensive checks run at every n-th step; 0 means at each step
	fast    bool // whether to omit the expensive checks in this step
	safety  int  // the comparison with single virtual clusters runs at every n-th step; 0 means never
	trace   *strings.Builder
	tally   map[string]int
	persist Persist
	oracle  oracle
	record  func(Decision)
}

type wgang struct {
	key        gangKey
	pods       []*wpod
	running    int
	priority   int
	guaranteed bool // whether the gang has its guarantee, according to decisions and reports
	place      []PodPlacement
	refused    bool
	chain      string
	moved      bool // whether the gang has survived a change of the configuration
}

type wpod struct {
	id      PodID
	gang    *wgang
	request *Request
	running bool
	bind    *Decision // nil if it was accepted
	at      *Placement
	slot    int
}

// violation is the panic value for a violation.
type violation struct{ text string }

func (w *world) fail(format string, args ...any) {
	panic(violation{fmt.Sprintf(format, args...)})
}

func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%4d: %s\n", w.step, fmt.Sprintf(format, args...))
	}
}

func newWorld(c *choices, conf Config) *world {
	w := &world{conf: conf, byName: map[gangKey]*wgang{}, nodeOK: map[string]bool{}, broken: map[gpu]bool{}, using: map[gpu]*wgang{}, tally: map[string]int{}}
	w.persist = func(_ *Request, p *Placement, slot int, _ bool) (*Placement, int, error) { return p.clone(), slot, nil }
	w.adopt(conf)
	s, err := New(conf)
	if err != nil {
		w.fail("New: %v", err)
	}
	w.s = s
	for _, n := range w.hw.nodes {
		if ok := !c.in(5); ok {
			s.SetNode(n, true)
			w.nodeOK[n] = true
		}
	}
	return w
}

// adopt sets the configuration for the checks.
func (w *world) adopt(conf Config) {
	w.conf, w.hw = conf, newHardware(conf)
	w.oracle = newOracle(w.hw)
}

// clone copies only the parts of a placement that annotations contain.
func (p *Placement) clone() *Placement {
	out := &Placement{Chain: p.Chain, Order: p.Order, Moves: p.Moves, Downgraded: p.Downgraded, Pods: make([]PodPlacement, len(p.Pods))}
	copy(out.Pods, p.Pods)
	for i := range out.Pods {
		a := &out.Pods[i]
		a.Indices = append([]int32(nil), a.Indices...)
		a.Preassigned = append([]string(nil), a.Preassigned...)
		a.Virtual = append([]string(nil), a.Virtual...)
	}
	return out
}

func (w *world) newGang(c *choices) *wgang {
	w.made++
	name := fmt.Sprintf("g%d", w.made)
	if c.in(5) {
		name = "same"
	}
	r := w.anyRequest(c, name)
	g := &wgang{key: gangKey{r.VirtualCluster, r.Gang}, priority: r.Priority}
	if old := w.byName[g.key]; old != nil {
		return old
	}
	n := 0
	for i, set := range r.Sets() {
		for range min(max(set.Count, 0), 64) {
			own := *r
			if r.Set == 0 {
				own.Set = i
			}
			g.pods = append(g.pods, &wpod{id: PodID(fmt.Sprintf("%s.%s-%d.%d", r.VirtualCluster, name, w.made, n)), gang: g, request: &own})
			n++
		}
	}
	if n == 0 {
		g.pods = append(g.pods, &wpod{id: PodID(fmt.Sprintf("%s-%d.0", name, w.made)), gang: g, request: r})
	}
	w.gangs = append(w.gangs, g)
	w.byName[g.key] = g
	w.note("new gang %v", r)
	return g
}

func (w *world) forget(g *wgang) {
	for i := range w.gangs {
		if w.gangs[i] == g {
			w.gangs = append(w.gangs[:i:i], w.gangs[i+1:]...)
			break
		}
	}
	delete(w.byName, g.key)
}

func (w *world) anyGang(c *choices) *wgang {
	if len(w.gangs) == 0 {
		return w.newGang(c)
	}
	return w.gangs[c.n(len(w.gangs))]
}

func (w *world) healthy(node string, index int32) bool {
	return w.nodeOK[node] && !w.broken[gpu{node, index}]
}

func (w *world) allHealthy() bool {
	for g := range w.hw.leaf {
		if !w.healthy(g.node, g.index) {
			return false
		}
	}
	return true
}

type offered map[string]bool

func (o offered) Has(name string) bool { return o[name] }

func (w *world) someNodes(c *choices, r *Request) Nodes {
	if !r.OnlySuggested && !c.in(5) {
		return nil
	}
	o := offered{}
	keep := pick(c, 100, 70, 40, 0, 90)
	for _, n := range w.hw.nodes {
		if c.n(100) < keep {
			o[n] = true
		}
	}
	return o
}

func (w *world) podByID(id PodID) *wpod {
	for _, g := range w.gangs {
		for _, p := range g.pods {
			if p.id == id {
				return p
			}
		}
	}
	return nil
}
