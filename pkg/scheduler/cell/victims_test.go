package cell

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The cost of victims has 32 bits for the order. An order of 2^40 in an annotation must not make all later gangs equally old.
func TestAForgedOrderDoesNotMakeAllGangsEquallyOld(t *testing.T) {
	for _, forged := range []uint64{7, 1 << 40} {
		t.Run(fmt.Sprint(forged), func(t *testing.T) {
			s := freshScheduler(t, quads(3, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 3}}}))
			first := mustRun(t, s, flatGang("A", "forger", 0, 1, 4))
			at := s.pods[first[0]].gang.placement.clone()
			s.DeleteAllocated(first[0])
			at.Order = forged
			_, err := s.Allocate(first[0], flatGang("A", "forger", 5, 1, 4), at, 0)
			require.NoError(t, err)
			mustRun(t, s, flatGang("A", "older", 0, 1, 4))
			mustRun(t, s, flatGang("A", "younger", 0, 1, 4))
			d := s.Schedule("w", flatGang("A", "wants", 1, 1, 4), Filtering, nil)
			require.Equal(t, Preempt, d.Result)
			assert.Equal(t, "younger", d.Victims[0].Gang)
		})
	}
}

func killed(victims []Victim) []string {
	var out []string
	for _, v := range victims {
		if !slices.Contains(out, v.Gang) {
			out = append(out, v.Gang)
		}
	}
	slices.Sort(out)
	return out
}

// On a node with a job of 4 GPUs and four jobs of 1 GPU, only one job must end to free 4 GPUs.
func TestFewerKillsEndsAsFewAsItCanOnANode(t *testing.T) {
	for _, policy := range PolicyNames() {
		t.Run(policy, func(t *testing.T) {
			s := freshScheduler(t, Config{Types: []Type{{"NODE", "GPU", 8, true}}, Physical: []Physical{{Type: "NODE"}},
				VirtualClusters: []VirtualCluster{{Name: "A", Cells: []Virtual{{"NODE", 1}}, Policy: policy}}})
			mustRun(t, s, flatGang("A", "four", Opportunistic, 1, 4))
			for i := range 4 {
				mustRun(t, s, flatGang("A", fmt.Sprint("one", i), Opportunistic, 1, 1))
			}
			d := s.Schedule("g", flatGang("A", "g", 0, 1, 4), Filtering, nil)
			require.Equal(t, Preempt, d.Result, d.Reason)
			assert.Len(t, killed(d.Victims), 1, "gangs that end: %v", killed(d.Victims))
		})
	}
}

// A gang that must not use an idle node gets the free cells beside a guaranteed gang.
func TestWhatIsIdleBesideOtherGangsIsFreeForThoseThatAreHeldBack(t *testing.T) {
	s := freshScheduler(t, policies(32))
	mustRun(t, s, flatGang("owner", "half", 0, 1, 4)) // 4 GPUs are idle beside this gang
	for i := range 31 {
		mustRun(t, s, flatGang("eager", fmt.Sprintf("o%d", i), Opportunistic, 1, 8))
	}
	require.Len(t, killed(preempt(t, s, flatGang("owner", "guaranteed", 0, 2, 8))), 2)
	for i := range 32 { // a node becomes idle
		if _, ok := s.DeleteAllocated(PodID(fmt.Sprintf("o%da", i))); ok {
			break
		}
	}
	d := s.Schedule("p", flatGang("patient", "p", Opportunistic, 1, 1), Filtering, nil)
	assert.Equal(t, Bind, d.Result, d.Reason)
}

