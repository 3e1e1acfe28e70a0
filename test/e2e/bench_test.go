package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// BenchmarkClusterUp measures how long it takes to create a cluster of three fresh hosts, with paictl and with a script of manual steps.
func BenchmarkClusterUp(b *testing.B) {
	b.Run("paictl", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			l := newLab(b, "e2eb", 3)
			l.generate()
			b.StartTimer()
			l.up(0)
			b.StopTimer()
			l.destroy()
		}
	})
	b.Run("by-hand", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			l := newLab(b, "e2eb", 3)
			args := []string{"testdata/handwritten.sh", bundle, filepath.Join(l.dir, "id_ed25519"), filepath.Join(l.dir, "known_hosts")}
			for i := range l.names {
				args = append(args, l.address(i))
			}
			b.StartTimer()
			out, err := exec.CommandContext(b.Context(), "sh", args...).CombinedOutput()
			b.StopTimer()
			require.NoError(b, err, "%s", out)
			l.destroy()
		}
	})
}

// BenchmarkFacts50LightHosts reads all hardware facts of 50 hosts. For comparison, it also runs "true" on each host over plain SSH. Both
// measurements include connection and authentication.
func BenchmarkFacts50LightHosts(b *testing.B) {
	l := newLab(b, "e2ef", 50, "--light")
	q, _, err := config.LoadQuickStart(filepath.Join(l.dir, "quick-start.yaml"))
	require.NoError(b, err)
	b.Run("facts", func(b *testing.B) {
		for range b.N {
			facts, err := config.Discover(b.Context(), ssh.NewClient(ssh.Options{}), q.Targets(), time.Minute, nil)
			require.NoError(b, err)
			require.Len(b, facts, 50)
		}
	})
	b.Run("bare-exec", func(b *testing.B) {
		for range b.N {
			onAll(b, q.Targets(), ssh.Script{Name: "true", Body: "true\n"})
		}
	})
	b.Run("facts-on-open-connections", func(b *testing.B) {
		onAllOpen(b, q.Targets(), ssh.Script{Name: "facts", Body: layout.DiscoverScript()})
	})
	b.Run("bare-exec-on-open-connections", func(b *testing.B) {
		onAllOpen(b, q.Targets(), ssh.Script{Name: "true", Body: "true\n"})
	})
}

// onAll connects to all targets concurrently, and runs the script on each target.
func onAll(b *testing.B, targets []ssh.Target, s ssh.Script) {
	b.Helper()
	client := ssh.NewClient(ssh.Options{})
	each(b, len(targets), func(ctx context.Context, i int) error {
		h, err := client.Dial(ctx, targets[i])
		if err != nil {
			return err
		}
		defer h.Close()
		_, err = h.Run(ctx, s)
		return err
	})
}

// onAllOpen runs the script on all targets over connections that are already open, so it measures only the script.
func onAllOpen(b *testing.B, targets []ssh.Target, s ssh.Script) {
	b.Helper()
	client := ssh.NewClient(ssh.Options{})
	hosts := make([]ssh.Host, len(targets))
	each(b, len(targets), func(ctx context.Context, i int) (err error) {
		hosts[i], err = client.Dial(ctx, targets[i])
		return err
	})
	b.Cleanup(func() {
		for _, h := range hosts {
			_ = h.Close() // the benchmark has ended
		}
	})
	b.ResetTimer()
	for range b.N {
		each(b, len(hosts), func(ctx context.Context, i int) error {
			_, err := hosts[i].Run(ctx, s)
			return err
		})
	}
}

func each(b *testing.B, n int, do func(context.Context, int) error) {
	b.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(b.Context(), i) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(b, err)
	}
}
