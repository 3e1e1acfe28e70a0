package sim_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/sim"
)

// FuzzReplay checks that Replay answers every step of any file, that nothing panics, and that the scheduler's state is
// consistent.
func FuzzReplay(f *testing.F) {
	files, err := filepath.Glob("testdata/examples/*.yaml")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		if _, steps, ok := strings.Cut(string(data), "\nsteps:\n"); ok {
			f.Add([]byte(steps))
		}
	}
	f.Add([]byte(`[{"op":"start"},{"op":"schedule","pod":{"name":"p"},"podSchedulingSpec":"virtualCluster: A\nleafCellNumber: 1"},{"op":"addAllocatedPod","pod":"default/p"}]`))
	f.Add([]byte("- inspect\n- {op: start, healthyNodes: [a0]}\n- {op: inspect, node: a0}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := sim.ReplayOptions{Verify: true, Config: &sim.Source{Name: "fuzz.yaml", Data: []byte(clusters[0])},
			ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}
		// Clusters of millions of cells are valid, but too slow for this test. Configurations have a separate fuzz target.
		if strings.Contains(string(data), "config") {
			return
		}
		_ = sim.Replay(t.Context(), "-", data, o, func(l *sim.Line) error {
			if l.Violation != "" || strings.Contains(l.Reason, "panicked") {
				t.Errorf("step %d (%s): %s%s", l.Step, l.Op, l.Violation, l.Reason)
			}
			return nil
		})
	})
}