// A guaranteed gang of 4 GPUs arrives repeatedly on the node that its virtual cluster already uses, and evicts the small gang
// on that node. This must not prevent another gang from using an idle node.
func TestNothingWaitsForEver(t *testing.T) {
	s := freshScheduler(t, policies(32))
	mustRun(t, s, flatGang("owner", "half", 0, 1, 4))
	for i := 0; s.chains[0].clean > 2; i++ {
		mustRun(t, s, flatGang("eager", fmt.Sprintf("o%d", i), Opportunistic, 1, 8))
	}
	small, big := flatGang("eager", "small", Opportunistic, 1, 4), flatGang("patient", "big", Opportunistic, 1, 8)
	for arrival := range 200 { // this takes two days
		mustRun(t, s, small)
		g := flatGang("owner", fmt.Sprintf("again%d", arrival), 0, 1, 4)
		require.Equal(t, []string{"small"}, killed(preempt(t, s, g)))
		for range 100 { // the scheduler retries every 10 s
			if arrival > 5 && s.Schedule("big", big, Filtering, nil).Result == Bind {
				return
			}
		}
		s.DeleteAllocated(PodID(g.Gang + "a"))
	}
	t.Errorf("it waits beside %d idle nodes: %s", s.chains[0].clean, s.Why(big).Sentence)
}

// Why and Schedule must give the same explanation for a pod that doesn't belong to the existing gang with its gang's name.
func TestWhySaysWhatScheduleSaysOfAnotherGangWithTheName(t *testing.T) {
	s := freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 2}}}))
	mustRun(t, s, flatGang("A", "g", 0, 1, 1))
	other := flatGang("A", "g", 0, 1, 4)
	require.Equal(t, Wait, s.Schedule("x", other, Filtering, nil).Result)
	e := s.Why(other)
	assert.NotEqual(t, "Ready", e.Code, e.Sentence)
}

func TestWhyAgreesWithScheduleForEachPolicy(t *testing.T) {
	kinds, seeds := map[string]int{}, 60
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		c := policies(32)
		for i := range c.VirtualClusters {
			c.VirtualClusters[i].Policy = PolicyNames()[r.IntN(3)]
		}
		s := freshScheduler(t, c)
		names := []string{"owner", "patient", "eager"}
		for i := range 250 {
			req := flatGang(names[r.IntN(3)], fmt.Sprintf("g%d-", i), r.IntN(4)-1, 1+r.IntN(5), 1+r.IntN(8))
			if r.IntN(3) == 0 {
				req.Root.Pods[0].Cells = 8
			}
			id := func(g string, k int) PodID { return PodID(g + string(rune('a'+k))) }
			before := fmt.Sprint(s.chains[0].pressure)
			e := s.Why(req)
			require.Equal(t, before, fmt.Sprint(s.chains[0].pressure))
			d := s.Schedule(id(req.Gang, 0), req, Filtering, nil)
			want := Wait
			switch e.Code {
			case "Ready":
				want = Bind
			case "PreemptionUnderWay":
				want = Preempt
			case Unsatisfiable, "Malformed":
				want = Refuse
			}
			require.Equal(t, want, d.Result, "seed %d step %d: %s %s / %s", seed, i, e.Code, e.Sentence, d.Reason)
			kinds[e.Code]++
			switch d.Result {
			case Preempt:
				for _, v := range s.Schedule(id(req.Gang, 0), req, Preempting, nil).Victims {
					g := s.gangs[gangKey{v.VC, v.Gang}]
					require.True(t, g.opportunistic() || g.priority < req.Priority && g.key.vc == req.VirtualCluster, "a victim that isn't weaker")
					s.DeleteAllocated(v.Pod)
				}
				mustRun(t, s, req)
			case Bind:
				mustRun(t, s, req)
			}
			for range 2 {
				if r.IntN(3) == 0 {
					g := fmt.Sprintf("g%d-", r.IntN(i+1))
					for k := range 5 {
						s.DeleteAllocated(id(g, k))
					}
				}
			}
			require.NoError(t, s.Check())
		}
	}
	require.Positive(t, kinds["HeldBack"])
}

