package cell

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// policies returns a configuration of nodes with 8 GPUs each. The virtual cluster owner owns all nodes except two. patient and
// eager own one node each.
func policies(nodes int) Config {
	c := Config{Types: []Type{{"NODE", "GPU", 8, true}}, VirtualClusters: []VirtualCluster{
		{Name: "owner", Cells: []Virtual{{"NODE", nodes - 2}}},
		{Name: "patient", Cells: []Virtual{{"NODE", 1}}, Policy: "fewer-kills"},
		{Name: "eager", Cells: []Virtual{{"NODE", 1}}, Policy: "start-now"},
	}}
	for range nodes {
		c.Physical = append(c.Physical, Physical{Type: "NODE"})
	}
	return c
}

// preempt runs a guaranteed gang of owner that must preempt other gangs, and returns its victims.
func preempt(t *testing.T, s *Scheduler, r *Request) []Victim {
	t.Helper()
	d := s.Schedule(PodID(r.Gang+"a"), r, Preempting, nil)
	require.Equal(t, Preempt, d.Result, d.Reason)
	for _, v := range d.Victims {
		s.DeleteAllocated(v.Pod)
	}
	mustRun(t, s, r)
	return d.Victims
}

func TestOnlyThePoliciesThatHoldBackDo(t *testing.T) {
	s := freshScheduler(t, policies(32)) // 256 GPUs
	for i := range 32 {
		mustRun(t, s, flatGang("eager", fmt.Sprintf("o%d", i), Opportunistic, 1, 8))
	}
	victims := preempt(t, s, flatGang("owner", "guaranteed", 0, 2, 8))
	require.Len(t, victims, 2)
	for i := range 32 { // another node becomes idle
		if _, ok := s.DeleteAllocated(PodID(fmt.Sprintf("o%da", i))); ok {
			break
		}
	}
	patient, eager := flatGang("patient", "p", Opportunistic, 1, 8), flatGang("eager", "e", Opportunistic, 1, 8)
	assert.Equal(t, "HeldBack", s.Why(patient).Code)
	assert.Equal(t, "Ready", s.Why(eager).Code)
	d := s.Schedule("p", patient, Filtering, nil)
	assert.Equal(t, Wait, d.Result)
	assert.Contains(t, d.Reason, "are delayed")
	mustRun(t, s, eager)
}

func TestAnyoneIsHeldBackOnlyForAWhile(t *testing.T) {
	s := freshScheduler(t, policies(32))
	for i := range 32 {
		mustRun(t, s, flatGang("eager", fmt.Sprintf("o%d", i), Opportunistic, 1, 8))
	}
	require.Len(t, preempt(t, s, flatGang("owner", "guaranteed", 0, 1, 8)), 1)
	for i := range 32 {
		if _, ok := s.DeleteAllocated(PodID(fmt.Sprintf("o%da", i))); ok {
			break
		}
	}
	tries := 0
	for s.Schedule("p", flatGang("patient", "p", Opportunistic, 1, 8), Filtering, nil).Result != Bind {
		tries++
		require.Less(t, tries, 10_000)
	}
	assert.Positive(t, tries)
}

func TestPoliciesWeighVictims(t *testing.T) {
	for policy, want := range map[string]string{"": "single", "balanced": "single", "start-now": "single", "fewer-kills": "wide"} {
		t.Run(policy, func(t *testing.T) {
			c := policies(8)
			c.VirtualClusters[0].Policy = policy
			s := freshScheduler(t, c)
			mustRun(t, s, flatGang("eager", "single", Opportunistic, 1, 8))
			mustRun(t, s, flatGang("eager", "wide", Opportunistic, 7, 8)) // this gang is younger
			victims := preempt(t, s, flatGang("owner", "guaranteed", 0, 1, 8))
			assert.Equal(t, want, victims[0].Gang)
		})
	}
}

func TestAPolicyThatDoesNotExistIsRefused(t *testing.T) {
	c := policies(8)
	c.VirtualClusters[1].Policy = "fewer-kill"
	problems := c.Validate()
	require.Len(t, problems, 1)
	assert.Equal(t, []any{"virtualClusters", "patient", "policy"}, problems[0].Path)
	assert.Equal(t, `there is no policy "fewer-kill"`, problems[0].Message)
	assert.Equal(t, "the policies are balanced, fewer-kills, start-now", problems[0].Remedy)
}
