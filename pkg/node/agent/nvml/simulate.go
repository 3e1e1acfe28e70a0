//go:build cgo

package nvml

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// Simulate returns a collector of simulated GPUs. Simulate uses go-nvml's mock of a server, and adds functions that the mock doesn't implement. read
// returns the faults of the GPUs, and splits returns the splits of the GPUs.
func Simulate(node string, s gpu.Machine, read func() (map[int32]gpu.Fault, error), splits func() (map[int32]gpu.Split, error)) (*Collector, error) {
	w := &simulation{read: read, splits: splits, told: map[int32]gpu.Fault{}, split: map[int32]gpu.Split{}}
	config := modelOf(s.Model)
	srv, err := server.New(server.WithGPUs(gpus.Multiple(s.Count, config)...),
		server.WithDriverVersion("550.54.15"), server.WithNVMLVersion("12.550.54.15"), server.WithCUDADriverVersion(12040))
	if err != nil {
		return nil, err
	}
	for i, d := range srv.Devices {
		device, ok := d.(*server.Device)
		if !ok {
			return nil, fmt.Errorf("the mock's device %d is a %T", i, d)
		}
		device.UUID = fmt.Sprintf("SIM-%s-%d", node, i)
		w.furnish(int32(i), device)
		w.furnishMIG(device)
		w.devices = append(w.devices, device)
	}
	srv.ErrorStringFunc = func(r nvml.Return) string { return fmt.Sprintf("result %d", r) }
	srv.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{WaitFunc: w.wait, FreeFunc: func() nvml.Return { return nvml.SUCCESS }}, nvml.SUCCESS
	}
	c, err := New(srv)
	if err != nil {
		return nil, err
	}
	c.simulated, c.seesProcesses = gpu.SimulatedFiles, false // they have no processes
	w.lib = srv
	return c, w.resplit()
}

// modelOf returns the mock's GPU that is most similar to a model. The result has the name of the model.
func modelOf(model string) gpus.Config {
	out := gpus.A100_SXM4_40GB
	for _, known := range []struct {
		part   string
		config gpus.Config
	}{
		{"H100", gpus.H100_SXM5_80GB}, {"H200", gpus.H200_SXM5_141GB}, {"B200", gpus.B200_SXM5_180GB}, {"A30", gpus.A30_PCIE_24GB}, {"A100", gpus.A100_SXM4_80GB},
	} {
		if strings.Contains(strings.ToUpper(model), known.part) {
			out = known.config
			break
		}
	}
	out.Name = model
	return out
}

type simulation struct {
	read    func() (map[int32]gpu.Fault, error)
	splits  func() (map[int32]gpu.Split, error)
	lib     nvml.Interface
	devices []*server.Device
	split   map[int32]gpu.Split // how they are split at present

	mu     sync.Mutex
	faults map[int32]gpu.Fault
	told   map[int32]gpu.Fault // whose errors were reported
}

// look reads the faults. If the faults aren't readable, look keeps the previous faults.
func (w *simulation) look() {
	faults, err := w.read()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.faults = faults
	}
}

func (w *simulation) fault(index int32) gpu.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults[index]
}

// next returns an unreported error of a GPU. ok is false if no such error exists.
func (w *simulation) next() (index int32, xid int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.devices {
		index := int32(i)
		is := w.faults[index]
		was, known := w.told[index]
		if is == was && known {
			continue
		}
		w.told[index] = is
		if is == (gpu.Fault{}) {
			return index, 0, true // it works, as after a reset: its fault may have been cleared between two checks
		}
		if is.XID != 0 && (is.XID != was.XID || !is.At.Equal(was.At)) {
			return index, is.XID, true
		}
	}
	return 0, 0, false
}

// wait simulates the library's function that waits for errors. wait returns the next error, or a timeout.
func (w *simulation) wait(ms uint32) (nvml.EventData, nvml.Return) {
	const every = 100 * time.Millisecond
	for end := time.Now().Add(time.Duration(ms) * time.Millisecond); ; time.Sleep(every) {
		w.look()
		if err := w.resplit(); err != nil {
			return nvml.EventData{}, nvml.ERROR_UNKNOWN
		}
		if index, xid, ok := w.next(); ok {
			return nvml.EventData{Device: w.devices[index], EventType: nvml.EventTypeXidCriticalError, EventData: uint64(xid)}, nvml.SUCCESS
		}
		if !time.Now().Add(every).Before(end) {
			return nvml.EventData{}, nvml.ERROR_TIMEOUT
		}
	}
}

// These are the measurements of an idle GPU, and of a GPU that is too hot.
const (
	coolTemperature, hotTemperature = 34, 96
	idlePower                       = 52_000 // mW
	thermalSlowdown                 = 0x40   // of the reasons why clocks are low
	idleReason                      = 0x1
)

// furnish adds the functions that a collector calls and that the mock doesn't implement.
func (w *simulation) furnish(index int32, d *server.Device) {
	// lost returns an error if the GPU is lost.
	lost := func() nvml.Return {
		if w.fault(index).Lost {
			return nvml.ERROR_GPU_IS_LOST
		}
		return nvml.SUCCESS
	}
	d.GetUUIDFunc = func() (string, nvml.Return) { return d.UUID, lost() }
	d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) {
		return nvml.Memory{Total: d.MemoryInfo.Total, Free: d.MemoryInfo.Total}, lost()
	}
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{Bus: uint32(index) + 1}, nvml.SUCCESS }
	d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) { return nvml.GpuFabricInfo{}, nvml.ERROR_NOT_SUPPORTED }
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
		if w.fault(index).Hot {
			return hotTemperature, lost()
		}
		return coolTemperature, lost()
	}
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return idlePower, lost() }
	start := time.Now()
	d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) {
		return uint64(idlePower * time.Since(start).Seconds()), lost()
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, lost() }
	d.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 210, lost() }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) {
		if w.fault(index).Hot {
			return thermalSlowdown, lost()
		}
		return idleReason, lost()
	}
	d.GetPcieReplayCounterFunc = func() (int, nvml.Return) { return 0, lost() }
	d.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
		if kind == nvml.MEMORY_ERROR_TYPE_UNCORRECTED {
			return uint64(w.fault(index).ECC), lost()
		}
		return 0, lost()
	}
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, lost() }
	d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		if link < 12 {
			return nvml.FEATURE_ENABLED, lost()
		}
		return nvml.FEATURE_DISABLED, lost()
	}
	d.GetNvLinkErrorCounterFunc = func(int, nvml.NvLinkErrorCounter) (uint64, nvml.Return) { return 0, lost() }
	d.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return nvml.EventTypeXidCriticalError, lost() }
	d.GpmQueryDeviceSupportFunc = func() (nvml.GpmSupport, nvml.Return) { return nvml.GpmSupport{}, nvml.ERROR_NOT_SUPPORTED }
	d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return lost() }
}
