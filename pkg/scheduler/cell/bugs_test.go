package cell

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Random steps found each of these bugs. Each test is the shortest sequence of steps for the bug.

func freshScheduler(t *testing.T, c Config) *Scheduler {
	t.Helper()
	s, err := New(c)
	require.NoError(t, err)
	for _, n := range s.Nodes() {
		s.SetNode(n, true)
	}
	return s
}

func flatGang(vc, name string, priority, pods, gpus int) *Request {
	return &Request{VirtualCluster: vc, Gang: name, Priority: priority, Root: Group{Pods: []PodSet{{Count: pods, Cells: gpus}}}}
}

func mustRun(t *testing.T, s *Scheduler, r *Request) []PodID {
	t.Helper()
	var out []PodID
	for i := range r.Root.Pods[0].Count {
		id := PodID(r.Gang + string(rune('a'+i)))
		d := s.Schedule(id, r, Filtering, nil)
		require.Equal(t, Bind, d.Result, d.Reason)
		_, err := s.Allocate(id, r, d.Placement, d.Slot)
		require.NoError(t, err)
		out = append(out, id)
	}
	require.NoError(t, s.Check())
	return out
}

func quads(tops int, vcs ...VirtualCluster) Config {
	c := Config{Types: []Type{{"PAIR", "GPU", 2, false}, {"NODE", "PAIR", 2, true}}, VirtualClusters: vcs}
	for range tops {
		c.Physical = append(c.Physical, Physical{Type: "NODE"})
	}
	return c
}

func racks(tops int, vcs ...VirtualCluster) Config {
	c := Config{Types: []Type{{"NODE", "GPU", 2, true}, {"RACK", "NODE", 2, false}}, VirtualClusters: vcs}
	for range tops {
		c.Physical = append(c.Physical, Physical{Type: "RACK"})
	}
	return c
}

func TestAWholeNodeInAClusterWithoutRacks(t *testing.T) {
	s := freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 1}}}))
	mustRun(t, s, flatGang("A", "g", 0, 1, 4))
}

func TestANodeAndARackOfOneGangDoNotOverlap(t *testing.T) {
	// A gang needs four nodes of a virtual cluster that owns two racks and a node. The single node must not come from one of
	// the racks.
	s := freshScheduler(t, racks(4, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK", 2}, {"RACK.NODE", 1}}}))
	mustRun(t, s, flatGang("A", "g", 0, 4, 2))
	bound := map[string]bool{}
	for _, sp := range s.spaces() {
		for _, r := range sp.roots {
			if r.bound != nil {
				for _, leaf := range r.bound.chain.cells[0][r.bound.lo:r.bound.hi] {
					assert.False(t, bound[leaf.address], "%s is in two preassigned cells", leaf.address)
					bound[leaf.address] = true
				}
			}
		}
	}
}

func TestSmallCellsOfOneGangShareANode(t *testing.T) {
	s := freshScheduler(t, quads(1, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE.PAIR", 1}, {"NODE.GPU", 1}}}))
	mustRun(t, s, flatGang("A", "g", 0, 3, 1))
}

func TestADowngradeWhileReservingIsReported(t *testing.T) {
	s := freshScheduler(t, quads(1, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 1}}}))
	lazy := flatGang("A", "lazy", 0, 1, 4)
	lazy.LazyPreemption = true
	mustRun(t, s, lazy)
	d := s.Schedule("strong", flatGang("A", "strong", 5, 1, 4), Preempting, nil)
	require.Equal(t, Preempt, d.Result)
	require.Len(t, d.Changes, 1, "somebody has to write it into its annotations")
	assert.Equal(t, "lazy", d.Changes[0].Gang)
}

func TestFilteringKeepsAReservationThatIsNotOffered(t *testing.T) {
	s := freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 1}}}))
	mustRun(t, s, flatGang("A", "weak", 0, 1, 4))
	mustRun(t, s, flatGang("A", "idle", Opportunistic, 1, 4))
	r := flatGang("A", "strong", 5, 1, 4)
	r.OnlySuggested = true
	require.Equal(t, Preempt, s.Schedule("strong", r, Preempting, nil).Result)
	before := s.dump()
	s.Schedule("strong", r, Filtering, offered{})
	assert.Equal(t, before, s.dump())
}

