package cell

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reserve uses a placement from the phase Filtering if the state hasn't changed. The result must equal the result of a second
// search.
func TestAReservationIsWhatWasFound(t *testing.T) {
	reserved := 0
	for seed := range 400 {
		var dumps, decisions [2]string
		for i := range 2 {
			r := rand.New(rand.NewPCG(uint64(seed), 5))
			s := crowded(t, r)
			for k := range 4 {
				req := &Request{VirtualCluster: "A", Gang: fmt.Sprintf("w%d", k), Priority: 1 + r.IntN(4), OnlySuggested: r.IntN(3) == 0}
				for range 1 + r.IntN(2) {
					req.Root.Pods = append(req.Root.Pods, PodSet{Count: 1 + r.IntN(4), Cells: 1 + r.IntN(4)})
				}
				nodes := only(s.Nodes()[r.IntN(2):]...)
				for _, pod := range []PodID{"a", "b"} {
					pod = PodID(req.Gang) + pod
					found := s.Find(pod, req, nodes)
					d := s.Schedule(pod, req, Filtering, nodes)
					require.Equal(t, []any{d.Result, d.Reason, d.Placement, d.Slot}, []any{found.Result, found.Reason, found.Placement, found.Slot}, "seed %d", seed)
					other := r.IntN(4) == 0
					if other { // something changes in between
						s.SetDevice(s.Nodes()[0], 0, r.IntN(2) == 0)
					}
					if d.Result == Preempt {
						reserved++
						if i == 0 {
							d = s.Schedule(pod, req, Preempting, nodes)
						} else {
							d = s.Reserve(pod, req, nodes, d)
						}
						listed := s.VictimsOf(req.VirtualCluster, req.Gang)
						slices.SortStableFunc(listed, func(a, b Victim) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Pod, b.Pod)) })
						require.Equal(t, d.Victims, listed, "seed %d", seed)
					}
					decisions[i] += fmt.Sprintln(d.Result, d.Reason, d.Node, d.Indices, d.Slot, d.Victims, d.Changes)
					require.NoError(t, s.Check(), "seed %d", seed)
				}
			}
			dumps[i] = s.dump()
		}
		require.Equal(t, decisions[0], decisions[1], "seed %d", seed)
		require.Equal(t, dumps[0], dumps[1], "seed %d", seed)
	}
	require.Greater(t, reserved, 200)
}

// The next pod must get the slot of a finished pod, regardless of where the search for a free slot begins.
func TestASlotThatBecomesFreeIsFoundAgain(t *testing.T) {
	s := freshScheduler(t, Config{Types: []Type{{"NODE", "GPU", 8, true}}, Physical: []Physical{{Type: "NODE", Address: "n"}},
		VirtualClusters: []VirtualCluster{{Name: "A", Cells: []Virtual{{"NODE", 1}}}}})
	r := [2]*Request{}
	for set := range r {
		r[set] = &Request{VirtualCluster: "A", Gang: "g", Set: set, Root: Group{Pods: []PodSet{{Count: 3, Cells: 1}, {Count: 2, Cells: 2}}}}
	}
	come := func(pod PodID, set, slot int) {
		t.Helper()
		d := s.Schedule(pod, r[set], Filtering, nil)
		require.Equal(t, Bind, d.Result, d.Reason)
		require.Equal(t, slot, d.Slot)
		_, err := s.Allocate(pod, r[set], d.Placement, d.Slot)
		require.NoError(t, err)
	}
	come("b0", 1, 3)
	come("a0", 0, 0)
	come("b1", 1, 4)
	come("a1", 0, 1)
	s.DeleteAllocated("b0")
	s.DeleteAllocated("a0")
	come("b2", 1, 3)
	come("a2", 0, 0)
	come("a3", 0, 2)
	require.Equal(t, Refuse, s.Schedule("b3", r[1], Filtering, nil).Result)
}

func TestWhatAnotherConfigurationFoundIsSearchedForAgain(t *testing.T) {
	conf := quads(1, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 1}}})
	s := freshScheduler(t, conf)
	mustRun(t, s, flatGang("A", "idle", Opportunistic, 1, 4))
	r := flatGang("A", "g", 0, 1, 4)
	d := s.Find("p", r, nil)
	require.Equal(t, Preempt, d.Result)
	n, _, err := s.Reconfigure(conf)
	require.NoError(t, err)
	n.epoch = d.plan.epoch // equal epochs may occur by chance
	require.Equal(t, Preempt, n.Reserve("p", r, nil, d).Result)
	require.NoError(t, n.Check())
	n.DeleteAllocated("idlea")
	require.Equal(t, Bind, n.Schedule("p", r, Filtering, nil).Result)
}
