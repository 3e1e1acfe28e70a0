package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// fleet holds the machines of a spec as SSH servers in this process. Each server responds to the detect script with the output of its machine.
type fleet struct {
	spec     *engine.Spec
	dialer   ssh.Dialer
	servers  map[string]*sshtest.Server
	mu       sync.Mutex
	machines map[string]*machine
	fixes    map[string][]string // scripts that changed something, by host
	repair   func(m *machine)    // the effect of a repair
}

func newFleet(t testing.TB, s *engine.Spec) *fleet {
	f := &fleet{spec: s, machines: map[string]*machine{}, fixes: map[string][]string{}, servers: map[string]*sshtest.Server{}}
	key := sshtest.NewKey(t)
	var servers []*sshtest.Server
	for _, n := range s.Nodes {
		f.machines[n.Hostname] = fitMachine(n)
		server := sshtest.NewServer(t, sshtest.Config{Name: n.Hostname, HostKeys: []cssh.Signer{key}, Handler: sshtest.Scripted(t,
			sshtest.Step{Match: `printf '@@ `, Func: func(e *sshtest.Exec, _ string) int {
				f.mu.Lock()
				defer f.mu.Unlock()
				fmt.Fprint(e.Stdout, f.machines[n.Hostname].answer())
				return 0
			}},
			sshtest.Step{Match: `\nbegin '[0-9a-f]+' 'preflight'\n`, Func: func(_ *sshtest.Exec, body string) int {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.fixes[n.Hostname] = append(f.fixes[n.Hostname], body)
				if f.repair != nil {
					f.repair(f.machines[n.Hostname])
				}
				return 0
			}},
		)})
		f.servers[n.Hostname] = server
		servers = append(servers, server)
		n.Target = server.Target()
	}
	f.dialer = sshtest.Dialer(t, servers...)
	return f
}

func (f *fleet) options(sink engine.Sink) engine.Options {
	return engine.Options{Dialer: f.dialer, Sink: sink, Clock: func() time.Time { return preflightNow.Add(100 * time.Millisecond) }, Command: "paictl cluster preflight"}
}

func TestPreflightOfFitMachinesPassesInOneRoundTripEach(t *testing.T) {
	f := newFleet(t, preflightSpec(t, 2))
	sink := &storySink{}
	found, err := Preflight(t.Context(), f.spec, f.options(sink), false)
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.Len(t, sink.of(engine.EventPhaseDone), 3)
	for host, server := range f.servers {
		assert.Equal(t, 1, server.ExecCount(), host)
	}
}

func TestOneUnfitMachineStopsUpBeforeAnythingIsChangedAnywhere(t *testing.T) {
	f := newFleet(t, preflightSpec(t, 2))
	f.machines["w2"].say("port", "10250", "123", "nginx")
	f.machines["w1"].fact("swap-kib", "1024")
	sink := &storySink{}
	o := f.options(sink)
	o.DryRun = true // without it, taking the lock would be the first change
	_, err := Up(t.Context(), f.spec, o, UpOptions{})

	pf, ok := errors.AsType[*engine.PreflightError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, 4, pf.ExitCode())
	assert.EqualError(t, err, "w2: port 10250, which the kubelet needs, is in use by nginx (pid 123) (nothing was changed)")
	assert.Contains(t, hint.Of(err), "stop nginx")
	require.Len(t, pf.Findings, 2)
	failed := sink.of(engine.EventPhaseFailed)
	require.Len(t, failed, 1)
	assert.Equal(t, "w2", failed[0].Host)
	assert.Equal(t, phasePreflight, failed[0].Phase)
	warned := sink.of(engine.EventWarning)
	require.Len(t, warned, 1)
	assert.Equal(t, "w1", warned[0].Host)
	assert.NotEmpty(t, warned[0].Hint)
	assert.Len(t, sink.of(engine.EventPhaseDone), 2, "m1 and w1 have passed")
	assert.Empty(t, f.fixes)
}

func TestPreflightTellsAWarningOnce(t *testing.T) {
	f := newFleet(t, preflightSpec(t, 1))
	f.machines["w1"].fact("swap-kib", "1024")
	sink := &storySink{}
	found, err := Preflight(t.Context(), f.spec, f.options(sink), false)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, preflight.SeverityWarning, found[0].Severity)
	assert.Empty(t, sink.of(engine.EventWarning))
}

