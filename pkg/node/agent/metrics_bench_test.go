package agent

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

var everyMeasurement = []string{
	gpu.Temperature, gpu.Power, gpu.Energy, gpu.Utilization, gpu.MemoryUtilization, gpu.SMClock, gpu.MemoryClock, gpu.ClockReasons, gpu.PCIeReplays,
	gpu.SingleBitVolatile, gpu.DoubleBitVolatile, gpu.SingleBitAggregate, gpu.DoubleBitAggregate, gpu.RowsRemapped, gpu.RowsRemappedUncorr,
	gpu.EngineActive, gpu.SMActive, gpu.SMOccupancy, gpu.TensorActive, gpu.DRAMActive, gpu.FP64Active, gpu.FP32Active, gpu.FP16Active,
	gpu.PCIeSent, gpu.PCIeReceived, gpu.NVLinkSent, gpu.NVLinkReceived, gpu.RowRemapPending, gpu.RowRemapFailed, gpu.NVLinkReplays, gpu.NVLinkRecoveries, gpu.NVLinkCRC,
}

// busy returns the agent of a machine with 16 GPUs and 20 claims. 16 of the claims contain a GPU.
func busy(b *testing.B) (*Driver, []byte) {
	b.Helper()
	m, err := openMonitor(b.TempDir()+"/gpus.json", "boot", slog.New(slog.DiscardHandler), time.Now)
	require.NoError(b, err)
	r := reportOf(16)
	for i := range r.GPUs {
		for k, name := range everyMeasurement {
			r.GPUs[i].Values[name] = float64(k)
		}
		r.GPUs[i].Values[gpu.DoubleBitVolatile], r.GPUs[i].Values[gpu.RowRemapFailed] = 0, 0
	}
	line, err := json.Marshal(r)
	require.NoError(b, err)
	m.see(r)
	d, err := newDriver(b.Context(), "n1", m, nil, folders{records: b.TempDir(), cdi: b.TempDir(), notices: b.TempDir(), cgroups: b.TempDir()}, slog.New(slog.DiscardHandler), func(err error) { b.Error(err) })
	require.NoError(b, err)
	for i := range 20 {
		rec := &record{UID: types.UID(fmt.Sprint("claim-", i)), Namespace: "default", Name: fmt.Sprint("job-", i), PodNames: []string{fmt.Sprint("job-", i)}}
		if i < 16 {
			rec.Devices = []assigned{{"gpus", fmt.Sprint("gpu-", i)}}
		}
		require.NoError(b, d.records.add(rec))
	}
	return d, line
}

// BenchmarkScrape measures one scrape of all metrics. The service prometheus scrapes every 30 s by default.
func BenchmarkScrape(b *testing.B) {
	d, _ := busy(b)
	registry := prometheus.NewRegistry()
	registry.MustRegister(newMetrics(d))
	series := 0
	b.ReportAllocs()
	for b.Loop() {
		families, err := registry.Gather()
		require.NoError(b, err)
		series = 0
		for _, f := range families {
			series += len(f.GetMetric())
		}
	}
	b.ReportMetric(float64(series), "series")
}

// BenchmarkReport measures the processing of a report of pai-nvml. pai-nvml writes a report every two seconds.
func BenchmarkReport(b *testing.B) {
	d, line := busy(b)
	b.ReportAllocs()
	for b.Loop() {
		var r gpu.Report
		require.NoError(b, json.Unmarshal(line, &r))
		d.gpus.see(&r)
		d.gpus.tick()
	}
	b.ReportMetric(float64(len(line)), "B/line")
}
