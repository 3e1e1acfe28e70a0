package cluster

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// upgradeDriver runs "node driver upgrade" like a new process of paictl.
func (l *lab) upgradeDriver(ctx context.Context, d DriverOptions, edit ...func(*engine.Options)) *outcome {
	l.t.Helper()
	so := sshtest.Options(l.t, l.servers()...)
	if c := l.crash.Load(); c != nil {
		so.NetDial = c.dial
	}
	client, events := ssh.NewClient(so), &sink{}
	defer func() { _ = client.Close() }()
	o := engine.Options{Dialer: client, Sink: events, Clock: time.Now, Owner: "tester", Command: "paictl node driver upgrade", StepTimeout: 5 * time.Minute}
	for _, f := range edit {
		f(&o)
	}
	cs, err := UpgradeDriver(ctx, l.spec(), o, d)
	return &outcome{changes: cs, err: err, events: events.events}
}

// driversLab returns a cluster whose workers have a driver. The configuration requires another release of the driver.
func driversLab(t *testing.T, workers int) *lab {
	t.Helper()
	l := newLab(t, 1, workers)
	for _, h := range l.hosts {
		if h.name != "m1" {
			h.gpus()
		}
	}
	l.driver(config.GPUDriver{Policy: config.GPUDriverInstall, Version: "535.247.01"})
	l.made()
	l.driver(config.GPUDriver{Policy: config.GPUDriverInstall, Version: "535.261.03"})
	l.forgetCalls()
	return l
}

// onNodes returns the commands that change nodes in their order, except changes of labels and taints.
func (l *lab) onNodes() []string {
	var out []string
	for _, c := range l.host("m1").calls() {
		if words := strings.Fields(c); words[1] != "label" && words[1] != "taint" {
			out = append(out, strings.Join(words[1:3], " "))
		}
	}
	return out
}

func (l *lab) cordoned() []string {
	var out []string
	for _, n := range l.nodes() {
		if _, err := os.Stat(l.dir + "/cluster/nodes/" + n + "/cordoned"); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func TestDriversAreExchangedOnOneMachineAfterTheOther(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 2)
	dry := l.upgradeDriver(t.Context(), DriverOptions{}, func(o *engine.Options) { o.DryRun = true })
	require.NoError(t, dry.err)
	assert.Equal(t, []string{"drain node w1", "upgrade NVIDIA driver", "hold packages of the driver", "load module nvidia", "uncordon node w1"}, actions(dry.changes)[:5])
	assert.Empty(t, l.onNodes(), "a dry run")

	began := 0
	o := l.upgradeDriver(t.Context(), DriverOptions{Begin: func() error { began++; return nil }})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, 1, began)
	for _, w := range []string{"w1", "w2"} {
		assert.Equal(t, wholeDriver, l.host(w).packages(), w)
		assert.Contains(t, l.host(w).loaded(), "535.261.03", w)
	}
	assert.Equal(t, []string{"annotate node", "cordon w1", "annotate node", "cordon w1", "drain w1", "uncordon w1", "annotate node",
		"annotate node", "cordon w2", "annotate node", "cordon w2", "drain w2", "uncordon w2", "annotate node"}, l.onNodes())
	assert.Empty(t, l.cordoned())

	l.forgetCalls()
	o = l.upgradeDriver(t.Context(), DriverOptions{})
	require.NoError(t, o.err)
	assert.Empty(t, o.changes)
	assert.Empty(t, l.onNodes(), "a second run changes nothing")
}

func TestTheExchangeOfDriversStopsAtTheFirstMachineThatFails(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 3)
	l.host("w1").write("/.fake/fail/modprobe-nvidia", "")
	o := l.upgradeDriver(t.Context(), DriverOptions{})
	var partial *engine.PartialError
	require.ErrorAs(t, o.err, &partial)
	assert.Contains(t, l.story(o), "can't be loaded")
	assert.Contains(t, l.story(o), "the machine stays cordoned until this command succeeds")
	assert.Equal(t, []string{"w1", "w2", "w3"}, engine.FailedHosts(partial.Failed))
	assert.False(t, partial.Failed[0].Untouched)
	assert.True(t, partial.Failed[1].Untouched, "the others are as they were")
	assert.Contains(t, l.host("w2").loaded(), "535.247.01")
	assert.Equal(t, []string{"w1"}, l.cordoned())

	l.host("w1").remove("/.fake/fail/modprobe-nvidia")
	l.forgetCalls()
	o = l.upgradeDriver(t.Context(), DriverOptions{AtOnce: 5})
	require.NoError(t, o.err, "%s", l.story(o))
	for _, w := range []string{"w1", "w2", "w3"} {
		assert.Contains(t, l.host(w).loaded(), "535.261.03", w)
	}
	assert.Empty(t, l.cordoned(), "the one that an earlier run had cordoned is back, too")
}

