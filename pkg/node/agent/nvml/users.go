//go:build cgo

package nvml

import (
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// hostPIDs is the target of the link /proc/self/ns/pid in the initial PID namespace. hostPIDs is the same on every Linux machine.
const hostPIDs = "pid:[4026531836]"

// seesProcesses reports whether this program can read all processes of the machine. In a container with its own PID namespace, the driver reports
// only the processes of that namespace.
func seesProcesses() bool {
	name, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && name == hostPIDs
}

// processes returns the number of processes that use a GPU, or nil if the number is unknown. The number is unknown for a GPU with a screen, whose
// memory is always in use, and for a split GPU, because programs use its instances.
func (c *Collector) processes(d nvml.Device) *int {
	if !c.seesProcesses {
		return nil
	}
	for _, name := range []string{"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetDisplayActive", "nvmlDeviceGetDisplayMode", "nvmlDeviceGetMigMode"} {
		if !c.has(name) {
			return nil
		}
	}
	if now, pending, r := d.GetMigMode(); r != nvml.ERROR_NOT_SUPPORTED && (r != nvml.SUCCESS || now == nvml.DEVICE_MIG_ENABLE || pending == nvml.DEVICE_MIG_ENABLE) {
		return nil
	}
	for _, ask := range []func() (nvml.EnableState, nvml.Return){d.GetDisplayActive, d.GetDisplayMode} {
		if on, r := ask(); r != nvml.ERROR_NOT_SUPPORTED && (r != nvml.SUCCESS || on == nvml.FEATURE_ENABLED) {
			return nil
		}
	}
	n := 0
	for _, ask := range []func() ([]nvml.ProcessInfo, nvml.Return){d.GetComputeRunningProcesses, d.GetGraphicsRunningProcesses} {
		found, r := ask()
		if r != nvml.SUCCESS {
			return nil
		}
		n += len(found)
	}
	return &n
}
