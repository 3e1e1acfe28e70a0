package cell

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// written is the placement in the annotations of a pod.
type written struct {
	pod  PodID
	at   *Placement
	slot int
}

func writtenOf(s *Scheduler, pod PodID) written {
	at := s.pods[pod]
	return written{pod, at.gang.placement.clone(), at.slot}
}

// rebuilt returns a scheduler that is built only from written placements.
func rebuilt(t *testing.T, s *Scheduler, r map[PodID]*Request, list ...written) *Scheduler {
	t.Helper()
	n := freshScheduler(t, s.config)
	for _, w := range list {
		lost, err := n.Allocate(w.pod, r[w.pod], w.at.clone(), w.slot)
		require.NoError(t, err)
		require.Empty(t, lost)
	}
	require.NoError(t, n.Check())
	return n
}

func permutations[T any](list []T, f func([]T)) {
	if len(list) < 2 {
		f(list)
		return
	}
	for i := range list {
		rest := append(slices.Clone(list[:i]), list[i+1:]...)
		permutations(rest, func(p []T) { f(append([]T{list[i]}, p...)) })
	}
}

func TestAfterAMoveARebuildIsTheSameInEachOrder(t *testing.T) {
	s := freshScheduler(t, rackOf(2, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK.NODE", 4}}}))
	g, h := flatGang("A", "g", 0, 2, 2), flatGang("A", "h", 0, 1, 2)
	pods := mustRun(t, s, g)
	stays := writtenOf(s, pods[0])
	s.DeleteAllocated(pods[1])
	require.Equal(t, "r1n0", comeBack(t, s, "moved", g, only("r1n0")).Node)
	require.Equal(t, "r0n1", comeBack(t, s, "guest", h, only("r0n1")).Node, "the place that it left")
	list := []written{stays, writtenOf(s, "moved"), writtenOf(s, "guest")}
	requests := map[PodID]*Request{pods[0]: g, "moved": g, "guest": h}
	want := s.digest(true)
	permutations(list, func(list []written) {
		n := rebuilt(t, s, requests, list...)
		assert.Equal(t, want, n.digest(true), "%s\n%s", s.dump(), n.dump())
	})
}

func TestOfASlotWithoutAPodTheNewestWordCounts(t *testing.T) {
	s := freshScheduler(t, rackOf(3, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK.NODE", 6}}}))
	g := flatGang("A", "g", 0, 3, 2)
	pods := mustRun(t, s, g)
	first := writtenOf(s, pods[0])
	s.DeleteAllocated(pods[1])
	comeBack(t, s, "one", g, only("r2n0"))
	s.DeleteAllocated(pods[2])
	comeBack(t, s, "two", g, only("r2n1"))
	s.DeleteAllocated("one")
	list := []written{first, writtenOf(s, "two")}
	requests := map[PodID]*Request{pods[0]: g, "two": g}
	permutations(list, func(list []written) {
		n := rebuilt(t, s, requests, list...)
		assert.Equal(t, placesOf(s, "A", "g"), placesOf(n, "A", "g"))
	})
}

func TestAnOldWordOnAPlaceYieldsToWhoRunsThere(t *testing.T) {
	s := freshScheduler(t, rackOf(2, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK.NODE", 3}}}))
	g, h := flatGang("A", "g", 5, 2, 2), flatGang("A", "h", 0, 1, 2)
	pods := mustRun(t, s, g)
	stays := writtenOf(s, pods[0])
	s.DeleteAllocated(pods[1])
	comeBack(t, s, "moved", g, only("r1n0"))
	comeBack(t, s, "guest", h, only("r0n1"))
	s.DeleteAllocated("moved") // its annotations are lost
	requests := map[PodID]*Request{pods[0]: g, "guest": h}
	permutations([]written{stays, writtenOf(s, "guest")}, func(list []written) {
		n := rebuilt(t, s, requests, list...)
		assert.Equal(t, []string{"r0n0", ""}, placesOf(n, "A", "g"))
		assert.False(t, n.gangs[gangKey{"A", "h"}].opportunistic(), "it has its guarantee, though it is the weaker one")
		d := comeBack(t, n, "again", g, nil)
		assert.Equal(t, Bind, d.Result, d.Reason)
	})
}

func alone(w written) written { return written{w.pod, ownPlace(w.at, w.slot), w.slot} }

func TestPodsThatKnowTheirOwnPlacesMakeTheirGang(t *testing.T) {
	for _, priority := range []int{0, Opportunistic} {
		s := freshScheduler(t, rackOf(2, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK", 2}}, Quota: Quota{PerUser: 8}}))
		g := flatGang("A", "g", priority, 3, 2)
		g.User = "u"
		pods := mustRun(t, s, g)
		var list []written
		requests := map[PodID]*Request{}
		for _, p := range pods {
			list = append(list, alone(writtenOf(s, p)))
			requests[p] = g
		}
		want := s.digest(true)
		permutations(list, func(list []written) {
			n := rebuilt(t, s, requests, list...)
			assert.Equal(t, want, n.digest(true))
			part := rebuilt(t, s, requests, list[:2]...)
			assert.Equal(t, 4, part.Stats().UsedGPUs, "an open slot holds nothing")
			d := comeBack(t, part, "third", g, only("r1n1"))
			require.Equal(t, Bind, d.Result, d.Reason)
			assert.Equal(t, list[2].slot, d.Slot)
			for _, p := range []PodID{list[0].pod, list[1].pod, "third"} {
				part.DeleteAllocated(p)
			}
			require.NoError(t, part.Check())
			assert.Empty(t, part.gangs)
		})
	}
}

func TestAPodIsNotTakenOverIntoAPlaceThatDoesNotFit(t *testing.T) {
	start := func(t *testing.T) (*Scheduler, *Request, written) {
		s := freshScheduler(t, rackOf(2, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK", 2}}}))
		g := flatGang("A", "g", 0, 2, 2)
		pods := mustRun(t, s, g)
		second := writtenOf(s, pods[1])
		n := rebuilt(t, s, map[PodID]*Request{pods[0]: g}, alone(writtenOf(s, pods[0])))
		return n, g, second
	}
	for name, c := range map[string]struct {
		before func(t *testing.T, s *Scheduler)
		change func(at *PodPlacement)
		says   string
	}{
		"others hold its devices": {
			before: func(t *testing.T, s *Scheduler) {
				require.Equal(t, "r0n1", comeBack(t, s, "h", flatGang("A", "h", 0, 1, 2), only("r0n1")).Node)
			},
			says: "is held by A/h",
		},
		"the first pod holds them": {change: func(at *PodPlacement) { at.Node = "r0n0" }, says: "is held by A/g"},
		"it is smaller than its set": {
			change: func(at *PodPlacement) {
				at.Indices, at.Preassigned, at.Virtual = at.Indices[:1], at.Preassigned[:1], at.Virtual[:1]
			}, says: "requests 2 cells, but has 1",
		},
		"it is open itself": {change: func(at *PodPlacement) { *at = PodPlacement{} }, says: "doesn't contain the pod itself"},
	} {
		t.Run(name, func(t *testing.T) {
			s, g, w := start(t)
			w = alone(w)
			if c.before != nil {
				c.before(t, s)
			}
			if c.change != nil {
				c.change(&w.at.Pods[w.slot])
			}
			before := s.dump()
			_, err := s.Allocate(w.pod, g, w.at, w.slot)
			require.ErrorContains(t, err, c.says)
			assert.Equal(t, before, s.dump())
			require.NoError(t, s.Check())
		})
	}
}

func TestAnOpenSlotCountsAgainstTheQuotaWhenItIsFilled(t *testing.T) {
	s := freshScheduler(t, rackOf(2, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK", 2}}, Quota: Quota{PerUser: 4}}))
	g := flatGang("A", "g", 0, 2, 2)
	g.User = "u"
	pods := mustRun(t, s, g)
	n := rebuilt(t, s, map[PodID]*Request{pods[0]: g}, alone(writtenOf(s, pods[0])))
	h := flatGang("A", "h", 0, 1, 2)
	h.User = "u"
	mustRun(t, n, h)
	d := comeBack(t, n, "second", g, nil)
	assert.Equal(t, Wait, d.Result)
	assert.Contains(t, d.Reason, "user u holds 4 of 4 GPUs")
	n.DeleteAllocated("ha")
	assert.Equal(t, Bind, comeBack(t, n, "second", g, nil).Result)
}