// When racks are compared, the weight of a victim is also the square root of its number of machines.
func TestVictimsAreWeighedForGangsOfSeveralNodesToo(t *testing.T) {
	for policy, want := range map[string][]string{"balanced": {"one0", "one1"}, "start-now": {"one0", "one1"}, "fewer-kills": {"wide"}} {
		t.Run(policy, func(t *testing.T) {
			c := Config{Types: []Type{{"NODE", "GPU", 8, true}, {"RACK", "NODE", 2, false}}, VirtualClusters: []VirtualCluster{
				{Name: "A", Cells: []Virtual{{"RACK.NODE", 16}}, Policy: policy}}}
			for range 8 {
				c.Physical = append(c.Physical, Physical{Type: "RACK"})
			}
			s := freshScheduler(t, c)
			for i := range 2 {
				mustRun(t, s, flatGang("A", fmt.Sprint("one", i), Opportunistic, 1, 8))
			}
			mustRun(t, s, flatGang("A", "wide", Opportunistic, 14, 8)) // this gang has the weight 3
			d := s.Schedule("g", flatGang("A", "g", 0, 2, 8), Filtering, nil)
			require.Equal(t, Preempt, d.Result)
			assert.Equal(t, want, killed(d.Victims))
		})
	}
}

// An unbound virtual cell is available without a victim, but not on the only offered node.
func TestAGangThatMayRunOnOneNodeOnlyEndsALowerPriorityThere(t *testing.T) {
	for _, nodes := range []int{2, 9} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			s := freshScheduler(t, quads(nodes, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", nodes}}}))
			mustRun(t, s, flatGang("A", "low", 1, 1, 4))
			r := flatGang("A", "high", 5, 1, 4)
			r.OnlySuggested = true
			at := only(s.pods["lowa"].gang.slots[0].at.Node)
			before := s.dump()
			d := s.Schedule("high", r, Filtering, at)
			require.Equal(t, Preempt, d.Result, d.Reason)
			assert.Equal(t, []string{"low"}, killed(d.Victims))
			require.Equal(t, before, s.dump(), "a search leaves nothing behind")
			r.Priority = 1
			assert.Equal(t, Wait, s.Schedule("equal", r, Filtering, at).Result)
		})
	}
}

// Only some of the unbound virtual cells are available.
func TestAGangThatMayRunOnSomeNodesEndsNoMoreThanItNeeds(t *testing.T) {
	s := freshScheduler(t, quads(4, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 4}}}))
	mustRun(t, s, flatGang("A", "v1", 1, 1, 4))
	mustRun(t, s, flatGang("A", "v2", 1, 1, 4))
	n1, n2 := s.pods["v1a"].gang.slots[0].at.Node, s.pods["v2a"].gang.slots[0].at.Node
	idle := slices.DeleteFunc(slices.Clone(s.Nodes()), func(n string) bool { return n == n1 || n == n2 })
	r := flatGang("A", "high", 5, 2, 4)
	r.OnlySuggested = true
	for name, offered := range map[string][]string{"both and an idle one": {n1, n2, idle[0]}, "one and an idle one": {n1, idle[1]}} {
		d := s.Schedule("high", r, Filtering, only(offered...))
		require.Equal(t, Preempt, d.Result, "%s: %s", name, d.Reason)
		assert.Len(t, killed(d.Victims), 1, name)
	}
}

func TestAGangThatMayRunOnOneNodeOfARackEndsALowerPriorityThere(t *testing.T) {
	s := freshScheduler(t, rackOf(2, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK", 1}}}))
	mustRun(t, s, flatGang("A", "low", 1, 1, 2))
	r := flatGang("A", "high", 5, 1, 2)
	r.OnlySuggested = true
	d := s.Schedule("high", r, Filtering, only(s.pods["lowa"].gang.slots[0].at.Node))
	require.Equal(t, Preempt, d.Result, d.Reason)
	assert.Equal(t, []string{"low"}, killed(d.Victims))
}
