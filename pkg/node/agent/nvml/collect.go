//go:build cgo

// Package nvml reads the properties and measurements of the machine's GPUs from NVIDIA's management library. In: the library, or a mock of the
// library. Out: a report every few seconds, and an immediate report when a GPU reports an error.
//
// The library is written in C, and a call of the library may block forever if a GPU hangs. Therefore the library runs in a separate program,
// pai-nvml.
package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// waitForEvents is the time limit of a call that waits for errors, in milliseconds. Stopping the program may take this long.
const waitForEvents = 500

// Collector reads the state and the measurements of GPUs with an NVML library.
type Collector struct {
	lib    nvml.Interface
	events nvml.EventSet
	// buses maps the numbers of GPUs to their PCI addresses. A lost GPU no longer reports its address.
	buses map[int]string
	last  []gpu.GPU
	// watched contains the buses of the GPUs that the library watches for errors.
	watched map[string]bool
	// simulated returns the files of a simulated GPU. simulated is nil if the GPUs are real.
	simulated func(index int32) []gpu.File
	now       func() time.Time
	activity  activity
	// seesProcesses means that the program can read the processes of the whole machine.
	seesProcesses bool
	// devices is the kernel's folder of PCI devices.
	devices string
}

// pciDevices is the path of the kernel's folder of PCI devices. pciDevices is the same on a machine and in containers.
const pciDevices = "/sys/bus/pci/devices"

// New initializes lib and returns a collector.
func New(lib nvml.Interface) (*Collector, error) {
	if r := lib.Init(); r != nvml.SUCCESS {
		return nil, fmt.Errorf("open NVIDIA's management library: %w", explain(lib, r))
	}
	c := &Collector{
		lib: lib, watched: map[string]bool{}, buses: map[int]string{}, now: time.Now, activity: activity{lib: lib, samples: map[string]*samples{}}, seesProcesses: seesProcesses(),
		devices: pciDevices,
	}
	return c, c.listen()
}

// listen creates the event set for errors of the GPUs. The next report registers the GPUs. Earlier errors are lost.
func (c *Collector) listen() error {
	set, r := c.lib.EventSetCreate()
	if r != nvml.SUCCESS {
		return fmt.Errorf("listen for errors of GPUs: %w", explain(c.lib, r))
	}
	if c.events != nil {
		_ = c.events.Free() // it no longer receives events
	}
	c.events = set
	clear(c.watched)
	return nil
}

// explain converts a result of the library to an error. The error contains the library's text or a more helpful text.
func explain(lib nvml.Interface, r nvml.Return) error {
	text := lib.ErrorString(r)
	switch r {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		text = "it isn't installed; it comes with the driver"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		text = "the driver isn't loaded: see dmesg, and dkms status"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		text = "the loaded driver and the library have different versions: restart the machine"
	}
	return errors.New(text)
}

