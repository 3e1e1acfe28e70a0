package step_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// A person has cordoned many machines, whose jobs continue. Policies move the jobs of only a few of them within an hour.
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
