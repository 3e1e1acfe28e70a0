package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// quickHost responds to scripts like a host on which every step succeeds. It runs no shell, so that the test measures only paictl.
type quickHost struct {
	name, ticket, nodes string
	broken              string // a section of detect that breaks off
	applied             *atomic.Int64
	fault               sshtest.Fault
	// fails may return another response to a script. It returns false for the usual response. It may be nil.
	fails  func(body string, e *sshtest.Exec) (code int, answered bool)
	bundle *bundle.Bundle
}

func (h quickHost) Exec(_ context.Context, e *sshtest.Exec) int {
	body, held, err := e.Script()
	if h.fails != nil && err == nil {
		if code, answered := h.fails(body, e); answered {
			return code
		}
	}
	switch {
	case err != nil:
		return 255
	case held:
		_, _ = io.WriteString(e.Stdout, "held\n")
		_, _ = io.Copy(io.Discard, e.Stdin)
	case strings.HasPrefix(body, "manifest="): // an upload: all files are present
		_, _ = io.WriteString(e.Stdout, "root \n")
	case strings.Contains(body, "d_journal\n)"):
		_, _ = fmt.Fprintf(e.Stdout, "@@ facts\npaictl-facts\t1\nhostname\t%s\nmachine-id\t%s\nuid\t0\narch\tx86_64\nend\tok\n@@ preflight\nend\tok\n", h.name, h.name)
		if h.broken != "" {
			_, _ = fmt.Fprintf(e.Stdout, "@@ %s\n@! 2\n", h.broken)
			_, _ = io.WriteString(e.Stderr, "sh: 7: stat: Input/output error\n")
		}
	case strings.Contains(body, "kubectl get nodes -o json\n"):
		_, _ = io.WriteString(e.Stdout, h.nodes)
	case strings.Contains(body, "\nk_ticket 0\n"):
		h.applied.Add(1)
		_, _ = io.WriteString(e.Stdout, h.ticket)
	case strings.HasSuffix(body, "\nfinish\n"):
		h.applied.Add(1)
	}
	return 0
}