func TestWhyOfAGangWhoseNodeIsNoLongerConfigured(t *testing.T) {
	s := freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 1}}}))
	r := flatGang("A", "g", 0, 1, 4)
	mustRun(t, s, r)
	g, _ := s.Gang("A", "g")
	c := quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 1}}})
	for i := range c.Physical {
		c.Physical[i].Address = "new" + string(rune('0'+i))
	}
	n, _, err := s.Reconfigure(c)
	require.NoError(t, err)
	require.NotEmpty(t, g.PhysicalPlacement)
	assert.NotPanics(t, func() { n.Why(r) })
}

func TestWhySaysWhatWouldStartNow(t *testing.T) {
	s := freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 2}}}))
	mustRun(t, s, flatGang("A", "runs", 0, 1, 4))
	assert.Contains(t, s.Why(flatGang("A", "waits", 0, 2, 4)).Sentence, " 1 pod of 4 GPUs would start now.")
	assert.Contains(t, s.Why(flatGang("A", "waits", 0, 8, 1)).Sentence, " 4 pods of 1 GPU would start now.")
}

func TestAGangThatComesWithoutItsGuaranteeIsReportedWithItsPod(t *testing.T) {
	s := freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 1}}}))
	r := flatGang("A", "first", 0, 1, 4)
	d := s.Schedule("p", r, Filtering, nil)
	mustRun(t, s, flatGang("A", "second", Opportunistic, 1, 4)) // invalidates the plan
	at := d.Placement.clone()
	smaller, err := New(quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE.PAIR", 1}}}))
	require.NoError(t, err)
	lost, err := smaller.Allocate("p", r, at, 0)
	require.NoError(t, err)
	require.Len(t, lost, 1)
	assert.Equal(t, []PodID{"p"}, lost[0].Pods, "its annotation is the one that has to change")
}

func TestARestoredGangWithALostNodeKeepsItsGuaranteeOverARestart(t *testing.T) {
	named := func(cells int, nodes ...string) Config {
		c := quads(len(nodes), VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", cells}}})
		for i, n := range nodes {
			c.Physical[i].Address = n
		}
		return c
	}
	s := freshScheduler(t, named(2, "a", "b", "c"))
	r := flatGang("A", "g", 0, 2, 4)
	pods := mustRun(t, s, r)
	s, changes, err := s.Reconfigure(named(1, "a", "b", "c"))
	require.NoError(t, err)
	require.Len(t, changes, 1)
	last := named(1, "b", "c")
	s, changes, err = s.Reconfigure(last)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.True(t, changes[0].Restored)
	g, _ := s.Gang("A", "g")
	require.False(t, g.Downgraded)
	n := freshScheduler(t, last)
	for i, p := range pods {
		lost, err := n.Allocate(p, r, changes[0].Placement.clone(), i)
		require.NoError(t, err)
		assert.Empty(t, lost, "what is written after the second change says that it has its guarantee")
	}
}

func TestAGangThatIsTooLargeIsRefusedEvenIfItsQuotaIsUsedUp(t *testing.T) {
	s := freshScheduler(t, quads(1, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 1}}, Quota: Quota{PerUser: 8}}))
	r := flatGang("A", "first", 0, 1, 4)
	r.User = "u"
	mustRun(t, s, r)
	large := flatGang("A", "large", 0, 2, 4)
	large.User = "u"
	d := s.Schedule("p", large, Filtering, nil)
	assert.Equal(t, Refuse, d.Result, d.Reason)
}

