package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/ssh"
)

// BenchmarkReads measures the commands that operators use most often, on a cluster with four hosts. For comparison, it measures plain kubectl, and
// commands over plain SSH.
func BenchmarkReads(b *testing.B) {
	s := newServices(b, "e2er", 4)
	s.push()
	s.start(0)
	q, _, err := config.LoadQuickStart(filepath.Join(s.dir, "quick-start.yaml"))
	require.NoError(b, err)
	b.Run("kubectl-get-nodes", func(b *testing.B) {
		for range b.N {
			out, err := exec.CommandContext(b.Context(), filepath.Join(bundle, "bin", "kubectl"), "--kubeconfig", s.kubeconfig, "get", "nodes").CombinedOutput()
			require.NoError(b, err, "%s", out)
		}
	})
	b.Run("bare-exec", func(b *testing.B) {
		for range b.N {
			onAll(b, q.Targets(), ssh.Script{Name: "true", Body: "true\n"})
		}
	})
	for name, args := range map[string][]string{
		"version":        {"version"},
		"node-list":      {"node", "list", "-p", s.cluster},
		"node-gpu-list":  s.args("node", "gpu", "list"),
		"cluster-status": {"cluster", "status", "-p", s.cluster},
		"cluster-plan":   {"cluster", "plan", "-p", s.cluster},
		"service-status": s.args("service", "status"),
		"status-once":    s.args("status", "--once"),
		"vc-list":        s.args("vc", "list"),
		"job-list":       s.args("job", "list"),
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				ok(b, args...)
			}
		})
	}
}
