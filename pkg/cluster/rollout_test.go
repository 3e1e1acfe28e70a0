package cluster

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
)

const badMaxPods = "the kubelet does not stay up: failed to merge kubelet configs: failed to unmarshal merged JSON into kubelet configuration: " +
	"json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32"

// failures returns the errors of the hosts that failed in a run. It also checks the exit code of the run.
func failures(t *testing.T, o *outcome, exit int) map[string]engine.Failed {
	t.Helper()
	partial, ok := errors.AsType[*engine.PartialError](o.err)
	require.True(t, ok, "%v", o.err)
	assert.Equal(t, exit, partial.ExitCode())
	out := map[string]engine.Failed{}
	for _, f := range partial.Failed {
		out[f.Host] = f
	}
	return out
}

// TestAKubeletThatDoesNotRunOnAMemberIsStarted checks that "cluster up" starts a kubelet that has ended, and verifies that the kubelet keeps running.
func TestAKubeletThatDoesNotRunOnAMemberIsStarted(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	l.made()
	w1 := l.host("w1")
	for _, c := range []struct {
		name, want string
		do         func()
	}{
		{"stopped", "w1 kubelet start kubelet.service", func() { w1.remove("/.fake/units/kubelet.service.active") }},
		{"stopped and disabled", "w1 kubelet enable kubelet.service", func() {
			w1.remove("/.fake/units/kubelet.service.active")
			w1.remove("/.fake/units/kubelet.service.enabled")
		}},
		{"between two of its ends", "w1 kubelet start kubelet.service it crashes repeatedly", func() {
			w1.remove("/.fake/units/kubelet.service.active")
			w1.write("/.fake/units/kubelet.service.looping", "7\n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.do()
			o := l.mustUp()
			assert.Equal(t, []string{c.want}, splitLines(lines(o.changes)))
			assert.FileExists(t, w1.root+"/.fake/units/kubelet.service.active")
			assert.Empty(t, lines(l.mustUp().changes))
		})
	}
	t.Run("on a machine that joins again it is left to kubeadm", func(t *testing.T) {
		w1.remove("/.fake/units/kubelet.service.active")
		require.NoError(t, os.RemoveAll(l.cluster+"/nodes/w1"))
		assert.NotContains(t, lines(l.mustUp().changes), "w1 kubelet ")
		assert.FileExists(t, w1.root+"/.fake/units/kubelet.service.active")
	})
}

// TestABadSettingOfTheKubeletBreaksOneMachine checks that each run breaks only the same machine and reports the cause. The other machines keep their
// settings. A good setting then reaches all machines.
func TestABadSettingOfTheKubeletBreaksOneMachine(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 3)
	l.made()
	k := &l.conf.Kubernetes.Kubernetes
	k.Extra.Kubelet = map[string]any{"maxPods": "many"}
	for _, run := range []string{"the first run", "a repeated one"} {
		l.forgetCalls()
		o := l.up(t.Context())
		got := failures(t, o, 3)
		require.Len(t, got, 4, run)
		assert.False(t, got["w1"].Untouched)
		assert.Equal(t, "kubelet/verify on w1: exit status 1: "+badMaxPods, got["w1"].Error)
		assert.Contains(t, got["w1"].Hint, "journalctl -u kubelet on the host")
		for _, h := range []string{"w2", "w3", "m1"} {
			assert.Equal(t, "not changed: the new kubelet settings failed on w1", got[h].Error, run)
			assert.Contains(t, got[h].Hint, "repair w1, or correct the setting")
			assert.True(t, got[h].Untouched)
			assert.NotContains(t, l.host(h).read(phases.KubeletDropIn), "many")
			assert.Empty(t, l.host(h).calls(), run)
		}
	}
	k.Extra.Kubelet = map[string]any{"maxPods": 200}
	o := l.mustUp()
	assert.Contains(t, lines(o.changes), "w1 kubelet start kubelet.service it crashes repeatedly")
	for _, h := range l.hosts {
		assert.Contains(t, h.read(phases.KubeletDropIn), "maxPods: 200")
	}
	assert.Less(t, o.at(engine.EventPhaseDone, "w1", phases.PhaseKubelet), o.at(engine.EventPhaseStarted, "w2", phases.PhaseKubelet), "one machine goes first")
	assert.Less(t, o.at(engine.EventPhaseDone, "w2", phases.PhaseKubelet), o.at(engine.EventPhaseStarted, "m1", phases.PhaseKubelet), "the control plane comes last")
	assert.Empty(t, lines(l.mustUp().changes))
}