// A gang that can never start must get a message. The gang may be larger than the cluster, its virtual cluster, its pinned
// cell, its quota, or any cell of its required type.
func TestAGangThatCanNeverStartSaysSo(t *testing.T) {
	c := quads(4, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 2}}, Pinned: []string{"p"}, Quota: Quota{Users: map[string]int{"u": 2}}})
	c.Physical[3].Pinned = "p"
	s := freshScheduler(t, c)
	mustRun(t, s, flatGang("A", "first", 0, 1, 4)) // even an empty cluster couldn't run the gangs below
	pinned := flatGang("A", "g", 0, 2, 4)
	pinned.PinnedCell = "p"
	limited := flatGang("A", "g", 0, 1, 4)
	limited.User = "u"
	within := flatGang("A", "g", -1, 2, 4)
	within.Root.Within = "NODE"
	for name, one := range map[string]struct {
		request *Request
		want    string
	}{
		"opportunistic, larger than the cluster": {flatGang("A", "g", -1, 5, 4), "the gang can never start: it requests 20 GPUs, but the cluster has 16 in one chain; request less"},
		"larger than its virtual cluster":        {flatGang("A", "g", 0, 3, 4), "the gang can never start: it requests 12 GPUs, but virtual cluster A has 8 in one chain; request less"},
		"larger than its pinned cell":            {pinned, "the gang can never start: it requests 8 GPUs, but the pinned cell p has 4 in one chain; request less"},
		"larger than its quota":                  {limited, "the gang can never start: user u holds 0 of 2 GPUs that one user may hold in virtual cluster A; the gang requests 4; request less, or use priority -1"},
		"larger than any cell of its topology":   {within, "the gang can never start: the cluster has no cells that fit its shape even when idle (2 pods of 4 GPUs); request smaller pods or another cell type"},
	} {
		d := s.Schedule("p", one.request, Filtering, nil)
		assert.Equal(t, Refuse, d.Result, name)
		assert.Equal(t, one.want, d.Reason, name)
		e := s.Why(one.request)
		assert.Equal(t, Unsatisfiable, e.Code, name)
		assert.Equal(t, sentence(one.want), e.Sentence, name)
	}
}

func TestADecisionOfAnEarlierPlaceIsNotAccepted(t *testing.T) {
	s := freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 2}}}))
	r := flatGang("A", "g", 0, 2, 4)
	pods := mustRun(t, s, r)
	s.DeleteAllocated(pods[1])
	late := s.Schedule("late", r, Filtering, nil)
	require.Equal(t, Bind, late.Result)
	s.DeleteAllocated(pods[0])
	mustRun(t, s, flatGang("A", "guest", Opportunistic, 1, 1))
	s.DeleteAllocated("guesta")
	d := s.Schedule("new", r, Filtering, nil)
	require.Equal(t, Bind, d.Result)
	_, err := s.Allocate("new", r, d.Placement, d.Slot)
	require.NoError(t, err)
	_, err = s.Allocate("late", r, late.Placement, late.Slot)
	require.ErrorIs(t, err, ErrConflict, "its annotation would claim the earlier gang's place after a restart")
}

