package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// lines formats each change as one line, without its diff.
func lines(cs []engine.Change) string {
	var b strings.Builder
	for _, c := range cs {
		fmt.Fprintln(&b, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", c.Host, c.Phase, c.Action, c.Target, c.Detail)))
	}
	return b.String()
}

// at returns the index of a phase's event in a run, or -1 if the event is missing.
func (o *outcome) at(kind, host, phase string) int {
	return slices.IndexFunc(o.events, func(e engine.Event) bool { return e.Kind == kind && e.Host == host && e.Phase == phase })
}

func TestUpMakesAClusterAndTheSecondUpChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	before := map[string]bool{}
	for _, line := range l.state() {
		before[line] = true
	}
	first := l.mustUp()

	var files, calls strings.Builder
	for _, line := range l.state() {
		if !before[line] && !strings.HasPrefix(line, "w2 ") {
			fmt.Fprintln(&files, strings.Join(strings.Fields(line)[:3], " "))
		}
	}
	golden(t, "up-files.txt", files.String())
	golden(t, "up-changes.txt", lines(first.changes))
	for _, h := range l.hosts[:2] {
		imports := []string{}
		for _, c := range h.calls() {
			switch {
			case strings.HasPrefix(c, "ctr images import"): // all at once, in any order
				imports = append(imports, c)
				continue
			case c == "kubeadm token create": // when the first worker is ready to join
				continue
			}
			if len(imports) > 0 {
				slices.Sort(imports)
				fmt.Fprintf(&calls, "%s %s\n", h.name, strings.Join(imports, "\n"+h.name+" "))
				imports = nil
			}
			fmt.Fprintln(&calls, h.name, c)
		}
	}
	golden(t, "up-calls.txt", calls.String())
	last := first.at(engine.EventPhaseDone, "m1", phases.PhaseLabels)
	for _, w := range []string{"w1", "w2"} {
		assert.Less(t, first.at(engine.EventPhaseDone, "m1", engine.PhaseInit), first.at(engine.EventPhaseDone, w, engine.PhaseJoin), "init ends before a join does")
		assert.Less(t, first.at(engine.EventPhaseDone, w, engine.PhaseJoin), last, "labels come last")
		assert.Positive(t, first.at(engine.EventHostDone, w, ""))
	}
	s := first.summary()
	assert.Equal(t, []int{3, 3, len(first.changes)}, []int{s.Hosts, s.Changed, s.Changes})

	l.forgetCalls()
	state, gate := l.bytes(), &recordingGate{}
	second := l.up(t.Context(), func(_ *labOptions, so *ssh.Options) { so.Gate = gate })
	require.NoError(t, second.err)
	assert.Empty(t, second.changes)
	assert.Equal(t, []string{"m1 lock"}, gate.mutating, "nothing that changes a host is sent")
	assert.Equal(t, 2, second.trips.Host("m1").RoundTrips, "lock and detect")
	assert.Equal(t, 1, second.trips.Host("w1").RoundTrips, "detect")
	assert.Equal(t, 2, second.summary().RoundTrips)
	assert.Equal(t, state, l.bytes(), "not a byte differs but the lock's")
}

type recordingGate struct {
	mu       sync.Mutex
	mutating []string
}

func (g *recordingGate) Check(host string, s ssh.Script) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.Mutates {
		g.mutating = append(g.mutating, host+" "+s.Name)
	}
	return nil
}

func TestADryRunChangesNothingAndPlansWhatUpDoes(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	plan := func() *outcome {
		t.Helper()
		before, gate := l.bytes(), &recordingGate{}
		o := l.up(t.Context(), func(o *labOptions, so *ssh.Options) { o.DryRun, so.Gate = true, gates{gate, ssh.DryRunGate{}} })
		require.NoError(t, o.err)
		assert.Empty(t, gate.mutating, "nothing that changes a host was even tried")
		assert.Equal(t, before, l.bytes())
		assert.True(t, o.summary().DryRun)
		assert.Equal(t, len(o.changes), o.summary().Changes)
		assert.NotNil(t, o.changes, "a plan with no changes is one, too: nil is none")
		return o
	}
	want, err := json.MarshalIndent(plan().changes, "", " ")
	require.NoError(t, err)
	got, err := json.MarshalIndent(l.mustUp().changes, "", " ")
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
	assert.Empty(t, plan().changes, "after up nothing is planned")
}

func TestReadingLeavesNoCacheOfKubectl(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.made()
	m1 := l.host("m1")
	assert.NotEmpty(t, m1.read(engine.StateDir+"/kubectl-cache/discovery/servergroups.json"), "up itself keeps one")
	m1.remove(engine.StateDir + "/kubectl-cache")
	before := l.bytes()
	o := l.up(t.Context(), func(o *labOptions, so *ssh.Options) { o.DryRun, so.Gate = true, ssh.DryRunGate{} })
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, before, l.bytes())
	assert.NoDirExists(t, m1.root+engine.StateDir+"/kubectl-cache")
}

type gates []ssh.Gate

func (gs gates) Check(host string, s ssh.Script) error {
	for _, g := range gs {
		if err := g.Check(host, s); err != nil {
			return err
		}
	}
	return nil
}

