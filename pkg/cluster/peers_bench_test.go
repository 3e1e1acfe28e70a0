package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/test/tier"
)

// lightLab is a sandbox of hosts that run only sshd. The hosts get the files of a real bundle.
type lightLab struct {
	t    testing.TB
	spec *engine.Spec
}

// newLightLab starts the hosts of a lightLab. It needs root on Linux, PAICTL_E2E=1 and a bundle in PAICTL_BUNDLE, and otherwise skips the test.
func newLightLab(t testing.TB, hosts int) *lightLab {
	t.Helper()
	if os.Getenv("PAICTL_E2E") == "" || os.Getenv("PAICTL_BUNDLE") == "" {
		t.Skip(tier.SkipHosts + "sandbox hosts, which need PAICTL_E2E=1, PAICTL_BUNDLE and root")
	}
	b, err := bundle.Open(os.Getenv("PAICTL_BUNDLE"))
	require.NoError(t, err)
	dir := t.TempDir()
	s, err := sandbox.Up(t.Context(), sandbox.Options{Dir: filepath.Join(dir, "sandbox"), Name: "copies", Hosts: hosts, Kind: sandbox.Light})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Down(context.WithoutCancel(t.Context()))) })
	g, err := config.Generate(t.Context(), config.Generation{QuickStart: s.QuickStart(), OutDir: filepath.Join(dir, "conf"), Offline: true, DryRun: true})
	require.NoError(t, err)
	spec, err := engine.NewSpec(g.Cluster, b)
	require.NoError(t, err)
	return &lightLab{t: t, spec: spec}
}

// limit limits the network rate of each host. If own isn't empty, it also limits the rate of paictl's machine. A rate is a text such as 100mbit.
func (l *lightLab) limit(each, own string) {
	l.t.Helper()
	limit := func(dev, rate string) {
		args := []string{"qdisc", "del", "dev", dev, "root"}
		if rate != "" {
			args = []string{"qdisc", "replace", "dev", dev, "root", "tbf", "rate", rate, "burst", "64kb", "latency", "100ms"}
		}
		out, err := exec.CommandContext(l.t.Context(), "tc", args...).CombinedOutput()
		if rate != "" {
			require.NoError(l.t, err, "%s", out)
		}
	}
	for i := range l.spec.Nodes {
		limit(fmt.Sprintf("vb-copies-%d", i+1), each)
	}
	limit("pb-copies", own)
	l.all("tc qdisc replace dev host0 root tbf rate " + each + " burst 64kb latency 100ms\n")
}

func (l *lightLab) all(script string) {
	l.t.Helper()
	r, _ := l.connected(engine.Options{})
	defer r.Close()
	for n, err := range r.Each(l.t.Context(), l.spec.Nodes, func(ctx context.Context, n *engine.Node) error {
		res, err := r.Host(n).Run(ctx, ssh.Script{Name: "test", Mutates: true, Body: script})
		if err == nil && res.ExitCode != 0 {
			err = fmt.Errorf("%s", res.Stderr)
		}
		return err
	}) {
		require.NoError(l.t, err, n.Hostname)
	}
}

func (l *lightLab) connected(o engine.Options) (*engine.Run, *sink) {
	l.t.Helper()
	events := &sink{}
	client := ssh.NewClient(ssh.Options{})
	l.t.Cleanup(func() { _ = client.Close() })
	o.Dialer, o.Clock = client, time.Now
	if o.Sink == nil {
		o.Sink = events
	}
	r := engine.NewRun(l.spec, o)
	for n, err := range r.Each(l.t.Context(), l.spec.Nodes, r.Dial) {
		require.NoError(l.t, err, n.Hostname)
	}
	return r, events
}

// bring copies the files of phases to all hosts as if the hosts were fresh, without the other work of the phases.
func (l *lightLab) bring(ctx context.Context, r *engine.Run, phases ...engine.Phase) map[*engine.Node]error {
	l.t.Helper()
	p, err := r.Plan(&engine.World{Want: l.spec.Fresh(), Facts: map[string]*engine.Facts{}, Outside: map[string]bool{}}, l.spec.Nodes, phases)
	require.NoError(l.t, err)
	require.NoError(l.t, r.Share(p, l.spec.Nodes))
	return r.Each(ctx, l.spec.Nodes, func(ctx context.Context, n *engine.Node) error {
		for _, ph := range phases {
			var files []ssh.File
			for _, a := range ph.(engine.Carrier).Carries(n, p.World, p.Of(n, ph.Name())) {
				files = append(files, r.UploadFile(engine.Staged(a), a))
			}
			if err := r.Upload(ctx, n, ph.Name(), files); err != nil {
				return err
			}
		}
		return nil
	})
}

// complete asserts that each host has the files of phases. The hosts calculate the checksums.
func (l *lightLab) complete(phases ...engine.Phase) {
	l.t.Helper()
	for _, n := range l.spec.Nodes {
		var sums bytes.Buffer
		r, _ := l.connected(engine.Options{Limit: []string{n.Hostname}})
		p, err := r.Plan(&engine.World{Want: l.spec.Fresh(), Facts: map[string]*engine.Facts{}, Outside: map[string]bool{}}, []*engine.Node{n}, phases)
		require.NoError(l.t, err)
		for _, ph := range phases {
			for _, a := range ph.(engine.Carrier).Carries(n, p.World, p.Of(n, ph.Name())) {
				fmt.Fprintf(&sums, "%s  %s\n", a.SHA256, engine.Staged(a))
			}
		}
		res, err := r.Host(n).Run(l.t.Context(), ssh.Script{Name: "test", Body: "sha256sum --quiet -c <<'SUMS'\n" + sums.String() + "SUMS\n"})
		require.NoError(l.t, err)
		require.Zero(l.t, res.ExitCode, "%s: %s%s", n.Hostname, res.Stdout, res.Stderr)
		r.Close()
	}
}