func TestASingleNodeLiesInARackWhereverItIs(t *testing.T) {
	s := freshScheduler(t, racks(2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK.NODE", 2}}}))
	r := flatGang("A", "g", 0, 1, 2)
	r.Root.Within = "RACK"
	mustRun(t, s, r)
	large := flatGang("A", "large", 0, 2, 2)
	large.Root.Within = "RACK"
	assert.Equal(t, Refuse, s.Schedule("p", large, Filtering, nil).Result, "nobody promised that its two nodes are in one rack")
}

func TestNodesOfOneGangThatNoRowCanGiveAloneComeFromSeveral(t *testing.T) {
	// The virtual cluster C owns two racks. Four nodes from the empty row would leave only one whole rack for C, so the nodes
	// must come from both rows.
	c := Config{Types: []Type{{"NODE", "GPU", 2, true}, {"RACK", "NODE", 3, false}, {"ROW", "RACK", 2, false}},
		Physical: []Physical{{Type: "ROW"}, {Type: "ROW"}}, VirtualClusters: []VirtualCluster{
			{Name: "A", Cells: []Virtual{{"ROW.NODE", 5}}}, {Name: "C", Cells: []Virtual{{"ROW.RACK", 2}}}}}
	s := freshScheduler(t, c)
	mustRun(t, s, flatGang("C", "idle", Opportunistic, 3, 2))
	mustRun(t, s, flatGang("A", "one", 0, 1, 2))
	mustRun(t, s, flatGang("A", "four", 0, 4, 2))
}

func TestAPodThatIsNotOfTheGangDoesNotJoinIt(t *testing.T) {
	ofAnn := func() *Request {
		r := flatGang("A", "g", 0, 2, 1)
		r.User, r.UserGroup = "ann", "team"
		return r
	}
	for name, c := range map[string]struct {
		change func(r *Request)
		says   string
	}{
		"two GPUs":       {func(r *Request) { r.Root.Pods[0].Cells = 2 }, "differ in number or size"},
		"one more":       {func(r *Request) { r.Root.Pods[0].Count = 3 }, "differ in number or size"},
		"more priority":  {func(r *Request) { r.Priority = 3 }, "its priority is 0, not 3"},
		"another user":   {func(r *Request) { r.User = "bob" }, `to user "ann", not "bob"`},
		"another group":  {func(r *Request) { r.UserGroup = "" }, `to group "team", not ""`},
		"other hardware": {func(r *Request) { r.LeafType = "GPU" }, "other cells"},
		"the same":       {func(*Request) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 2}}}))
			r := ofAnn()
			d := s.Schedule("first", r, Filtering, nil)
			require.Equal(t, Bind, d.Result)
			_, err := s.Allocate("first", r, d.Placement, d.Slot)
			require.NoError(t, err)
			other := ofAnn()
			c.change(other)
			d = s.Schedule("second", other, Filtering, nil)
			if c.says == "" {
				require.Equal(t, Bind, d.Result, d.Reason)
				assert.Len(t, d.Indices, 1)
				return
			}
			assert.Equal(t, Wait, d.Result)
			assert.Contains(t, d.Reason, c.says)
			s.DeleteAllocated("first")
			d = s.Schedule("second", other, Filtering, nil)
			require.Equal(t, Bind, d.Result, "its own gang: %s", d.Reason)
			assert.Len(t, d.Indices, other.Root.Pods[0].Cells)
		})
	}
}

func TestAnOrderInAnAnnotationDoesNotStopTheCount(t *testing.T) {
	s := freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 2}}}))
	first := mustRun(t, s, flatGang("A", "a", 0, 1, 1))
	at := s.pods[first[0]].gang.placement.clone()
	s.DeleteAllocated(first[0])
	at.Order = 1<<64 - 1
	_, err := s.Allocate(first[0], flatGang("A", "a", 0, 1, 1), at, 0)
	require.NoError(t, err)
	mustRun(t, s, flatGang("A", "b", 0, 1, 1))
	older, younger := s.gangs[gangKey{"A", "a"}].order, s.gangs[gangKey{"A", "b"}].order
	assert.Less(t, older, younger)
	assert.Positive(t, older)
}

func TestGangsWithoutAUserHoldTogetherWhatOneMay(t *testing.T) {
	s := freshScheduler(t, quads(3, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 3}}, Quota: Quota{PerUser: 4, Users: map[string]int{"u": 8}}}))
	mustRun(t, s, flatGang("A", "first", 0, 1, 4))
	d := s.Schedule("p", flatGang("A", "second", 0, 1, 4), Filtering, nil)
	assert.Equal(t, Wait, d.Result)
	assert.Equal(t, "gangs without a user hold 4 of 4 GPUs that one user may hold in virtual cluster A; the gang requests 4", d.Reason)
	named := flatGang("A", "third", 0, 1, 4)
	named.User = "u"
	mustRun(t, s, named)
	s.DeleteAllocated("firsta")
	mustRun(t, s, flatGang("A", "second", 0, 1, 4))
}
