// Package claim is what stands on the ResourceClaim of a pod: how GPUs are named there, who may give them out, and who hands
// them to containers. The job controller, the scheduler and the agent of each machine share it.
// In: device indices. Out: names of devices, and back.
package claim

import (
	"strconv"
	"strings"
)

const (
	// Driver is the name under which the agent of a machine publishes its GPUs, and prepares them for a pod.
	Driver = "gpu.paictl.openpai.org"
	// prefix comes before the index of a GPU in the name of its device.
	prefix = "gpu-"
)

// DeviceName returns the name of the device with an index, as NVML counts: "gpu-3". The pool is named after the node.
func DeviceName(index int32) string { return prefix + strconv.Itoa(int(index)) }

// DeviceIndex returns the index of the device that DeviceName names so; false if it names none.
func DeviceIndex(name string) (int32, bool) {
	text, ok := strings.CutPrefix(name, prefix)
	index, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil || index < 0 || DeviceName(int32(index)) != name {
		return 0, false
	}
	return int32(index), true
}
