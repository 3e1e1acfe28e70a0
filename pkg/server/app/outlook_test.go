package app

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/status"
)

func TestRoomForJobsIsOnMachinesThatRunThem(t *testing.T) {
	machine := func(name, state string, cordoned bool, roles ...string) status.Machine {
		return status.Machine{Name: name, State: state, Cordoned: cordoned, Roles: roles, CPU: status.Amount{Total: 4000, Used: 1000}, Memory: status.Amount{Total: 1024, Used: 24}}
	}
	room := func(name string) job.FreeCapacity {
		return job.FreeCapacity{Machine: name, MilliCPU: 3000, MemoryMB: 1000}
	}
	c := &status.Cluster{Machines: []status.Machine{
		machine("master", status.MachineReady, false, "pai-master"), machine("a", status.MachineReady, false, "pai-worker"),
		machine("cordoned", status.MachineReady, true, "pai-worker"), machine("lost", status.MachineNotReady, false, "pai-worker"),
	}}
	s := &App{Status: models{c}}
	got, err := s.For(Caller{}, Origin{}).rooms(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []job.FreeCapacity{room("a")}, got)

	c.Machines = c.Machines[:1]
	got, err = s.For(Caller{}, Origin{}).rooms(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []job.FreeCapacity{room("master")}, got, "no machine is marked")
}

func TestATokenThatOnlySubmitsGetsNoNamesOfOtherJobs(t *testing.T) {
	s := &App{Lister: where{vcs: map[string]string{"bob/seen": "vision"}}}
	for name, c := range map[string]struct {
		scopes []rules.Scope
		want   string
	}{"session": {nil, "bob/seen"}, "read and submit": {[]rules.Scope{rules.ScopeRead, rules.ScopeSubmit}, "bob/seen"}, "submit": {[]rules.Scope{rules.ScopeSubmit}, ""}} {
		ann := Caller{Subject: rules.Subject{Name: "ann", Grants: rules.Grants{VCs: map[string]rules.VC{"vision": {SeeJobs: true}}}, Token: rules.Token{Application: c.scopes != nil, Scopes: c.scopes}}}
		assert.Equal(t, c.want, s.For(ann, Origin{}).outlookNames()("bob", "seen"), name)
	}
}
