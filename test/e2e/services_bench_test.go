package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkServices measures the commands for services on a cluster with three hosts. It compares the start of all services with the plain helm
// client, which installs the same charts with the same values concurrently.
func BenchmarkServices(b *testing.B) {
	s := newServices(b, "e2ev", 3)
	s.push()
	s.start(0) // images are unpacked, node labels set
	values, names := s.values(), s.revisions()
	b.Run("status", func(b *testing.B) {
		for range b.N {
			ok(b, s.args("service", "status")...)
		}
	})
	b.Run("push", func(b *testing.B) {
		for i := range b.N {
			b.StopTimer()
			setSection(b, s.cluster, "prometheus", map[string]any{"scrape": map[string]any{"interval": fmt.Sprintf("%ds", 31+i%20)}})
			b.StartTimer()
			s.push()
		}
	})
	b.Run("start-again", func(b *testing.B) {
		s.start(0)
		for range b.N {
			s.start(0)
		}
	})
	b.Run("start", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			s.run(0, "delete", "--yes")
			b.StartTimer()
			s.start(0)
		}
	})
	b.Run("by-hand", func(b *testing.B) {
		helm, err := exec.Command("sh", "../../hack/helm.sh").Output()
		require.NoError(b, err)
		args := []string{"testdata/helm-install.sh", strings.TrimSpace(string(helm)), filepath.Join(bundle, "charts"), values}
		for name := range names {
			args = append(args, name)
		}
		for range b.N {
			b.StopTimer()
			s.run(0, "delete", "--yes")
			b.StartTimer()
			cmd := exec.CommandContext(b.Context(), "sh", args...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
			out, err := cmd.CombinedOutput()
			require.NoError(b, err, "%s", out)
		}
	})
}

// values writes the values of each service to a file, and returns the folder of these files.
func (s *services) values() string {
	s.t.Helper()
	dir := s.t.TempDir()
	for name := range s.revisions() {
		r := ok(s.t, s.args("service", "values", "-n", name, "-o", "yaml")...)
		require.NoError(s.t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(r.stdout), 0o600))
	}
	return dir
}