// Watch sends reports at an interval, and immediately when a GPU reports an error. Watch returns when ctx ends.
func (c *Collector) Watch(ctx context.Context, every time.Duration, send func(*gpu.Report) error) error {
	var events []gpu.Event
	for ctx.Err() == nil {
		report, err := c.report()
		if err != nil {
			if len(events) > 0 {
				_ = send(&gpu.Report{GPUs: c.last, Events: events}) // the library reports them only once
			}
			return err
		}
		c.last = report.GPUs
		report.Events, events = events, nil
		if err := send(report); err != nil {
			return err
		}
		for end := c.now().Add(every); len(events) == 0 && c.now().Before(end) && ctx.Err() == nil; {
			if events, err = c.wait(); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait waits for errors of GPUs and returns the errors. wait returns no errors if none arrive within waitForEvents.
func (c *Collector) wait() (out []gpu.Event, err error) {
	limit := uint32(waitForEvents)
	for len(out) < mostEvents {
		e, r := c.events.Wait(limit)
		switch {
		case r != nvml.SUCCESS && len(out) > 0:
			return out, nil // the next report reads the facts about this GPU again
		}
		switch r {
		case nvml.SUCCESS:
		case nvml.ERROR_TIMEOUT:
			return out, nil
		case nvml.ERROR_GPU_IS_LOST:
			// The report contains the lost GPU. The library would return this error immediately on each call, so wait for the other GPUs with a new event set.
			time.Sleep(waitForEvents * time.Millisecond)
			return out, c.listen()
		default:
			return nil, fmt.Errorf("wait for errors of GPUs: %w", explain(c.lib, r))
		}
		if e.EventType == nvml.EventTypeXidCriticalError {
			event := gpu.Event{At: c.now().UTC(), XID: int(e.EventData)}
			if e.Device != nil {
				event.Bus = c.busOf(e.Device)
			}
			out = append(out, event)
		}
		limit = 0 // further events that are available at once
	}
	return out, nil
}

const mostEvents = 100

func (c *Collector) report() (*gpu.Report, error) {
	out := &gpu.Report{}
	if v, r := c.lib.SystemGetDriverVersion(); r == nvml.SUCCESS {
		out.Driver = v
	}
	if v, r := c.lib.SystemGetCudaDriverVersion(); r == nvml.SUCCESS {
		out.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	n, r := c.lib.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("count the GPUs: %w", explain(c.lib, r))
	}
	for i := range n {
		d, r := c.lib.DeviceGetHandleByIndex(i)
		if r != nvml.SUCCESS {
			// A lost GPU has no handle. The monitor compares the report with earlier reports to find lost GPUs.
			continue
		}
		out.GPUs = append(out.GPUs, c.ask(int32(i), d))
	}
	return out, nil
}

func (c *Collector) ask(index int32, d nvml.Device) gpu.GPU {
	g := gpu.GPU{Index: index, Bus: busOf(d), Values: map[string]float64{}}
	if g.Bus == "" {
		g.Bus = c.buses[int(index)]
	}
	c.buses[int(index)] = g.Bus
	uuid, r := d.GetUUID()
	g.UUID, g.Lost = uuid, r == nvml.ERROR_GPU_IS_LOST || r == nvml.ERROR_UNKNOWN
	if name, r := d.GetName(); r == nvml.SUCCESS {
		g.Model = strings.Join(strings.Fields(name), "-")
	}
	if c.simulated != nil {
		g.Simulated, g.Files = true, c.simulated(index)
	} else if minor, r := d.GetMinorNumber(); r == nvml.SUCCESS {
		file := fmt.Sprintf("/dev/nvidia%d", minor)
		g.Files = []gpu.File{{Host: file, Container: file}}
	}
	g.NUMA = c.numa(g.Bus)
	if m, r := d.GetMemoryInfo(); r == nvml.SUCCESS {
		g.Memory = m.Total
		g.Values[gpu.MemoryUsed], g.Values[gpu.MemoryFree] = float64(m.Used>>20), float64(m.Free>>20)
	} else if r == nvml.ERROR_GPU_IS_LOST {
		g.Lost = true
	}
	g.Facts, g.MIG = c.facts(d), c.mig(index, d)
	g.Unusable = c.fabric(d)
	c.measure(d, g.Values)
	if g.Lost {
		c.activity.forget(g.Bus)
	} else {
		c.activity.measure(d, g.Bus, g.Values)
		g.Processes = c.processes(d)
	}
	if !g.Lost && !c.watched[g.Bus] {
		// Some models don't report all kinds of errors.
		kinds, r := d.GetSupportedEventTypes()
		if r == nvml.SUCCESS && kinds&nvml.EventTypeXidCriticalError != 0 && d.RegisterEvents(nvml.EventTypeXidCriticalError, c.events) == nvml.SUCCESS {
			c.watched[g.Bus] = true
		}
	}
	return g
}

// numa returns the NUMA node that is nearest to a GPU, according to the kernel. The library's own function only supports machines whose GPUs are NUMA
// nodes.
func (c *Collector) numa(bus string) *int64 {
	if bus == "" || c.simulated != nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(c.devices, bus, "numa_node"))
	if err != nil {
		return nil
	}
	node, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || node < 0 { // the machine has only one node
		return nil
	}
	return &node
}

// facts returns the properties of a GPU for the labels of the Node.
func (c *Collector) facts(d nvml.Device) map[string]string {
	out := map[string]string{}
	if c.has("nvmlDeviceGetCudaComputeCapability") {
		if major, minor, r := d.GetCudaComputeCapability(); r == nvml.SUCCESS {
			out[gpu.Compute] = fmt.Sprintf("%d.%d", major, minor)
		}
	}
	if c.has("nvmlDeviceGetMigMode") {
		switch _, _, r := d.GetMigMode(); r {
		case nvml.SUCCESS:
			out[gpu.MIGCapable] = "true"
		case nvml.ERROR_NOT_SUPPORTED:
			out[gpu.MIGCapable] = "false"
		}
	}
	return out
}

// fabric explains why the state of the NVLink fabric makes a GPU unusable. CUDA fails with error 802 until the fabric is ready. fabric returns "" if
// the fabric is ready or the GPU has no fabric.
func (c *Collector) fabric(d nvml.Device) string {
	if !c.has("nvmlDeviceGetGpuFabricInfo") {
		return "" // before driver 525
	}
	info, r := d.GetGpuFabricInfo() //nolint:staticcheck // drivers before 545 have nothing else
	if r != nvml.SUCCESS {
		return ""
	}
	switch info.State {
	case nvml.GPU_FABRIC_STATE_NOT_STARTED:
		return "its NVLink fabric isn't initialised: start nvidia-fabricmanager (NVLink 5 also needs nvlsm), of the driver's release, and see its journal"
	case nvml.GPU_FABRIC_STATE_IN_PROGRESS:
		return "its NVLink fabric is being initialised; if that doesn't end, see the journal of nvidia-fabricmanager"
	case nvml.GPU_FABRIC_STATE_COMPLETED:
		if r := nvml.Return(info.Status); r != nvml.SUCCESS {
			return fmt.Sprintf("its NVLink fabric failed: %v; see the journal of nvidia-fabricmanager", explain(c.lib, r))
		}
		if c.has("nvmlDeviceGetGpuFabricInfoV") { // from driver 535
			if info, r := d.GetGpuFabricInfoV().V2(); r == nvml.SUCCESS {
				return unhealthyFabric(info.HealthMask)
			}
		}
	}
	return ""
}

// unhealthyFabric returns the conditions in a fabric's health mask that prevent programs from using the fabric. unhealthyFabric ignores reduced
// bandwidth, and recoveries, because recoveries end by themselves.
func unhealthyFabric(mask uint32) string {
	if mask>>nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY&nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_ROUTE_UNHEALTHY == nvml.GPU_FABRIC_HEALTH_MASK_ROUTE_UNHEALTHY_TRUE {
		return "its routes through the NVLink fabric are unhealthy; see nvidia-smi -q -d FABRIC on the machine, and reset its GPUs or reboot it"
	}
	wrong := mask >> nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION & nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_INCORRECT_CONFIGURATION
	if wrong == nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NOT_SUPPORTED || wrong == nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE {
		return ""
	}
	cause, ok := map[uint32]string{
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INCORRECT_SYSGUID:    "another system GUID",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INCORRECT_CHASSIS_SN: "another serial number of the chassis",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NO_PARTITION:         "no partition",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INSUFFICIENT_NVLINKS: "too few NVLinks",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INCOMPATIBLE_GPU_FW:  "incompatible firmware of the GPU",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INVALID_LOCATION:     "an invalid location",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_GPU_STATE_INVALID:    "an invalid state of the GPU",
	}[wrong]
	if !ok {
		cause = fmt.Sprintf("code %d", wrong)
	}
	return "its NVLink fabric isn't configured correctly (" + cause + "); see nvidia-smi -q -d FABRIC on the machine and the journal of nvidia-fabricmanager"
}

// has reports whether the library contains a function. A call of a missing function would crash the program.
func (c *Collector) has(symbol string) bool {
	return c.lib.Extensions().LookupSymbol(symbol) == nil
}

// busOf returns the PCI address of a GPU, even if the GPU is lost.
func (c *Collector) busOf(d nvml.Device) string {
	if bus := busOf(d); bus != "" {
		return bus
	}
	index, r := d.GetIndex()
	if r != nvml.SUCCESS {
		return ""
	}
	return c.buses[index]
}

// busOf returns the PCI address of a GPU in Linux's format. busOf returns "" if the GPU doesn't report the address.
func busOf(d nvml.Device) string {
	info, r := d.GetPciInfo()
	if r != nvml.SUCCESS {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.0", info.Domain, info.Bus, info.Device)
}

// measure reads a GPU's measurements. measure leaves out measurements that the GPU doesn't support.
func (c *Collector) measure(d nvml.Device, values map[string]float64) {
	set := func(name string, v float64, r nvml.Return) {
		if r == nvml.SUCCESS {
			values[name] = v
		}
	}
	temperature, r := d.GetTemperature(nvml.TEMPERATURE_GPU) //nolint:staticcheck // older drivers than 580 have no other function
	set(gpu.Temperature, float64(temperature), r)
	power, r := d.GetPowerUsage()
	set(gpu.Power, float64(power)/1000, r)
	energy, r := d.GetTotalEnergyConsumption()
	set(gpu.Energy, float64(energy), r)
	use, r := d.GetUtilizationRates()
	set(gpu.Utilization, float64(use.Gpu), r)
	set(gpu.MemoryUtilization, float64(use.Memory), r)
	clock, r := d.GetClockInfo(nvml.CLOCK_SM)
	set(gpu.SMClock, float64(clock), r)
	clock, r = d.GetClockInfo(nvml.CLOCK_MEM)
	set(gpu.MemoryClock, float64(clock), r)
	if c.has("nvmlDeviceGetCurrentClocksEventReasons") {
		reasons, r := d.GetCurrentClocksEventReasons()
		set(gpu.ClockReasons, float64(reasons), r)
	} else {
		reasons, r := d.GetCurrentClocksThrottleReasons() //nolint:staticcheck // its name in drivers before 535
		set(gpu.ClockReasons, float64(reasons), r)
	}
	replays, r := d.GetPcieReplayCounter()
	set(gpu.PCIeReplays, float64(replays), r)
	for name, kind := range map[string]struct {
		bits    nvml.MemoryErrorType
		counter nvml.EccCounterType
	}{
		gpu.SingleBitVolatile:  {nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC},
		gpu.DoubleBitVolatile:  {nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC},
		gpu.SingleBitAggregate: {nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC},
		gpu.DoubleBitAggregate: {nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC},
	} {
		n, r := d.GetTotalEccErrors(kind.bits, kind.counter)
		set(name, float64(n), r)
	}
	if c.has("nvmlDeviceGetRemappedRows") {
		corrected, uncorrected, pending, failed, r := d.GetRemappedRows()
		set(gpu.RowsRemapped, float64(corrected), r)
		set(gpu.RowsRemappedUncorr, float64(uncorrected), r)
		set(gpu.RowRemapPending, flag(pending), r)
		set(gpu.RowRemapFailed, flag(failed), r)
	}
	for link := range nvml.NVLINK_MAX_LINKS {
		if on, r := d.GetNvLinkState(link); r != nvml.SUCCESS || on != nvml.FEATURE_ENABLED {
			continue
		}
		for name, counter := range map[string]nvml.NvLinkErrorCounter{
			gpu.NVLinkReplays: nvml.NVLINK_ERROR_DL_REPLAY, gpu.NVLinkRecoveries: nvml.NVLINK_ERROR_DL_RECOVERY, gpu.NVLinkCRC: nvml.NVLINK_ERROR_DL_CRC_FLIT,
		} {
			if n, r := d.GetNvLinkErrorCounter(link, counter); r == nvml.SUCCESS {
				values[name] += float64(n)
			}
		}
	}
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
