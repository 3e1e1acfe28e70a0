//go:build cgo

package nvml

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// activity measures how busy the parts of GPUs are. Hopper and later GPUs count this activity. A measurement compares two samples of the counters.
type activity struct {
	lib nvml.Interface
	// samples maps the buses of GPUs to their samples. The value is nil for a GPU without these counters.
	samples map[string]*samples
}

type samples struct {
	now, before nvml.GpmSample
	taken       bool // before has a sample
}

// counted lists the metrics to read, with the factors for dcgm-exporter's units.
var counted = []struct {
	id   nvml.GpmMetricId
	name string
	unit float64
}{
	{nvml.GPM_METRIC_GRAPHICS_UTIL, gpu.EngineActive, percent},
	{nvml.GPM_METRIC_SM_UTIL, gpu.SMActive, percent},
	{nvml.GPM_METRIC_SM_OCCUPANCY, gpu.SMOccupancy, percent},
	{nvml.GPM_METRIC_ANY_TENSOR_UTIL, gpu.TensorActive, percent},
	{nvml.GPM_METRIC_DRAM_BW_UTIL, gpu.DRAMActive, percent},
	{nvml.GPM_METRIC_FP64_UTIL, gpu.FP64Active, percent},
	{nvml.GPM_METRIC_FP32_UTIL, gpu.FP32Active, percent},
	{nvml.GPM_METRIC_FP16_UTIL, gpu.FP16Active, percent},
	{nvml.GPM_METRIC_PCIE_TX_PER_SEC, gpu.PCIeSent, mebibyte},
	{nvml.GPM_METRIC_PCIE_RX_PER_SEC, gpu.PCIeReceived, mebibyte},
	{nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, gpu.NVLinkSent, mebibyte},
	{nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, gpu.NVLinkReceived, mebibyte},
}

const (
	percent  = 0.01
	mebibyte = 1 << 20
)

// measure takes a sample of a GPU, and reads the activity since the previous sample. measure leaves out unreadable values.
func (a *activity) measure(d nvml.Device, bus string, values map[string]float64) {
	s, known := a.samples[bus]
	if !known {
		s = a.begin(d)
		a.samples[bus] = s
	}
	if s == nil {
		return
	}
	if d.GpmSampleGet(s.now) != nvml.SUCCESS {
		a.forget(bus) // begins again with the next report, for the GPU that has the bus then
		return
	}
	if s.taken {
		a.read(s, values)
	}
	s.now, s.before, s.taken = s.before, s.now, true
}

// read computes a GPU's activity between two samples.
func (a *activity) read(s *samples, values map[string]float64) {
	// The library's array contains an entry for each metric of any version. The library reads only the first NumMetrics entries.
	ask := &nvml.GpmMetricsGetType{NumMetrics: uint32(len(counted)), Sample1: s.before, Sample2: s.now}
	for i, c := range counted {
		ask.Metrics[i].MetricId = uint32(c.id)
	}
	if a.lib.GpmMetricsGet(ask) != nvml.SUCCESS {
		return
	}
	for i, c := range counted {
		m := ask.Metrics[i]
		if nvml.Return(m.NvmlReturn) == nvml.SUCCESS && !math.IsNaN(m.Value) && !math.IsInf(m.Value, 0) {
			values[c.name] = m.Value * c.unit
		}
	}
}

// begin allocates the samples of a GPU. begin returns nil if the GPU has no counters.
func (a *activity) begin(d nvml.Device) *samples {
	for _, name := range []string{"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"} {
		if a.lib.Extensions().LookupSymbol(name) != nil {
			return nil // drivers before 525
		}
	}
	if support, r := d.GpmQueryDeviceSupport(); r != nvml.SUCCESS || support.IsSupportedDevice == 0 {
		return nil
	}
	now, r := a.lib.GpmSampleAlloc()
	if r != nvml.SUCCESS {
		return nil
	}
	before, r := a.lib.GpmSampleAlloc()
	if r != nvml.SUCCESS {
		_ = a.lib.GpmSampleFree(now)
		return nil
	}
	return &samples{now: now, before: before}
}

// forget frees the samples of a GPU, so that the next measurement begins with new samples.
func (a *activity) forget(bus string) {
	if s := a.samples[bus]; s != nil {
		_, _ = a.lib.GpmSampleFree(s.now), a.lib.GpmSampleFree(s.before)
	}
	delete(a.samples, bus)
}
