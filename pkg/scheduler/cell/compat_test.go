package cell

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Users of HiveD expect the behavior in each of these tests.

func victimPods(d Decision) []PodID {
	out := []PodID{}
	for _, v := range d.Victims {
		out = append(out, v.Pod)
	}
	return out
}

func TestAGangThatAcceptsADowngradeIsPreferredAsVictim(t *testing.T) {
	for name, c := range map[string]struct {
		idle    int // number of nodes that virtual cluster A may move to
		result  Result
		victims []PodID
	}{
		"while there is hardware to move to, nobody ends":        {idle: 2, result: Bind, victims: []PodID{}},
		"without it, one has to end, as without lazy preemption": {idle: 0, result: Preempt, victims: []PodID{"younga"}},
	} {
		t.Run(name, func(t *testing.T) {
			vcs := []VirtualCluster{{Name: "A", Cells: []Virtual{{"NODE", 2}}}}
			if c.idle > 0 {
				vcs = append(vcs, VirtualCluster{Name: "B", Cells: []Virtual{{"NODE", c.idle}}})
			}
			s := freshScheduler(t, quads(2+c.idle, vcs...))
			lazy := flatGang("A", "lazy", 0, 1, 4)
			lazy.LazyPreemption = true
			mustRun(t, s, lazy)
			mustRun(t, s, flatGang("A", "young", 0, 1, 4))
			urgent := flatGang("A", "urgent", 5, 1, 4)
			d := s.Schedule("u", urgent, Filtering, nil)
			require.Equal(t, c.result, d.Result, d.Reason)
			assert.Equal(t, c.victims, victimPods(d))
			require.NoError(t, s.Check())
			if d.Result != Bind {
				return
			}
			downgrades, err := s.Allocate("u", urgent, d.Placement, d.Slot)
			require.NoError(t, err)
			require.NoError(t, s.Check())
			require.Len(t, downgrades, 1)
			assert.Equal(t, "lazy", downgrades[0].Gang)
		})
	}
}

func TestAGangWhoseCellsWentToSeveralChainsIsToldSo(t *testing.T) {
	types := []Type{{"NODE", "GPU", 2, true}, {"RACK", "NODE", 2, false}}
	before := Config{Types: types, Physical: []Physical{{Type: "RACK", Children: []Physical{{Address: "a"}, {Address: "b"}}}},
		VirtualClusters: []VirtualCluster{{Name: "A", Cells: []Virtual{{"RACK.NODE", 2}}}}}
	after := Config{Types: append(types, Type{"OTHER", "GPU", 2, true}), Physical: []Physical{{Type: "NODE", Address: "a"}, {Type: "OTHER", Address: "b"}},
		VirtualClusters: []VirtualCluster{{Name: "A", Cells: []Virtual{{"NODE", 1}, {"OTHER", 1}}}}}
	s := freshScheduler(t, before)
	r := flatGang("A", "g", 0, 2, 2)
	d := s.Schedule("p", r, Filtering, nil)
	require.Equal(t, Bind, d.Result, d.Reason)
	s = freshScheduler(t, after) // this scheduler doesn't know the plan behind the placement
	downgrades, err := s.Allocate("p", r, d.Placement, d.Slot)
	require.NoError(t, err)
	require.NoError(t, s.Check())
	require.Empty(t, downgrades, "where its other pod is isn't certain")
	downgrades, err = s.Allocate("q", r, d.Placement, 1-d.Slot)
	require.NoError(t, err)
	require.NoError(t, s.Check())
	require.NotEmpty(t, downgrades)
	assert.Equal(t, "its cells are in the chains NODE and OTHER now, and a gang is guaranteed cells of one", downgrades[0].Reason)
}
