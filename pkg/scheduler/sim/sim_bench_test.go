package sim_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// BenchmarkTrace replays generated traces. It reports how fast and how well the scheduler placed the jobs. PAICTL_TRACE_SEEDS
// selects other seeds.
//
//	go test ./pkg/scheduler/sim -run '^$' -bench 'Trace/512/seed7' -benchtime 1x
func BenchmarkTrace(b *testing.B) {
	for _, gpus := range trace.Sizes() {
		b.Run(strconv.Itoa(gpus), func(b *testing.B) {
			for _, seed := range seeds(b) {
				b.Run(fmt.Sprintf("seed%d", seed), func(b *testing.B) { benchmarkTrace(b, gpus, seed) })
			}
		})
	}
}

func seeds(b *testing.B) []uint64 {
	text := os.Getenv("PAICTL_TRACE_SEEDS")
	if text == "" {
		text = "1,7,42"
	}
	var out []uint64
	for _, s := range strings.Split(text, ",") {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(b, err, "PAICTL_TRACE_SEEDS")
		out = append(out, n)
	}
	return out
}

func benchmarkTrace(b *testing.B, gpus int, seed uint64) {
	tr, err := trace.Generate(gpus, seed)
	require.NoError(b, err)
	o := sim.Options{Meter: sim.System()}
	var r *sim.Report
	for b.Loop() {
		r, err = sim.Run(b.Context(), tr.Config, tr.Jobs, o)
		require.NoError(b, err)
	}
	b.ReportMetric(r.Utilisation, "util")
	b.ReportMetric(float64(r.PreemptedJobs), "killed")
	b.ReportMetric(float64(r.JobsThatWaitedWithinQuota), "waitedInQuota")
	b.ReportMetric(r.Mean, "queue-s")
	b.ReportMetric(r.OptimalLocality.All.Share, "optimal")
	b.ReportMetric(r.OptimalLocality.Guaranteed.Share, "optimal-guar")
	b.ReportMetric(r.OptimalLocality.Opportunistic.Share, "optimal-opp")
	for _, s := range r.Sizes {
		if s.GPUs == 16 || s.GPUs == 32 || s.GPUs == 64 {
			b.ReportMetric(1-float64(s.Levels[sim.Beyond])/float64(s.Starts), fmt.Sprintf("rack%d", s.GPUs))
		}
	}
	if r.Speed != nil {
		b.ReportMetric(r.Speed.DecisionsPerSec, "dec/s")
		b.ReportMetric(r.Speed.P50, "p50us")
		b.ReportMetric(r.Speed.P99, "p99us")
		b.ReportMetric(r.Speed.AllocBytesPerDecision, "B/dec")
	}
}