func TestAHostThatIsOffIsSetAsideAndJoinsLater(t *testing.T) {
	t.Parallel()
	whole := newLab(t, 1, 2)
	whole.made()

	l := newLab(t, 1, 2)
	w2 := l.host("w2")
	w2.server.Close()
	o := l.up(t.Context())
	partial, ok := errors.AsType[*engine.PartialError](o.err)
	require.True(t, ok, "%v", o.err)
	assert.Equal(t, 3, partial.ExitCode())
	assert.Equal(t, "1 of 3 hosts failed: w2", partial.Error())
	assert.Equal(t, "paictl cluster up -p conf --limit w2", partial.Retry)
	assert.Equal(t, partial.Retry, o.summary().Retry)
	assert.Equal(t, "connect", o.summary().Failed[0].Phase)
	assert.Contains(t, o.summary().Failed[0].Hint, "check ssh-port, and that sshd runs")
	assert.Equal(t, []string{"m1", "w1"}, l.nodes(), "the others are done")

	w2.server = sshtest.NewServer(t, sshtest.Config{Name: "w2", Handler: w2})
	again := l.up(t.Context(), func(o *labOptions, _ *ssh.Options) { o.Limit = []string{"w2"} })
	require.NoError(t, again.err)
	assert.Equal(t, []string{"m1", "w1", "w2"}, l.nodes())
	for _, c := range again.changes {
		if c.Phase == phases.PhaseLabels { // set on the first machine, for the other
			assert.Equal(t, "m1 set node w2", c.Host+" "+c.Action+" "+c.Target)
			continue
		}
		assert.Equal(t, "w2", c.Host, "--limit touches no other host")
	}
	assert.Empty(t, lines(l.mustUp().changes), "the command that was named has done it all")
	assert.Empty(t, engine.Unified("state", []byte(strings.Join(l.state(), "\n")), []byte(strings.Join(whole.state(), "\n"))))
}

func (l *lab) nodes() []string {
	ds, err := os.ReadDir(l.cluster + "/nodes")
	require.NoError(l.t, err)
	out := []string{}
	for _, d := range ds {
		out = append(out, d.Name())
	}
	return out
}

func TestAHostThatIsLostOnTheWayIsSetAside(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	l.host("w2").server.SetFault(sshtest.Fault{Exec: 6, When: sshtest.MidRun})
	o := l.up(t.Context())
	partial, ok := errors.AsType[*engine.PartialError](o.err)
	require.True(t, ok, "%v", o.err)
	assert.Equal(t, "w2", engine.JoinHosts(partial.Failed))
	assert.Contains(t, partial.Failed[0].Error, "connection lost")
	assert.Equal(t, []string{"m1", "w1"}, l.nodes())
	l.host("w2").server.SetFault(sshtest.Fault{})
	l.mustUp()
	assert.Equal(t, []string{"m1", "w1", "w2"}, l.nodes())
}

func TestTheLossOfTheLockEndsTheRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	m1 := l.host("m1").server
	o := l.up(t.Context(), func(o *labOptions, _ *ssh.Options) {
		o.Sink = &hook{next: o.Sink, on: func(e engine.Event) {
			if e.Kind == engine.EventPhaseStarted && e.Phase == phases.PhaseContainerd {
				m1.Drop()
			}
		}}
	})
	require.ErrorIs(t, o.err, engine.ErrLockLost)
	m1.Wait()
	l.mustUp()
}

type hook struct {
	next engine.Sink
	on   func(engine.Event)
}

func (h *hook) Emit(e engine.Event) {
	h.on(e)
	h.next.Emit(e)
}

func TestASecondRunIsToldWhoHoldsTheLock(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	at, goOn, ended := make(chan bool), make(chan bool), make(chan *outcome)
	var once sync.Once
	go func() {
		ended <- l.up(t.Context(), func(o *labOptions, _ *ssh.Options) {
			o.Owner = "ann@laptop, pid 4711"
			o.Sink = &hook{next: o.Sink, on: func(e engine.Event) {
				if e.Kind == engine.EventPhaseStarted && e.Phase == phases.PhaseBase {
					once.Do(func() { close(at) })
					<-goOn
				}
			}}
		})
	}()
	<-at
	second := l.up(t.Context())
	locked, ok := errors.AsType[*engine.LockedError](second.err)
	require.True(t, ok, "%v", second.err)
	assert.Equal(t, 5, locked.ExitCode())
	assert.Equal(t, "ann@laptop, pid 4711", locked.Owner)
	assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, locked.Since)
	assert.Contains(t, locked.Error(), "m1: ann@laptop, pid 4711, since 20")
	assert.NotEmpty(t, hint.Of(second.err))
	assert.Equal(t, 1, second.trips.Host("m1").RoundTrips, "it asks for the lock and for nothing else")

	// Simulate kill -9 of the first run. All of its connections end, and its lock ends with the connection.
	for _, h := range l.hosts {
		h.server.Drop()
		h.server.Wait()
	}
	close(goOn)
	require.Error(t, (<-ended).err)
	l.mustUp()
}

func TestAnAskedForEndComesSoonAndLeavesNothingRunning(t *testing.T) {
	for _, phase := range []string{phasePreflight, phases.PhaseBase, phases.PhaseImages, engine.PhaseInit} {
		t.Run("in phase "+phase, func(t *testing.T) {
			l := newLab(t, 1, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var since func() float64
			o := l.up(ctx, func(o *labOptions, _ *ssh.Options) {
				o.Sink = &hook{next: o.Sink, on: func(e engine.Event) {
					if e.Kind == engine.EventPhaseStarted && e.Phase == phase && since == nil {
						since = stopwatch()
						cancel()
					}
				}}
			})
			require.ErrorIs(t, o.err, context.Canceled)
			assert.Less(t, since(), 20.0, "seconds")
			for _, h := range l.hosts {
				h.server.Close()
			}
			assertNoRunIsLeft(t)
			assert.Equal(t, -1, o.at(engine.EventHostSetAside, "m1", phase), "no host is blamed")
		})
	}
}
