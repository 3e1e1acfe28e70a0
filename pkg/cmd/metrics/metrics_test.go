package metrics

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func flags(t *testing.T, args ...string) *Flags {
	t.Helper()
	fl, cmd := &Flags{}, &cobra.Command{Run: func(*cobra.Command, []string) {}}
	fl.Add(cmd, "6h")
	cmd.SetArgs(args)
	require.NoError(t, cmd.Execute())
	return fl
}

func values(all ...float64) (out []*float64) {
	for _, v := range all {
		if v < 0 {
			out = append(out, nil)
			continue
		}
		out = append(out, &v)
	}
	return out
}

func report() *metrics.Report {
	since := time.Date(2026, 1, 31, 11, 0, 0, 0, time.Local)
	return &metrics.Report{Since: since, Until: since.Add(2 * time.Minute), Step: 30, Findings: []metrics.Finding{{Kind: metrics.GPUsIdle, Text: "The GPU was idle (below 5 %) 95 % of the time."}}, Charts: []metrics.Chart{
		{Name: "gpu-use", Title: "GPU use", Unit: metrics.UnitPercent, Series: []metrics.Series{{Name: "worker[0] GPU 3", Values: values(0, 50, -1, 99, 100)}}},
		{Name: "memory", Title: "Memory", Unit: metrics.UnitBytes, Series: []metrics.Series{{Name: "worker[0]", Limit: new(float64(4 << 30)), Values: values(1<<30, 1<<30, 2<<30, 2<<30, 4<<30)}}},
		{Name: "network-in", Title: "Network, received", Unit: metrics.UnitRate, Folded: 9, Series: []metrics.Series{{Name: metrics.Mean, Values: values(0, 0, 0, 0, 0)}}},
		{Name: "oldest", Title: "The oldest has waited", Unit: metrics.UnitSeconds, Series: []metrics.Series{{Values: values(60, 60, 60, 90, -1)}}},
		{Name: "cpu", Title: "Processors", Unit: metrics.UnitCores, Folded: -1, Series: []metrics.Series{{Name: metrics.Highest, Values: values(-1, -1, -1, -1, -1)}}},
	}}
}

func TestATableHasALineForEachSeries(t *testing.T) {
	var out, say bytes.Buffer
	f := &cmdutil.Factory{IO: &iostreams.IOStreams{Out: &out, Err: &say}}
	require.NoError(t, flags(t).Write(f, report()))
	assert.Equal(t, `METRIC                  OF                LOWEST    MEAN      HIGHEST   LIMIT     OVER TIME
GPU use                 worker[0] GPU 3   0 %       62 %      100 %     -         ▁▅ ██
Memory                  worker[0]         1.0 GiB   2.0 GiB   4.0 GiB   4.0 GiB   ▃▃▅▅█
Network, received       mean of 9         0 B/s     0 B/s     0 B/s     -         ▁▁▁▁▁
The oldest has waited   -                 1m0s      1m7s      1m30s     -         ▆▆▆█

2026-01-31 11:00 to 2026-01-31 11:02, a value every 30s

The GPU was idle (below 5 %) 95 % of the time.
`, out.String())
	out.Reset()
	require.NoError(t, flags(t, "-o", "json").Write(f, report()))
	assert.Contains(t, out.String(), `"kind": "gpus-idle"`)
	out.Reset()
	require.NoError(t, flags(t).Write(f, &metrics.Report{Note: "Prometheus has no figures."}))
	assert.Empty(t, out.String())
	assert.Contains(t, say.String(), "Prometheus has no figures.")
}

func TestALongLineIsDrawnInColumns(t *testing.T) {
	all := make([]float64, 300)
	for i := range all {
		all[i] = float64(i)
	}
	assert.Len(t, []rune(spark(values(all...), 299)), columns)
	assert.Empty(t, spark(values(-1, -1), 1))
}

func TestTheRangeOfFlags(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	for _, c := range []struct {
		args []string
		want metrics.Window
	}{
		{nil, metrics.Window{}},
		{[]string{"--since", "6h"}, metrics.Window{Last: 6 * time.Hour}},
		{[]string{"--since", "7d"}, metrics.Window{Last: 7 * 24 * time.Hour}},
		{[]string{"--since", "2026-01-30"}, metrics.Window{Since: time.Date(2026, 1, 30, 0, 0, 0, 0, time.Local)}},
		{[]string{"--since", "1h", "--until", "2h"}, metrics.Window{Last: time.Hour, Until: now.Add(-2 * time.Hour)}},
	} {
		w, err := flags(t, c.args...).Window(now)
		require.NoError(t, err, c.args)
		assert.Equal(t, c.want, w, c.args)
	}
	for _, args := range [][]string{{"--since", "soon"}, {"--until", "soon"}, {"--since", "1s"}, {"--since", "2026-01-30", "--until", "2026-01-29"}} {
		_, err := flags(t, args...).Window(now)
		require.Error(t, err, args)
	}
}