// quickCluster returns the Spec of n machines, of which the first is the master, and the options of a dialer for these machines.
func quickCluster(t testing.TB, n int, edit func(*quickHost)) (*engine.Spec, ssh.Options, *atomic.Int64) {
	t.Helper()
	s := testSpec(t, 1, n-1)
	dir := t.TempDir()
	makeAuthorities(t, dir)
	ca, err := os.ReadFile(dir + "/1.crt")
	require.NoError(t, err)
	var items []string
	for _, node := range s.Nodes {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q}}`, node.Hostname))
	}
	applied := &atomic.Int64{}
	var servers []*sshtest.Server
	key := sshtest.NewKey(t)
	for _, node := range s.Nodes {
		h := quickHost{
			name: node.Hostname, applied: applied, bundle: s.Bundle, nodes: `{"items":[` + strings.Join(items, ",") + `]}`,
			ticket: "token\tabcdef.0123456789abcdef\nca\t" + base64.StdEncoding.EncodeToString(ca) + "\n",
		}
		if edit != nil {
			edit(&h)
		}
		server := sshtest.NewServer(t, sshtest.Config{Name: node.Hostname, Handler: h, HostKeys: []cssh.Signer{key}, Fault: h.fault})
		node.Target = server.Target()
		servers = append(servers, server)
	}
	return s, sshtest.Options(t, servers...), applied
}

func runQuick(s *engine.Spec, so ssh.Options) *outcome {
	counter, events := &ssh.Counter{}, &sink{}
	so.Tracer = counter
	client := ssh.NewClient(so)
	defer func() { _ = client.Close() }()
	cs, err := Up(context.Background(), s, engine.Options{Dialer: client, Sink: events, Clock: time.Now, Owner: "tester", Command: "paictl cluster up"}, UpOptions{})
	return &outcome{changes: cs, err: err, events: events.events, trips: counter}
}

func TestTwoHundredMachinesAtOnce(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 30
	}
	s, so, applied := quickCluster(t, n, nil)
	o := runQuick(s, so)
	require.NoError(t, o.err)
	hosts := map[string]int{}
	for _, c := range o.changes {
		hosts[c.Host]++
	}
	assert.Len(t, hosts, n)
	done := 0
	for _, e := range o.events {
		if e.Kind == engine.EventHostDone {
			done++
		}
	}
	assert.Equal(t, n, done)
	// The expected number of scripts: base, containerd, tools, kubelet, images and network on each machine, join on all machines but one, and init,
	// token and labels on the remaining machine.
	assert.Equal(t, int64(7*n+2), applied.Load())
	trips := o.trips.Hosts()
	assert.Equal(t, trips["w1"].RoundTrips, trips[fmt.Sprintf("w%d", n-1)].RoundTrips)
	assert.LessOrEqual(t, trips["w1"].RoundTrips, 14, "detect, then per phase: uploads, apply, verify")
	assert.Equal(t, 1, trips["w1"].Dials)
}

// trouble is a kind of failure of a machine, with the error that the run must report.
type trouble struct {
	name, phase, says string
	host              func(*quickHost)
	node              func(n *engine.Node, so *ssh.Options)
}

// inPhase makes a phase's scripts fail if they change the host.
func inPhase(phase string, code int, says string) func(*quickHost) {
	begins := regexp.MustCompile(`(?m)^begin \S+ '?` + phase + `'?$`)
	return func(h *quickHost) {
		h.fails = func(body string, e *sshtest.Exec) (int, bool) {
			if !begins.MatchString(body) {
				return 0, false
			}
			_, _ = io.WriteString(e.Stderr, says)
			return code, true
		}
	}
}

func troubles(t *testing.T) []trouble {
	other := sshtest.NewKey(t)
	return []trouble{
		{"it is off", "connect", "connection refused", nil, func(n *engine.Node, _ *ssh.Options) { n.Target.Port = 1 }},
		{"it closes every connection", "connect", "", func(h *quickHost) { h.fault.DropDials = 1000 }, nil},
		{"it knows no login", "connect", "", func(h *quickHost) { h.fault.RefuseAuth = true }, nil},
		{"it has another key", "connect", "key", nil, func(n *engine.Node, so *ssh.Options) {
			known, err := os.ReadFile(so.KnownHosts)
			require.NoError(t, err)
			at := fmt.Sprintf("[%s]:%d ", n.Target.Address, n.Target.Port)
			var lines strings.Builder
			for line := range strings.Lines(string(known)) {
				if strings.HasPrefix(line, at) {
					line = at + string(cssh.MarshalAuthorizedKey(other.PublicKey()))
				}
				lines.WriteString(line)
			}
			require.NoError(t, os.WriteFile(so.KnownHosts, []byte(lines.String()), 0o600))
		}},
		{"its power fails while it is asked", phasePreflight, "connection", func(h *quickHost) { h.fault.Exec, h.fault.When = 1, sshtest.MidRun }, nil},
		{"its disk is full", phases.PhaseBase, "no space left on device", inPhase(phases.PhaseBase, 1, "sh: 9: cannot create /etc/hosts: no space left on device\n"), nil},
		{"its memory is full", phases.PhaseContainerd, "exit status 137: no message", inPhase(phases.PhaseContainerd, 137, ""), nil},
		{"its answer makes no sense", phases.PhaseKubelet, `the machine answered "Last login: Fri Nov 27"`, func(h *quickHost) {
			h.fails = func(body string, e *sshtest.Exec) (int, bool) {
				if !strings.HasPrefix(body, "manifest=") || !strings.Contains(body, engine.Staged(kubeletOf(t, h))) {
					return 0, false
				}
				_, _ = io.WriteString(e.Stdout, "Last login: Fri Nov 27\n")
				return 0, true
			}
		}, nil},
		{"it never ends to talk", phases.PhaseImages, "it printed more than 1048576 bytes", func(h *quickHost) {
			inPhase(phases.PhaseImages, 0, strings.Repeat("retrying\n", 1<<18))(h)
		}, nil},
		{"its kubelet starts no pods", engine.PhaseJoin, "timed out waiting for the condition", inPhase(engine.PhaseJoin, 1, "error execution phase kubelet-start: timed out waiting for the condition\nTo see the stack trace of this error execute with --v=5 or higher\n"), nil},
	}
}

func kubeletOf(t *testing.T, h *quickHost) bundle.Artifact {
	t.Helper()
	a, ok := h.bundle.Lookup(bundle.KindBinary, "kubelet")
	require.True(t, ok)
	return a
}

// Three of a hundred machines fail, in ten ways. The run reports each failed machine with the cause, and completes all other machines.
func TestOfAThousandMachinesTheThirtyThatFailAreNamed(t *testing.T) {
	n, each := 1000, 3
	if testing.Short() {
		n, each = 100, 1
	}
	kinds := troubles(t)
	of := func(i int) *trouble { // the i-th machine's
		// The failures are spread over all machines except the first machines, which include the master.
		step := n / (each * len(kinds))
		if k := i - 7; k >= 0 && k%step == 0 && k/step < each*len(kinds) {
			return &kinds[k/step%len(kinds)]
		}
		return nil
	}
	i := -1
	s, so, _ := quickCluster(t, n, func(h *quickHost) {
		i++
		if x := of(i); x != nil && x.host != nil {
			x.host(h)
		}
	})
	so.MaxOutput = 1 << 20
	want := map[string]*trouble{}
	for i, node := range s.Nodes {
		x := of(i)
		if x == nil {
			continue
		}
		want[node.Hostname] = x
		if x.node != nil {
			x.node(node, &so)
		}
	}
	require.Len(t, want, each*len(kinds))

	o := runQuick(s, so)
	partial, ok := errors.AsType[*engine.PartialError](o.err)
	require.True(t, ok, "%v", o.err)
	assert.Equal(t, 3, partial.ExitCode())
	assert.Equal(t, n, partial.Hosts)
	var names []string
	for _, f := range partial.Failed {
		names = append(names, f.Host)
		x := want[f.Host]
		if !assert.NotNil(t, x, "%s failed: %s", f.Host, f.Error) {
			continue
		}
		assert.Equal(t, x.phase, f.Phase, "%s: %s: %s", f.Host, x.name, f.Error)
		assert.Contains(t, f.Error, x.says, x.name)
		assert.NotEmpty(t, f.Hint, "%s: %s", x.name, f.Error)
	}
	assert.Len(t, names, len(want))
	assert.Equal(t, "paictl cluster up --limit "+strings.Join(names, ","), partial.Retry)
	done := map[string]bool{}
	for _, e := range o.events {
		if e.Kind == engine.EventHostDone {
			done[e.Host] = true
		}
	}
	assert.Len(t, done, n-len(want))
	for name := range want {
		assert.False(t, done[name], name)
	}
}

func TestADetectionThatBreaksOffChangesNothing(t *testing.T) {
	s, so, applied := quickCluster(t, 3, func(h *quickHost) {
		if h.name == "w2" {
			h.broken = phases.PhaseContainerd
		}
	})
	o := runQuick(s, so)
	refused, ok := errors.AsType[*engine.PreflightError](o.err)
	require.True(t, ok, "%v", o.err)
	assert.Equal(t, 4, refused.ExitCode())
	assert.ErrorContains(t, o.err, "detect containerd on w2: exit status 2: sh: 7: stat: Input/output error")
	assert.Zero(t, applied.Load())
}

func BenchmarkUp100(b *testing.B) {
	s, so, _ := quickCluster(b, 100, nil)
	for b.Loop() {
		require.NoError(b, runQuick(s, so).err)
	}
}
