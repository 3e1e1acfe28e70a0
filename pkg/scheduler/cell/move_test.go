package cell

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func only(nodes ...string) Nodes {
	o := offered{}
	for _, n := range nodes {
		o[n] = true
	}
	return o
}

// rackOf returns a configuration of racks with named nodes (r0n0, r0n1 and so on) that have two GPUs each.
func rackOf(racks, nodes int, vcs ...VirtualCluster) Config {
	c := Config{Types: []Type{{"NODE", "GPU", 2, true}, {"RACK", "NODE", nodes, false}}, VirtualClusters: vcs}
	for r := range racks {
		p := Physical{Type: "RACK"}
		for n := range nodes {
			p.Children = append(p.Children, Physical{Address: fmt.Sprintf("r%dn%d", r, n)})
		}
		c.Physical = append(c.Physical, p)
	}
	return c
}

// comeBack schedules and allocates a pod that may run only on the given nodes.
func comeBack(t *testing.T, s *Scheduler, pod PodID, r *Request, nodes Nodes) Decision {
	t.Helper()
	own := *r
	own.OnlySuggested = true
	before := s.digest(true)
	d := s.Schedule(pod, &own, Filtering, nodes)
	require.Equal(t, before, s.digest(true), "a decision alone changes nothing")
	if d.Result == Bind {
		_, err := s.Allocate(pod, &own, d.Placement, d.Slot)
		require.NoError(t, err)
	}
	require.NoError(t, s.Check())
	return d
}

func placesOf(s *Scheduler, vc, name string) []string {
	var out []string
	for _, at := range s.gangs[gangKey{vc, name}].placement.Pods {
		out = append(out, at.Node)
	}
	return out
}

func TestAPodThatComesBackGetsItsPlaceOrAnotherOne(t *testing.T) {
	owns := func(cells ...Virtual) VirtualCluster { return VirtualCluster{Name: "A", Cells: cells} }
	for name, c := range map[string]struct {
		config Config
		gang   *Request
		before func(t *testing.T, s *Scheduler) // before the gang starts
		after  func(t *testing.T, s *Scheduler) // after the gang's second pod has ended
		nodes  Nodes
		at     string // "" if the pod waits
		says   string
	}{
		"its place again where nothing is against it": {
			config: rackOf(2, 2, owns(Virtual{"RACK", 2})), gang: flatGang("A", "g", 0, 2, 2), at: "r0n1",
		},
		"another node where it must not run on its own": {
			config: rackOf(2, 2, owns(Virtual{"RACK.NODE", 4})), gang: flatGang("A", "g", 0, 2, 2),
			nodes: only("r0n0", "r1n0", "r1n1"), at: "r1n0",
		},
		"another rack that is idle, though the virtual cluster has its own old node free": {
			config: rackOf(2, 3, owns(Virtual{"RACK", 2})), gang: flatGang("A", "g", 0, 3, 2),
			nodes: only("r1n2"), at: "r1n2",
		},
		"the node in the rack of its gang rather than one in another": {
			config: rackOf(3, 3, owns(Virtual{"RACK.NODE", 9})), gang: flatGang("A", "g", 0, 2, 2),
			nodes: only("r1n0", "r2n0", "r0n2"), at: "r0n2",
		},
		"another GPU where its own is bad": {
			config: quads(1, owns(Virtual{"NODE", 1})), gang: flatGang("A", "g", 0, 2, 1),
			after: func(_ *testing.T, s *Scheduler) { s.SetDevice("0", 1, false) }, at: "0",
		},
		"the node that has the cells of its virtual cluster, though they are unbound": {
			config: rackOf(2, 2, owns(Virtual{"RACK.NODE", 2}), VirtualCluster{Name: "B", Cells: []Virtual{{"RACK.NODE", 2}}}), gang: flatGang("A", "g", 0, 2, 2),
			before: func(t *testing.T, s *Scheduler) { mustRun(t, s, flatGang("B", "b", 0, 1, 2)) },
			nodes:  only("r0n0", "r1n0", "r1n1"), at: "r1n1",
		},
		"nothing where the other cells of its virtual cluster are in use": {
			config: rackOf(2, 2, owns(Virtual{"RACK", 1}), VirtualCluster{Name: "B", Cells: []Virtual{{"RACK", 1}}}), gang: flatGang("A", "g", 0, 2, 2),
			nodes: only("r0n0", "r1n0", "r1n1"), says: "node r0n1 isn't one that it may run on, and no idle cells of virtual cluster A",
		},
		"nothing where gangs would have to end for it": {
			config: rackOf(2, 2, owns(Virtual{"RACK.NODE", 4})), gang: flatGang("A", "g", 0, 2, 2),
			after: func(t *testing.T, s *Scheduler) { mustRun(t, s, flatGang("A", "o", Opportunistic, 2, 2)) },
			nodes: only("r0n0", "r1n0", "r1n1"), says: "a running gang preempts no others for one of its pods",
		},
		"an idle node beside one where a gang would have to end": {
			config: rackOf(2, 2, owns(Virtual{"RACK.NODE", 4})), gang: flatGang("A", "g", 0, 2, 2),
			after: func(t *testing.T, s *Scheduler) { mustRun(t, s, flatGang("A", "o", Opportunistic, 1, 2)) },
			nodes: only("r0n0", "r1n0", "r1n1"), at: "r1n1",
		},
		"nothing outside of the cell that its group must not leave": {
			config: rackOf(2, 2, owns(Virtual{"RACK", 2})), gang: within("RACK", flatGang("A", "g", 0, 2, 2)),
			nodes: only("r0n0", "r1n0", "r1n1"), says: "in the RACK ",
		},
		"another place in the cell that its group must not leave": {
			config: rackOf(2, 3, owns(Virtual{"RACK", 2})), gang: within("RACK", flatGang("A", "g", 0, 2, 2)),
			nodes: only("r0n0", "r0n2", "r1n0", "r1n1"), at: "r0n2",
		},
		"nothing outside of a cell inside its node": {
			config: quads(2, owns(Virtual{"NODE", 2})), gang: within("PAIR", flatGang("A", "g", 0, 2, 1)),
			after: func(_ *testing.T, s *Scheduler) { s.SetDevice("0", 1, false) }, says: "in the PAIR ",
		},
		"idle devices of the whole chain for an opportunistic gang": {
			config: rackOf(2, 2, owns(Virtual{"RACK", 1})), gang: flatGang("A", "g", Opportunistic, 2, 2),
			nodes: only("r1n1"), at: "r1n1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := freshScheduler(t, c.config)
			if c.before != nil {
				c.before(t, s)
			}
			pods := mustRun(t, s, c.gang)
			last := len(pods) - 1
			s.DeleteAllocated(pods[last])
			if c.after != nil {
				c.after(t, s)
			}
			was := placesOf(s, "A", "g")
			d := comeBack(t, s, "again", c.gang, c.nodes)
			if c.at == "" {
				assert.Equal(t, Wait, d.Result)
				assert.Contains(t, d.Reason, c.says)
				assert.Equal(t, was, placesOf(s, "A", "g"), "its place is kept")
				return
			}
			require.Equal(t, Bind, d.Result, d.Reason)
			assert.Equal(t, c.at, d.Node)
			assert.Equal(t, was[:last], placesOf(s, "A", "g")[:last], "the others stay")
			assert.Equal(t, c.gang.Priority < MinGuaranteed, s.gangs[gangKey{"A", "g"}].opportunistic())
		})
	}
}