func TestAMachineWhosePodsStayGoesOnAsItIs(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	require.NoError(t, os.WriteFile(l.dir+"/cluster/nodes/w1/pods", []byte(`{"items":[]}`), 0o600))
	o := l.upgradeDriver(t.Context(), DriverOptions{DrainTimeout: time.Second})
	require.Error(t, o.err)
	assert.Contains(t, l.story(o), "drain w1")
	assert.Contains(t, l.host("w1").loaded(), "535.247.01")
	assert.Empty(t, l.cordoned(), "nothing was changed on it: it is back in service")
	o = l.upgradeDriver(t.Context(), DriverOptions{Force: true})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Contains(t, l.host("w1").loaded(), "535.261.03")
}

func TestAMachineThatSomebodyHasCordonedStaysSo(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	require.NoError(t, os.WriteFile(l.dir+"/cluster/nodes/w1/cordoned", nil, 0o600))
	o := l.upgradeDriver(t.Context(), DriverOptions{})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Contains(t, l.host("w1").loaded(), "535.261.03")
	assert.Equal(t, []string{"w1"}, l.cordoned())
}

func TestARunThatWasCutOffAfterTheExchangePutsTheMachineBack(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cut := errors.New("cut off")
	o := l.upgradeDriver(ctx, DriverOptions{}, func(o *engine.Options) {
		o.Sink = sinkFunc(func(e engine.Event) {
			if e.Kind == engine.EventPhaseStarted && e.Phase == phaseUncordon {
				cancel(cut)
			}
		})
	})
	require.ErrorIs(t, o.err, cut)
	assert.Contains(t, l.host("w1").loaded(), "535.261.03")
	assert.Equal(t, []string{"w1"}, l.cordoned())
	o = l.upgradeDriver(t.Context(), DriverOptions{})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, []string{"uncordon node w1"}, actions(o.changes))
	assert.Empty(t, l.cordoned())
}

type sinkFunc func(engine.Event)

func (f sinkFunc) Emit(e engine.Event) { f(e) }

func TestProgramsThatAreNoPodsKeepTheDriverAsItIs(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	l.host("w1").opens("4711", "python3", "/dev/nvidia0")
	o := l.upgradeDriver(t.Context(), DriverOptions{})
	require.Error(t, o.err)
	assert.Contains(t, l.story(o), "GPUs are in use, so the driver can't change from 535.247.01 to 535.261.03: python3 (pid 4711)")
	assert.Contains(t, l.host("w1").loaded(), "535.247.01")
}

func TestOnlyDriversThatAreOursAreExchanged(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	o := l.upgradeDriver(t.Context(), DriverOptions{}, func(o *engine.Options) { o.Limit = []string{"m1"} })
	require.EqualError(t, o.err, "m1 has no GPUs in the layout")
	l.driver(config.GPUDriver{Policy: config.GPUDriverKeep})
	o = l.upgradeDriver(t.Context(), DriverOptions{})
	require.EqualError(t, o.err, "the configuration says gpu-driver.policy keep: paictl doesn't change drivers")
	l.driver(config.GPUDriver{Policy: config.GPUDriverInstall, Version: "999"})
	o = l.upgradeDriver(t.Context(), DriverOptions{Begin: func() error { return errors.New("it has begun") }})
	var refused *engine.PreflightError
	require.ErrorAs(t, o.err, &refused, "before anything is changed")
	assert.True(t, slices.ContainsFunc(refused.Findings, func(f preflight.Finding) bool { return f.Check == "gpu-driver-branch" }), "%v", refused.Findings)
	assert.Empty(t, l.onNodes())
}

func TestAMachineWhoseDriverWasSeenNotToWorkStaysOut(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	l.host("w1").write("/.fake/fail/gpu-0000:07:00.0", "")
	for range 2 {
		o := l.upgradeDriver(t.Context(), DriverOptions{})
		require.ErrorAs(t, o.err, new(*engine.PartialError))
		assert.Contains(t, l.story(o), "the driver sees 1 of 2 GPUs")
		assert.Equal(t, []string{"w1"}, l.cordoned())
	}
	require.NoError(t, os.RemoveAll(l.host("w1").root+"/sys/bus/pci/devices"))
	l.host("w1").remove("/proc/driver/nvidia")
	o := l.upgradeDriver(t.Context(), DriverOptions{})
	require.ErrorAs(t, o.err, new(*engine.PartialError), "without any GPU on the bus it isn't looked at for a driver any more")
	assert.Equal(t, []string{"w1"}, l.cordoned())
}