// BenchmarkCopies copies files of a real bundle to hosts with limited networks. It first copies them between machines, and then sends all files from
// paictl.
func BenchmarkCopies(b *testing.B) {
	for _, tt := range []struct {
		hosts     int
		each, own string
		phases    func(s *engine.Spec) []engine.Phase
	}{
		{8, "100mbit", "", func(s *engine.Spec) []engine.Phase {
			return []engine.Phase{phases.Named(s.Fresh(), phases.PhaseContainerd), phases.Named(s.Fresh(), phases.PhaseKubelet), phases.Named(s.Fresh(), phases.PhaseImages)}
		}},
		{8, "100mbit", "100mbit", func(s *engine.Spec) []engine.Phase {
			return []engine.Phase{phases.Named(s.Fresh(), phases.PhaseContainerd), phases.Named(s.Fresh(), phases.PhaseKubelet), phases.Named(s.Fresh(), phases.PhaseImages)}
		}},
		{50, "20mbit", "", func(s *engine.Spec) []engine.Phase {
			return []engine.Phase{phases.Named(s.Fresh(), phases.PhaseContainerd)}
		}},
	} {
		name := fmt.Sprintf("%d-hosts-%s", tt.hosts, tt.each)
		if tt.own != "" {
			name += "-own-" + tt.own
		}
		b.Run(name, func(b *testing.B) {
			l := newLightLab(b, tt.hosts)
			for _, mode := range []string{"peers", "all-from-here"} {
				b.Run(mode, func(b *testing.B) {
					l.t = b
					for range b.N {
						b.StopTimer()
						l.all("rm -rf /var/lib/paictl\n")
						l.limit(tt.each, tt.own)
						r, events := l.connected(engine.Options{NoPeers: mode != "peers"})
						b.StartTimer()
						errs := l.bring(b.Context(), r, tt.phases(l.spec)...)
						b.StopTimer()
						require.Empty(b, errs)
						r.Close()
						for _, e := range events.events {
							if e.Kind == engine.EventWarning {
								b.Log(e.Host, e.Message)
							}
						}
						b.ReportMetric(float64(r.Sent.Load())/1e6, "MB-sent")
						b.ReportMetric(float64(r.Passed.Load())/1e6, "MB-passed")
					}
				})
			}
		})
	}
}

// The test uses real hosts with real networks between them. It includes a firewall, and requests to the port without permission.
func TestFilesGoBetweenRealHosts(t *testing.T) {
	tier.Hosts(t, "sandbox hosts")
	l := newLightLab(t, 6)
	bring := []engine.Phase{phases.Named(l.spec.Fresh(), phases.PhaseContainerd)}
	last := l.spec.Nodes[5]

	t.Run("one host behind a firewall gets its files from here", func(t *testing.T) {
		l.t = t
		r, _ := l.connected(engine.Options{})
		res, err := r.Host(last).Run(t.Context(), ssh.Script{Name: "test", Mutates: true, Body: fmt.Sprintf(
			"nft add table ip wall\nnft 'add chain ip wall out { type filter hook output priority 0; }'\nnft add rule ip wall out tcp dport %d drop\n", config.PeerPort)})
		require.NoError(t, err)
		require.Zero(t, res.ExitCode, "%s", res.Stderr)
		r.Close()
		r, events := l.connected(engine.Options{})
		require.Empty(t, l.bring(t.Context(), r, bring...))
		r.Close()
		l.complete(bring...)
		assert.Positive(t, r.Passed.Load())
		var said []string
		for _, e := range events.events {
			if e.Kind == engine.EventWarning {
				said = append(said, e.Host+": "+e.Message+" -> "+e.Hint)
			}
		}
		require.Len(t, said, 1)
		assert.Contains(t, said[0], last.Hostname+": it can't get files from other machines, so its files are sent from here")
		assert.Contains(t, said[0], "i/o timeout")
	})
	t.Run("a firewall between all", func(t *testing.T) {
		l.t = t
		l.all("rm -rf /var/lib/paictl\nnft delete table ip wall 2>/dev/null || :\n" + fmt.Sprintf(
			"nft add table ip wall\nnft 'add chain ip wall in { type filter hook input priority 0; }'\nnft add rule ip wall in tcp dport %d drop\n", config.PeerPort))
		r, events := l.connected(engine.Options{})
		require.Empty(t, l.bring(t.Context(), r, bring...))
		r.Close()
		l.complete(bring...)
		assert.Zero(t, r.Passed.Load())
		var said []string
		for _, e := range events.events {
			if e.Kind == engine.EventWarning {
				said = append(said, e.Message)
			}
		}
		require.Len(t, said, 1, "%s", strings.Join(said, "\n"))
		assert.Contains(t, said[0], "machines don't reach each other: all files are sent from here")
	})
	t.Run("nothing is left", func(t *testing.T) {
		l.t = t
		l.all("nft delete table ip wall\n" + fmt.Sprintf(`[ -z "$(ls -d /var/lib/paictl/peer-* 2>/dev/null)" ] && [ -z "$(ss -Hltn 'sport = :%d')" ]`, config.PeerPort))
	})
}