// within returns a request for a gang that must be in one cell of a type.
func within(level string, r *Request) *Request {
	r.Root.Within = level
	return r
}

func TestWhatAPodLeavesIsFreeAndWhatItGetsIsNot(t *testing.T) {
	s := freshScheduler(t, rackOf(2, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK.NODE", 3}}, Quota: Quota{PerUser: 6}}))
	r := flatGang("A", "g", 0, 2, 2)
	r.User = "u"
	pods := mustRun(t, s, r)
	s.DeleteAllocated(pods[1])
	require.Equal(t, "r1n0", comeBack(t, s, "again", r, only("r1n0")).Node)
	other := flatGang("A", "h", 0, 1, 2)
	other.User = "u"
	d := comeBack(t, s, "h", other, only("r0n1", "r1n0"))
	assert.Equal(t, "r0n1", d.Node)
	for _, pod := range []PodID{pods[0], "again", "h"} {
		s.DeleteAllocated(pod)
		require.NoError(t, s.Check())
	}
	assert.Empty(t, s.gangs)
	assert.Zero(t, s.Stats().UsedGPUs)
}

func TestAMoveThatIsTooLateIsRefused(t *testing.T) {
	s := freshScheduler(t, rackOf(2, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK.NODE", 4}}}))
	r := flatGang("A", "g", 0, 2, 2)
	r.OnlySuggested = true
	pods := mustRun(t, s, r)
	s.DeleteAllocated(pods[1])
	late := s.Schedule("late", r, Filtering, only("r1n0"))
	require.Equal(t, "r1n0", late.Node)
	mustRun(t, s, flatGang("A", "h", 0, 1, 2))
	before := s.dump()
	_, err := s.Allocate("late", r, late.Placement, late.Slot)
	require.ErrorIs(t, err, ErrConflict)
	assert.Equal(t, before, s.dump())
}

func TestAPodWhoseNodeIsGoneFromTheConfigurationMoves(t *testing.T) {
	owner := VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 2}}}
	named := func(nodes ...string) Config {
		c := quads(len(nodes), owner)
		for i, n := range nodes {
			c.Physical[i].Address = n
		}
		return c
	}
	s := freshScheduler(t, named("a", "b", "c"))
	r := flatGang("A", "g", 0, 2, 4)
	pods := mustRun(t, s, r)
	s.DeleteAllocated(pods[1])
	s, _, err := s.Reconfigure(named("a", "c"))
	require.NoError(t, err)
	assert.Equal(t, "c", comeBack(t, s, "again", r, nil).Node)
}

func TestADowngradedGangKeepsRunningDowngradedWhereItMoves(t *testing.T) {
	s := freshScheduler(t, rackOf(3, 2, VirtualCluster{Name: "A", Cells: []Virtual{{"RACK.NODE", 2}}}, VirtualCluster{Name: "B", Cells: []Virtual{{"RACK.NODE", 4}}}))
	lazy := flatGang("A", "g", 0, 2, 2)
	lazy.LazyPreemption = true
	pods := mustRun(t, s, lazy)
	mustRun(t, s, flatGang("A", "strong", 5, 1, 2))
	require.True(t, s.gangs[gangKey{"A", "g"}].opportunistic())
	s.DeleteAllocated(pods[1])
	d := comeBack(t, s, "again", lazy, only("r2n1"))
	require.Equal(t, "r2n1", d.Node)
	assert.True(t, d.Placement.Downgraded)
	same, changes, err := s.Reconfigure(s.config)
	require.NoError(t, err)
	require.NoError(t, same.Check())
	assert.Empty(t, changes)
	assert.Equal(t, placesOf(s, "A", "g"), placesOf(same, "A", "g"))
}
