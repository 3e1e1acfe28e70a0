package alerthandler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// However many jobs are idle, there is room for the Actions of broken machines.
func TestIdleJobsLeaveRoomForMachines(t *testing.T) {
	build := func(jobs, machines int, phase v1.Phase) map[string]*v1.Action {
		out := map[string]*v1.Action{}
		for i := range jobs + machines {
			a := &v1.Action{Spec: v1.ActionSpec{By: v1.Requester{Kind: v1.ByPolicy, Name: "p"}}, Status: v1.ActionStatus{Phase: phase}}
			if i < jobs {
				a.Spec.Job = &v1.Job{}
			} else {
				a.Spec.Machine = &v1.Machine{}
			}
			out[fmt.Sprint(i)] = a
		}
		return out
	}
	for _, c := range []struct {
		all            map[string]*v1.Action
		jobs, machines bool
	}{
		{build(999, 999, v1.PhasePending), false, false},
		{build(1000, 0, v1.PhasePending), true, false},
		{build(0, 1000, v1.PhasePending), false, true},
		{build(9000, 0, v1.PhaseSucceeded), true, false},
		{build(10_000, 0, v1.PhaseSucceeded), true, true},
	} {
		require.Equal(t, c.jobs, full(c.all, true), "%d Actions", len(c.all))
		require.Equal(t, c.machines, full(c.all, false), "%d Actions", len(c.all))
	}
}
