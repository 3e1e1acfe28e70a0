package extender

import (
	"cmp"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/api"
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
			Priority: p.request.Priority, Since: g.since(), Pods: g.waiting(), GPUs: s.gpus(p),
			User: p.request.User, Reason: p.reason,
		})
	}
	return out
}

// gpus is the size of a pod's whole gang.
func (s *state) gpus(p *pod) int {
	if status, ok := s.core.Gang(p.request.VirtualCluster, p.request.Gang); ok {
		return status.GPUs
	}
	return s.core.Why(p.request).GPUs
}