// TestABadSettingOfContainerdBreaksOneMachine checks that the error quotes containerd's first message as the cause.
func TestABadSettingOfContainerdBreaksOneMachine(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	l.made()
	l.host("w1").write("/.fake/fail/containerd.service", "")
	l.host("w1").write("/.fake/journal", "containerd: failed to load TOML: /etc/containerd/config.toml: bad\n")
	l.conf.Kubernetes.Kubernetes.Extra.Containerd = map[string]any{"debug": map[string]any{"level": "debug"}}
	got := failures(t, l.up(t.Context()), 3)
	assert.Equal(t, "containerd/apply on w1: exit status 1: containerd.service does not start: containerd: failed to load TOML: /etc/containerd/config.toml: bad", got["w1"].Error)
	for _, h := range []string{"w2", "m1"} {
		assert.Equal(t, "not changed: the new containerd settings failed on w1", got[h].Error)
		assert.NotContains(t, l.host(h).read(phases.ContainerdConf), "debug")
	}
	l.host("w1").remove("/.fake/fail/containerd.service")
	l.mustUp()
}

// TestAMachineThatFailedElsewhereHoldsNobodyBack checks that a failure unrelated to the kubelet's settings doesn't stop the rollout to other
// machines.
func TestAMachineThatFailedElsewhereHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	l.made()
	w1 := l.host("w1")
	w1.remove("/sys/module/overlay")
	w1.write("/.fake/fail/modprobe-overlay", "")
	l.conf.Kubernetes.Kubernetes.Extra.Kubelet = map[string]any{"maxPods": 200}
	got := failures(t, l.up(t.Context()), 3)
	assert.Len(t, got, 1)
	assert.Contains(t, got["w1"].Error, "kernel module overlay cannot be loaded")
	assert.Contains(t, l.host("w2").read(phases.KubeletDropIn), "maxPods: 200")
	assert.Contains(t, l.host("m1").read(phases.KubeletDropIn), "maxPods: 200")
}

func TestANodeThatIsNotReadyWithoutADifferenceIsWarnedOf(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.made()
	warnings := func(o *outcome) string {
		var b strings.Builder
		for _, e := range o.events {
			if e.Kind == engine.EventWarning {
				fmt.Fprintln(&b, e.Host, e.Phase, e.Message, "->", e.Hint)
			}
		}
		return b.String()
	}
	assert.Empty(t, warnings(l.mustUp()))
	require.NoError(t, os.WriteFile(l.cluster+"/nodes/w1/notready", nil, 0o644))
	o := l.mustUp()
	assert.Empty(t, o.changes)
	assert.Equal(t, "w1 kubelet the node is NotReady, although nothing on its machine differs from the configuration: the lab says so -> see journalctl -u kubelet -u containerd on w1\n", warnings(o))
	l.conf.Kubernetes.Kubernetes.NetworkPlugin = phases.NetworkNone
	assert.Empty(t, warnings(l.mustUp()), "without a network plugin it can't be Ready")
}

