package extender

import (
	"cmp"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// queue returns the gangs with a pod that waits, in the order in which they are to start: priority,
// arrival, name.
func (s *state) queue() []*gang {
	var out []*gang
	for _, g := range s.gangs {
		if g.waiting() > 0 {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *gang) int {
		return cmp.Or(
			cmp.Compare(b.pods[0].request.Priority, a.pods[0].request.Priority),
			a.since().Compare(b.since()), cmp.Compare(a.vc, b.vc), cmp.Compare(a.name, b.name))
	})
	return out
}

// listQueue is the queue for people; an empty vc is all of it.
func (s *state) listQueue(vc string) api.Queue {
	out := api.Queue{Items: []api.Queued{}}
	inVC := map[string]int{}
	for i, g := range s.queue() {
		inVC[g.vc]++
		if vc != "" && vc != g.vc {
			continue
		}
		p := g.first()
		out.Items = append(out.Items, api.Queued{
			Position: i + 1, PositionInVC: inVC[g.vc], VC: g.vc, Group: g.name, State: p.state,
			Priority: p.request.Priority, Since: g.since(), Pods: g.waiting(), Asks: s.asks(g),
			User: p.request.User, Reason: p.reason,
		})
	}
	return out
}

// leavesOf is the size of a pod's whole gang.
func (s *state) leavesOf(p *pod) int {
	n := 0
	for _, set := range p.request.Sets() {
		n += set.Count * set.Cells * s.leaves(set.CellType)
	}
	return n
}

// leaves is how many GPUs or CPU cells a cell of a type has.
func (s *state) leaves(cellType string) int {
	n := 1
	for range s.types { // a type that contains itself is refused, but this ends anyway
		i := slices.IndexFunc(s.types, func(t cell.Type) bool { return t.Name == cellType })
		if i < 0 {
			break
		}
		n, cellType = n*s.types[i].Children, s.types[i].Child
	}
	return n
}
