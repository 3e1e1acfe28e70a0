package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// quickHost answers scripts as a host does whose every step goes well, without a shell:
// what is measured is paictl.
type quickHost struct {
	name, ticket, nodes string
	broken              string // a section of detect that breaks off
	applied             *atomic.Int64
}

func (h quickHost) Exec(_ context.Context, e *sshtest.Exec) int {
	body, held, err := e.Script()
	switch {
	case err != nil:
		return 255
	case held:
		_, _ = io.WriteString(e.Stdout, "held\n")
		_, _ = io.Copy(io.Discard, e.Stdin)
	case strings.HasPrefix(body, "manifest="): // an upload: all files are there
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

// quickCluster is a specification of n machines, the first of which is the master, and how
// to reach them.
func quickCluster(t testing.TB, n int, edit func(*quickHost)) (*Spec, ssh.Options, *atomic.Int64) {
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
			name: node.Hostname, applied: applied, nodes: `{"items":[` + strings.Join(items, ",") + `]}`,
			ticket: "token\tabcdef.0123456789abcdef\nca\t" + base64.StdEncoding.EncodeToString(ca) + "\n",
		}
		if edit != nil {
			edit(&h)
		}
		server := sshtest.NewServer(t, sshtest.Config{Name: node.Hostname, Handler: h, HostKeys: []cssh.Signer{key}})
		node.Target = server.Target()
		servers = append(servers, server)
	}
	return s, sshtest.Options(t, servers...), applied
}

func runQuick(s *Spec, so ssh.Options) *outcome {
	counter, events := &ssh.Counter{}, &sink{}
	so.Tracer = counter
	client := ssh.NewClient(so)
	defer func() { _ = client.Close() }()
	cs, err := Up(context.Background(), s, Options{Dialer: client, Sink: events, Clock: time.Now, Owner: "tester", Command: "paictl cluster up"})
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
		if e.Kind == EventHostDone {
			done++
		}
	}
	assert.Equal(t, n, done)
	// base, containerd, kubelet, images and network on each, join on all but one; init,
	// token and labels on that one.
	assert.Equal(t, int64(6*n+2), applied.Load())
	trips := o.trips.Hosts()
	assert.Equal(t, trips["w1"].RoundTrips, trips[fmt.Sprintf("w%d", n-1)].RoundTrips)
	assert.LessOrEqual(t, trips["w1"].RoundTrips, 13, "detect, then per phase: uploads, apply, verify")
	assert.Equal(t, 1, trips["w1"].Dials)
}

func TestADetectionThatBreaksOffChangesNothing(t *testing.T) {
	s, so, applied := quickCluster(t, 3, func(h *quickHost) {
		if h.name == "w2" {
			h.broken = phaseContainerd
		}
	})
	o := runQuick(s, so)
	refused, ok := errors.AsType[*PreflightError](o.err)
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
