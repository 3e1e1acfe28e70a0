package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

func TestAMachineIsLookedAtInOneRoundTripAndNothingOfItSpoilsTheRest(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	l.host("w2").server.Close()
	l.host("w1").write("/etc/kubernetes/kubelet.conf", "x")
	o := l.options()
	look, err := Inspect(t.Context(), l.spec(), o, func(n *engine.Node) string {
		return "false\nprintf 'hello\\t%s\\n' " + n.Hostname + "\nno-such-program-of-paictl\nprintf 'end\\tok\\n'"
	})
	require.NoError(t, err)
	assert.Equal(t, 1, o.RoundTrips("m1"))
	assert.Equal(t, 1, o.RoundTrips("w1"))

	w1 := look.Machines["w1"]
	require.NoError(t, w1.Err)
	assert.Equal(t, [][]string{{"hello", "w1"}, {"end", "ok"}}, w1.More, "a command that fails doesn't end the caller's script")
	assert.NotContains(t, w1.Broken, "base")
	assert.False(t, w1.AnsweredAt.Before(w1.QueriedAt))
	assert.Nil(t, w1.Etcd, "a worker has none")
	var targets []string
	for _, c := range w1.Settings {
		assert.Equal(t, "w1", c.Host)
		targets = append(targets, c.Target)
	}
	assert.Contains(t, targets, phases.SysctlFile, "a new machine lacks all that paictl writes")
	assert.Contains(t, targets, "/etc/hosts")

	require.Error(t, look.Machines["w2"].Err)
	require.Len(t, look.Status.Machines, 3)
	assert.Equal(t, StateUnreachable, look.Status.Machines[2].State)
	assert.Empty(t, look.Preflight, "whoever is no member yet isn't held against")
}

func TestWhatWasFoundIsRepaired(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 1)
	o := l.options()
	look, err := Inspect(t.Context(), l.spec(), o, func(*engine.Node) string { return "" })
	require.NoError(t, err)
	found := look.Machines["w1"].Settings
	require.NotEmpty(t, found)

	// The gate of a dry run also applies to Repair.
	refused := Repair(t.Context(), l.spec(), o, map[string][]engine.Change{"w1": found})
	require.ErrorContains(t, refused["w1"], "dry run")
	assert.NoFileExists(t, l.host("w1").root+phases.SysctlFile)

	o = l.writing()
	assert.Empty(t, Repair(t.Context(), l.spec(), o, map[string][]engine.Change{"w1": found}))
	assert.FileExists(t, l.host("w1").root+phases.SysctlFile)
	assert.Empty(t, RunOn(t.Context(), l.spec(), o, "doctor", map[string]string{"w1": "echo done >\"$R/done\""}))
	assert.FileExists(t, l.host("w1").root+"/done")
	failed := RunOn(t.Context(), l.spec(), o, "doctor", map[string]string{"w1": "echo it is broken >&2; false"})
	require.ErrorContains(t, failed["w1"], "it is broken")

	look, err = Inspect(t.Context(), l.spec(), o, func(*engine.Node) string { return "" })
	require.NoError(t, err)
	for _, c := range look.Machines["w1"].Settings {
		assert.NotContains(t, c.Target, "/etc/", "it was written")
	}
}

func TestTheLooksScriptsAreSound(t *testing.T) {
	t.Parallel()
	s := newLab(t, 1, 1).spec()
	for _, n := range s.Nodes {
		settings, err := phases.Named(s.Fresh(), phases.PhaseBase).Detect(n)
		require.NoError(t, err)
		driver, err := phases.Named(keepingDrivers(s).Fresh(), phases.PhaseDriver).Detect(n)
		require.NoError(t, err)
		sound(t, lookProgram(s.Fresh(), n, settings, driver, "echo more"))
	}
}

func (l *lab) writing() engine.Options {
	client := ssh.NewClient(sshtest.Options(l.t, l.servers()...))
	l.t.Cleanup(func() { _ = client.Close() })
	o := l.options()
	o.Dialer = client
	return o
}