// TestTheWavesOfARollout checks only the order, with a spec whose machines don't exist.
func TestTheWavesOfARollout(t *testing.T) {
	for _, c := range []struct {
		name             string
		masters, workers int
		edit             func(w *engine.World, n *engine.Node, cs []engine.Change) []engine.Change
		want             string
	}{
		{"one worker, then two at once, then the masters one by one", 3, 6, nil, "w1 | w2 w3 | w4 w5 | w6 | m1 | m2 | m3"},
		{"a tenth of many workers at once", 1, 45, nil, "1 2 4 5 5 5 5 5 5 5 3 1"},
		{"a single machine", 1, 0, nil, "m1"},
		{"the masters first while no API answers", 2, 3, func(w *engine.World, n *engine.Node, cs []engine.Change) []engine.Change {
			w.Facts["m1"].Sections[engine.PhaseInit] = answer.Answer{Rows: [][]string{{"member", "yes"}, {"api", "down"}}}
			return cs
		}, "m1 | m2 | w1 | w2 w3"},
		{"only what is not done yet", 1, 4, func(_ *engine.World, n *engine.Node, cs []engine.Change) []engine.Change {
			if n.Hostname == "w1" || n.Hostname == "w3" {
				return nil
			}
			return cs
		}, "w2 | w4 | m1"},
		{"machines that are yet to join are not in it", 1, 3, func(w *engine.World, n *engine.Node, cs []engine.Change) []engine.Change {
			if n.Hostname == "w1" {
				delete(w.Facts, "w1")
			}
			return cs
		}, "w2 | w3 | m1"},
		{"what only has to be started tries nothing new", 1, 3, func(_ *engine.World, _ *engine.Node, cs []engine.Change) []engine.Change {
			return []engine.Change{{Action: "start", Target: "kubelet.service"}}
		}, ""},
		{"but stays the first where others change", 1, 3, func(_ *engine.World, n *engine.Node, cs []engine.Change) []engine.Change {
			if n.Hostname == "w1" {
				return []engine.Change{{Action: "start", Target: "kubelet.service"}}
			}
			return cs
		}, "w1 | w2 w3 | m1"},
		{"a program that the kubelet doesn't run from restarts nothing", 1, 3, func(_ *engine.World, _ *engine.Node, cs []engine.Change) []engine.Change {
			return []engine.Change{{Action: "update", Target: "/usr/local/bin/kubectl"}}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := testSpec(t, c.masters, c.workers)
			w := &engine.World{Want: s.Fresh(), Facts: map[string]*engine.Facts{}}
			pl := &engine.Plan{World: w, Todo: map[string]map[string][]engine.Change{}}
			member := answer.Answer{Rows: [][]string{{"member", "yes"}, {"api", "up"}}}
			for _, n := range s.Nodes {
				member.Rows = append(member.Rows, []string{"node", n.Hostname, "", `"True"`, `"v1"`, "", `""`, "", `""`})
			}
			for _, n := range s.Nodes {
				w.Facts[n.Hostname] = &engine.Facts{Sections: map[string]answer.Answer{engine.PhaseJoin: member, engine.PhaseInit: member}}
			}
			w.Elect()
			for _, n := range s.Nodes {
				cs := []engine.Change{{Action: "update", Target: phases.KubeletDropIn}, {Action: "restart", Target: "kubelet.service"}}
				if c.edit != nil {
					cs = c.edit(w, n, cs)
				}
				pl.Todo[n.Hostname] = map[string][]engine.Change{phases.PhaseKubelet: cs}
			}
			var names, sizes []string
			var before []*engine.Node
			for _, wave := range phases.Waves(pl, phases.PhaseKubelet, "kubelet.service") {
				names = append(names, strings.Join(hostnames(wave), " "))
				sizes = append(sizes, fmt.Sprint(len(wave)))
				for _, n := range wave {
					var want []engine.Step
					for _, b := range before {
						want = append(want, engine.Step{Host: b.Hostname, Phase: phases.PhaseKubelet, Rolls: true})
					}
					assert.Equal(t, want, phases.Named(s.Fresh(), phases.PhaseKubelet).Waits(n, pl), n.Hostname)
				}
				before = wave
			}
			if len(s.Nodes) > 20 {
				assert.Equal(t, c.want, strings.Join(sizes, " "))
			} else {
				assert.Equal(t, c.want, strings.Join(names, " | "))
			}
		})
	}
}
