package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/ssh"
)

// TestAFailureOnAHostIsToldWithItsCauseAndARemedy breaks a different part of one machine in each case.
func TestAFailureOnAHostIsToldWithItsCauseAndARemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, host, file, text      string
		phase, failure, remedy, all string
		exit                        int
	}{
		{
			name: "a unit does not start", host: "w1", file: "/.fake/fail/containerd.service",
			phase: phases.PhaseContainerd, failure: "containerd/apply on w1: exit status 1: Job for containerd.service failed", remedy: "/var/lib/paictl/journal on the host", exit: 3, all: "w1",
		},
		{
			name: "a module cannot be loaded", host: "w1", file: "/.fake/fail/modprobe-overlay",
			phase: phases.PhaseBase, failure: "kernel module overlay cannot be loaded", remedy: "run the same command again", exit: 3, all: "w1",
		},
		{
			name: "verify finds that containerd does not answer", host: "w1", file: "/.fake/fail/ctr-version",
			phase: phases.PhaseContainerd, failure: "containerd/verify on w1: exit status 1: containerd does not answer on its socket", remedy: "journalctl -u containerd", exit: 3, all: "w1",
		},
		{
			name: "kubeadm join fails", host: "w1", file: "/.fake/fail/kubeadm-join", text: "timed out waiting for the kubelet\n",
			phase: engine.PhaseJoin, failure: "error execution phase kubelet-start: timed out waiting", remedy: "run the same command again", exit: 3, all: "w1",
		},
		{
			name: "kubeadm init fails, and nobody can join", host: "m1", file: "/.fake/fail/kubeadm-init", text: "the API server did not come up\n",
			phase: engine.PhaseInit, failure: "error execution phase wait-control-plane: the API server did not come up", remedy: "run the same command again", exit: 1, all: "m1 w1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 1, 1)
			l.host(c.host).write(c.file, c.text)
			o := l.up(t.Context())
			partial, ok := errors.AsType[*engine.PartialError](o.err)
			require.True(t, ok, "%v", o.err)
			assert.Equal(t, c.exit, partial.ExitCode())
			hosts := map[string]engine.Failed{}
			for _, f := range partial.Failed {
				hosts[f.Host] = f
			}
			assert.Len(t, hosts, len(strings.Fields(c.all)))
			f := hosts[c.host]
			assert.Equal(t, c.phase, f.Phase)
			assert.Contains(t, f.Error, c.failure)
			assert.NotContains(t, f.Error, "\n")
			assert.Contains(t, f.Hint, c.remedy)
			if other, ok := hosts["w1"]; ok && c.host == "m1" {
				assert.Equal(t, "phase init on m1, which this phase needs, has failed", other.Error)
				assert.Equal(t, "repair m1 first", other.Hint)
			}
			l.host(c.host).remove(c.file)
			l.mustUp()
		})
	}
}

// While another master joins, etcd elects a leader, so the API server may take longer than kubeadm's limit of 10 s.
func TestAMachineJoinsAgainIfTheAPIServerWasSlow(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	joins := func() (n int) {
		for _, call := range l.host("w1").calls() {
			if strings.HasPrefix(call, "kubeadm join") {
				n++
			}
		}
		return n
	}
	l.host("w1").write("/.fake/fail/kubeadm-join-slow", "1\n2\n3\n4\n")
	o := l.up(t.Context())
	require.ErrorContains(t, o.err, "1 of 2 hosts failed")
	assert.Equal(t, 3, joins())
	l.forgetCalls()
	o = l.mustUp()
	assert.Equal(t, 2, joins())
	assert.True(t, slices.ContainsFunc(o.events, func(e engine.Event) bool {
		return e.Kind == engine.EventWarning && e.Host == "w1" && strings.Contains(e.Message, "kubeadm join is run again")
	}))
}

// TestWhatWasCutOffRightAfterItsEffectIsStillFinished ends a program after it has changed the host. The state is already right, but another step or a
// record is still missing.
func TestWhatWasCutOffRightAfterItsEffectIsStillFinished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, program, file, want string }{
		{"swap stays off after a restart", "swapoff", "/etc/fstab", "\n#paictl-swap# /dev/vda2 none swap"},
		{"a module is known to be paictl's", "modprobe", engine.StateDir + "/owned", "module\toverlay\tloaded\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 1, 1)
			w1 := l.host("w1")
			w1.swap()
			w1.write("/.fake/cut/"+c.program, "")
			base := func(o *labOptions, _ *ssh.Options) { o.Phases = []string{phases.PhaseBase} }
			require.ErrorAs(t, l.up(t.Context(), base).err, new(*engine.PartialError))
			w1.remove("/.fake/cut/" + c.program)
			require.NoError(t, l.up(t.Context(), base).err)
			assert.Contains(t, w1.read(c.file), c.want)
		})
	}
}