func TestAMachineThatAnEarlierRunHasLeftStaysOutWhereItsPodsStay(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	l.host("w1").write("/.fake/fail/modprobe-nvidia-uvm", "")
	o := l.upgradeDriver(t.Context(), DriverOptions{})
	require.Error(t, o.err)
	require.NoError(t, os.WriteFile(l.dir+"/cluster/nodes/w1/pods", []byte(`{"items":[]}`), 0o600))
	o = l.upgradeDriver(t.Context(), DriverOptions{DrainTimeout: time.Second})
	require.Error(t, o.err)
	assert.Equal(t, []string{"w1"}, l.cordoned(), "its driver doesn't work")
}

func TestAMachineThatAnEarlierRunHasLeftIsNamedWhereOthersAreGiven(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 2)
	l.host("w1").write("/.fake/fail/modprobe-nvidia", "")
	require.Error(t, l.upgradeDriver(t.Context(), DriverOptions{}).err)
	o := l.upgradeDriver(t.Context(), DriverOptions{}, func(o *engine.Options) { o.Limit = []string{"w2"} })
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, []string{"w1"}, l.cordoned())
	assert.Contains(t, l.warnings(o), "an earlier run has left the machine cordoned")
	l.host("w1").remove("/.fake/fail/modprobe-nvidia")
	o = l.upgradeDriver(t.Context(), DriverOptions{})
	require.NoError(t, o.err)
	assert.NotContains(t, l.warnings(o), "an earlier run")
}

// A mark counts only for the cordon for which it was written, and not for a later cordon.
func TestALaterCordonOfSomebodyElsesStays(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	l.host("w1").write("/.fake/fail/modprobe-nvidia", "")
	o := l.upgradeDriver(t.Context(), DriverOptions{})
	require.Error(t, o.err)
	cordoned := l.dir + "/cluster/nodes/w1/cordoned"
	require.NoError(t, os.Remove(cordoned)) // kubectl uncordon
	require.NoError(t, os.WriteFile(cordoned, []byte("a week later"), 0o600))
	l.host("w1").remove("/.fake/fail/modprobe-nvidia")
	o = l.upgradeDriver(t.Context(), DriverOptions{})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Contains(t, l.host("w1").loaded(), "535.261.03")
	assert.Equal(t, []string{"w1"}, l.cordoned())
}

func TestAMachineThatIsNotReadyEndsARunWithItsName(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 3)
	require.NoError(t, os.WriteFile(l.dir+"/cluster/nodes/w1/notready", nil, 0o600))
	for range 2 { // the second run finds no driver to exchange
		o := l.upgradeDriver(t.Context(), DriverOptions{})
		var partial *engine.PartialError
		require.ErrorAs(t, o.err, &partial)
		assert.Equal(t, []string{"w1", "w2", "w3"}, engine.FailedHosts(partial.Failed))
		assert.Contains(t, partial.Failed[0].Error, "the node w1 is not Ready")
		assert.Contains(t, partial.Failed[0].Hint, "stays cordoned")
		assert.True(t, partial.Failed[2].Untouched)
		assert.NotContains(t, partial.Failed[2].Hint, "--limit")
		assert.Equal(t, []string{"w1"}, l.cordoned())
	}
}

func TestAnInterruptedRunSaysWhichMachinesAreOut(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	cut := errors.New("cut off")
	var said []string
	o := l.upgradeDriver(ctx, DriverOptions{}, func(o *engine.Options) {
		o.Sink = sinkFunc(func(e engine.Event) {
			if e.Kind == engine.EventWarning {
				said = append(said, e.Host+": "+e.Message)
			}
			if e.Kind == engine.EventPhaseStarted && e.Phase == phases.PhaseDriver {
				cancel(cut)
			}
		})
	})
	require.ErrorIs(t, o.err, cut)
	assert.Equal(t, []string{"w1: the machine stays cordoned until this command succeeds"}, said)
	o = l.upgradeDriver(t.Context(), DriverOptions{})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Empty(t, l.cordoned())
}

func TestAMachineWhoseKubeletDoesntReportStaysOut(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	o := l.upgradeDriver(ctx, DriverOptions{}, func(o *engine.Options) {
		o.Sink = sinkFunc(func(e engine.Event) {
			if e.Kind == engine.EventPhaseStarted && e.Phase == phaseUncordon {
				cancel(errors.New("cut off"))
			}
		})
	})
	require.Error(t, o.err)
	l.host("w1").remove("/.fake/units/kubelet.service.active") // its node stays Ready for a while
	o = l.upgradeDriver(t.Context(), DriverOptions{})
	require.Error(t, o.err)
	assert.Contains(t, l.story(o), "the kubelet of w1 doesn't report")
	assert.Equal(t, []string{"w1"}, l.cordoned())
}
