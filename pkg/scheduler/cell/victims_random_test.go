package cell

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowInScope is inScope without cached costs. It checks every node for every pod.
func (p *preemption) slowInScope(sc scope) bool {
	seated := map[int32]int{}
	for _, set := range p.root.sets {
		want := p.sets[set]
		for range want.count {
			best, node, least := (*victims)(nil), int32(-1), noCost
			for i := sc.lo; i < sc.hi; i++ {
				n := &p.view.nodes[i]
				need := seated[i] + want.n
				if n.blocked || p.view.leaves[n.top] < need {
					continue
				}
				v, ok := p.victims(p.leaves[n.lo:n.lo+int32(p.view.leaves[n.top])], need)
				if !ok {
					continue
				}
				if cost := v.cost(); cost < least {
					best, node, least = &v, i, cost
				}
			}
			if best == nil {
				return false
			}
			for _, g := range best.gangs[:best.n] {
				p.mark(g)
			}
			seated[node] += want.n
		}
	}
	return true
}

// crowded returns a scheduler with bad GPUs whose racks and nodes are full of gangs with several nodes and priorities.
func crowded(t *testing.T, r *rand.Rand) *Scheduler {
	t.Helper()
	nRacks := 1 + r.IntN(3)
	c := Config{Types: []Type{{"PAIR", "GPU", 2, false}, {"NODE", "PAIR", 2, true}, {"RACK", "NODE", 1 + r.IntN(4), false}},
		VirtualClusters: []VirtualCluster{{Name: "A", Cells: []Virtual{{"RACK", nRacks}}}}}
	for range nRacks {
		c.Physical = append(c.Physical, Physical{Type: "RACK"})
	}
	s := freshScheduler(t, c)
	for i := range 30 {
		req := flatGang("A", fmt.Sprintf("g%d-", i), r.IntN(3), 1+r.IntN(3), 1+r.IntN(4))
		req.LazyPreemption = r.IntN(6) == 0
		if d := s.Schedule(PodID(fmt.Sprintf("g%d-a", i)), req, Filtering, nil); d.Result == Bind {
			mustRun(t, s, req)
		}
		if r.IntN(5) == 0 {
			for k := range 3 {
				s.DeleteAllocated(PodID(fmt.Sprintf("g%d-%c", r.IntN(i+1), 'a'+k)))
			}
		}
	}
	for range r.IntN(3) {
		names := s.Nodes()
		s.SetDevice(names[r.IntN(len(names))], int32(r.IntN(4)), false)
	}
	s.settle()
	return s
}

func TestTheFastSearchIsTheSlowOne(t *testing.T) {
	seats := 0
	for seed := range 600 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		s := crowded(t, r)
		req := &Request{VirtualCluster: "A", Gang: "w", Priority: 1 + r.IntN(3)}
		for _, n := range r.Perm(4)[:1+r.IntN(3)] {
			req.Root.Pods = append(req.Root.Pods, PodSet{Count: 1 + r.IntN(4), Cells: n + 1})
		}
		targets, err := s.targets(s.byVC["A"], req)
		require.NoError(t, err)
		tg := targets[0]
		for range r.IntN(2) {
			tg.space.view.block(int32(r.IntN(len(tg.space.view.nodes))), true)
		}
		p := &preemption{killing{}, tg.space, tg.shape, req.Priority, r.IntN(4) == 0, &s.stamp}
		all := tg.space.view.all()
		lo := all.lo + int32(r.IntN(int(all.hi-all.lo)))
		for _, sc := range []scope{all, {lo, all.hi}} {
			fast, slow := p.trial(), p.trial()
			fast.stamp = s.stamp + 100
			gotOK := fast.inScope(sc)
			s.stamp += 200
			slow.stamp = s.stamp
			wantOK := slow.slowInScope(sc)
			require.Equal(t, wantOK, gotOK, "seed %d", seed)
			require.Equal(t, slow.gangs, fast.gangs, "seed %d", seed)
			if gotOK && len(fast.gangs) > 1 {
				seats++
			}
		}
	}
	require.Greater(t, seats, 100, "searches with several victims")
}
