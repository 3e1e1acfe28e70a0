package cell

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The figures must equal a count leaf by leaf.
func TestStatsAreThoseOfTheLeaves(t *testing.T) {
	partly := 0
	for seed := range 300 {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		s := crowded(t, r)
		for range 1 + r.IntN(5) {
			s.SetDevice(s.Nodes()[r.IntN(len(s.Nodes()))], int32(r.IntN(4)), r.IntN(3) == 0)
		}
		for pod := range s.pods {
			if r.IntN(2) == 0 {
				s.DeleteAllocated(pod)
			}
		}
		req := &Request{VirtualCluster: "A", Gang: "w", Priority: 5, Root: Group{Pods: []PodSet{{Count: 1 + r.IntN(3), Cells: 1 + r.IntN(4)}}}}
		s.Schedule("w", req, Preempting, nil)
		st := s.Stats()
		require.NoError(t, s.Check(), "seed %d", seed)
		used, opportunistic := 0, 0
		for _, g := range s.gangs {
			if g.space == nil {
				opportunistic += g.gpus()
			}
		}
		for _, p := range s.chains[0].cells[0] {
			if p.using != nil {
				used++
			}
		}
		require.Equal(t, used, st.UsedGPUs)
		require.Equal(t, byLeaves(s.chains[0].cells[s.chains[0].top()]), levels(st.FreeByLevel), "seed %d", seed)
		v, guaranteed, bad := st.VirtualClusters[0], 0, 0
		sp := s.vcs[0].spaces[0]
		for _, leaf := range sp.leaves {
			switch {
			case leaf.owner != nil:
				guaranteed++
			case leaf.bound != nil && leaf.bound.bad:
				bad++
			}
		}
		require.Equal(t, []int{len(sp.leaves), guaranteed, bad, opportunistic}, []int{v.Guaranteed, v.UsedGuaranteed, v.Bad, v.Opportunistic}, "seed %d", seed)
		require.Equal(t, []LeafStats{{s.chains[0].names[0], len(sp.leaves), guaranteed, bad}}, v.Leaves)
		devices := 0
		for _, node := range s.Nodes() {
			devices += len(s.UsedDevices(node))
		}
		require.Equal(t, used, devices)
		if len(v.FreeByLevel) > 1 {
			partly++
		}
		v.FreeByLevel, v.Fragmentation = nil, 0
		require.Equal(t, []VCStats{v}, s.Used(), "seed %d", seed)
	}
	require.Greater(t, partly, 50)
}

func levels(counts []LevelCount) map[string]int {
	out := map[string]int{}
	for _, c := range counts {
		out[c.CellType] = c.Count
	}
	return out
}

func byLeaves(cells []*pcell) map[string]int {
	out := map[string]int{}
	for _, p := range cells {
		free := true
		for _, leaf := range p.chain.cells[0][p.lo:p.hi] {
			free = free && leaf.idle()
		}
		if free {
			out[p.typeName()]++
			continue
		}
		for name, n := range byLeaves(p.children) {
			out[name] += n
		}
	}
	return out
}