func TestFixRepairsWhatIsSafeAndLooksAgain(t *testing.T) {
	f := newFleet(t, preflightSpec(t, 2))
	f.machines["w1"].say("missing", "ip")
	f.machines["w1"].fact("hostname", "localhost")
	f.repair = func(m *machine) {
		m.unsay("missing")
		m.fact("hostname", "w1")
		m.journal = []string{"journal\tpreflight\tdone"}
	}
	sink := &storySink{}
	o := f.options(sink)
	found, err := Preflight(t.Context(), f.spec, o, true)
	require.NoError(t, err)
	assert.Empty(t, found)
	require.Len(t, f.fixes, 1)
	require.Len(t, f.fixes["w1"], 1)
	assert.Contains(t, f.fixes["w1"][0], "\np_packages iproute2\nnote change 'repair commands'\n")
	assert.Contains(t, f.fixes["w1"][0], "\np_hostname 'w1'\nnote change 'repair hostname'\n")
	assert.Len(t, sink.of(engine.EventChanged), 2)
	assert.Empty(t, sink.of(engine.EventPhaseFailed))
	done := sink.of(engine.EventRunDone)
	require.Len(t, done, 1)
	assert.Equal(t, 2, done[0].Summary.Changes)
}

func TestFixLeavesWhatOnlyAPersonCanDecide(t *testing.T) {
	f := newFleet(t, preflightSpec(t, 2))
	f.machines["w1"].say("missing", "ip")
	f.machines["w1"].fact("hostname", "somebodys-choice")
	f.repair = func(m *machine) { m.unsay("missing") }
	o := f.options(&storySink{})
	found, err := Preflight(t.Context(), f.spec, o, true)
	assert.EqualError(t, err, "w1: the machine's host name is somebodys-choice, but layout.yaml says w1 (only the repairs were made; nothing else was changed)")
	require.Len(t, found, 1)
	assert.Equal(t, "hostname", found[0].Check)
}

func TestADryRunRepairsNothing(t *testing.T) {
	f := newFleet(t, preflightSpec(t, 2))
	f.machines["w1"].say("missing", "ip")
	o := f.options(&storySink{})
	o.DryRun = true
	_, err := Up(t.Context(), f.spec, o, UpOptions{Fix: true})
	assert.EqualError(t, err, "w1: programs are missing on the machine: ip (nothing was changed)")
	assert.Empty(t, f.fixes)
}

func TestManyErrorsAreCountedAndTheRemedySaysHowManyFixRepairs(t *testing.T) {
	f := newFleet(t, preflightSpec(t, 2))
	f.machines["w1"].say("missing", "ip")
	f.machines["w2"].fact("uid", "1000")
	_, err := Preflight(t.Context(), f.spec, f.options(&storySink{}), false)
	assert.EqualError(t, err, "2 checks failed, the first: w1: programs are missing on the machine: ip (nothing was changed)")
	assert.Equal(t, "each failed check above names its remedy; --fix makes 1 of these 2 repairs", hint.Of(err))
}

func TestPreflightStopsWhenItIsCancelled(t *testing.T) {
	f := newFleet(t, preflightSpec(t, 2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Preflight(ctx, f.spec, f.options(&storySink{}), false)
	assert.ErrorIs(t, err, context.Canceled)
}

type countingSink struct{ kinds map[string]int }

// Emit implements engine.Sink.
func (s *countingSink) Emit(e engine.Event) { s.kinds[e.Kind]++ }

// BenchmarkPreflight1000 dials 1,000 SSH servers in this process, queries each server and checks the outputs. The goal is five seconds on two
// cores, with clients and servers in the same process.
func BenchmarkPreflight1000(b *testing.B) {
	f := newFleet(b, preflightSpec(b, 999))
	for b.Loop() {
		sink := &countingSink{kinds: map[string]int{}}
		found, err := Preflight(b.Context(), f.spec, f.options(sink), false)
		require.NoError(b, err)
		require.Empty(b, found)
		require.Equal(b, 1000, sink.kinds[engine.EventPhaseDone])
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/run")
}

func TestTheDetectScriptStaysSmall(t *testing.T) {
	// Each run sends the script to each host. With a thousand hosts, a script of a megabyte would be noticeable.
	s := preflightSpec(t, 1)
	assert.Less(t, len(preflight.Probe(phases.CheckedCluster(s.Fresh(), nil), phases.CheckedNode(s.Nodes[0]))), 12<<10)
	assert.NotContains(t, preflight.Probe(phases.CheckedCluster(s.Fresh(), nil), phases.CheckedNode(s.Nodes[0])), "\r")
}
