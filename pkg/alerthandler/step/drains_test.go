package step_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// A person has cordoned many machines on which jobs still run. Policies move the jobs of only a few of these machines within an hour.
func TestDrainsOfCordonedMachinesAreLimited(t *testing.T) {
	l := step.Limits{MachinesPerHour: 2, MachinesOut: 10}
	m := step.Machines{Total: 40, Out: map[string]bool{}, Cordoned: map[string]bool{}}
	var all []*v1.Action
	for i := range 20 {
		name := fmt.Sprintf("node%d", i)
		m.Out[name], m.Cordoned[name] = true, true
		all = append(all, onMachine(v1.OperationDrain, func(a *v1.Action) { a.Name, a.Spec.Machine.Name = name, name }))
	}
	require.Equal(t, 2, round(l, all, m, start))
	require.Equal(t, "it waits: policies may put 2 machines out of service an hour", all[2].Status.Message)
}

// An Action for a machine is in its grace period. An Action for another alert about the same machine doesn't act earlier, unless the limit per hour
// allows it.
func TestAnotherAlertForAMachineInItsGrace(t *testing.T) {
	l := step.Limits{MachinesPerHour: 1, MachinesOut: 1}
	on := func(name, machine string, change ...func(*v1.Action)) *v1.Action {
		return onMachine(v1.OperationDrain, append(change, func(a *v1.Action) { a.Name, a.Spec.Machine.Name = name, machine })...)
	}
	all := []*v1.Action{on("late", "node1", grace(90*time.Minute)), on("other", "node2"), on("second", "node1")}
	m := step.Machines{Total: 40}
	require.Zero(t, round(l, all[:1], m, start))
	l.MachinesOut = 10
	require.Equal(t, 1, round(l, all, m, start))
	require.True(t, all[1].Begun())
	require.Equal(t, "it waits: policies may put 1 machine out of service an hour", all[2].Status.Message)
	l.MachinesOut = 1
	require.Equal(t, 1, round(l, all, m, start.Add(time.Hour)), "its machine has a place in the share")
	require.True(t, all[2].Begun())
	all = append(all, on("third", "node1"))
	require.Equal(t, 1, round(l, all, m, start.Add(time.Hour)), "the machine is put out of service")
}
