package checks

import "strings"

// Conditions of nodes that paictl's agents set.
const (
	ConditionGPUsUnhealthy = "GPUsUnhealthy"
	ConditionNextBoot      = "GPUDriverMissingAtNextBoot"
)

// Condition returns the remedy for a condition of a node, and reports whether the condition is bad if it is true. It covers the conditions of
// Kubernetes, paictl's agents and node-problem-detector. It treats all other conditions as good, because other programs also set good conditions.
func Condition(kind string) (remedy string, bad bool) {
	switch {
	case kind == "DiskPressure":
		return "free space on the machine: paictl doctor --only disk-space names the file system; crictl rmi --prune removes unused images", true
	case kind == "MemoryPressure":
		return "see which pods use the most: kubectl top pods -A, or ps --sort=-rss on the machine", true
	case kind == "PIDPressure":
		return "see which pod has so many processes: ps -e on the machine", true
	case kind == "NetworkUnavailable":
		return "look at the pod network's pod on that machine: kubectl get pods -A -o wide", true
	case kind == ConditionGPUsUnhealthy:
		return "docs/alerts.md says what each error means: drain the machine, reset the GPU (paictl node gpu reset) or replace it", true
	case kind == ConditionNextBoot:
		return "paictl node driver upgrade builds it for the new kernel; docs/hardware.md", true
	case kind == "KernelDeadlock", kind == "ReadonlyFilesystem", kind == "CorruptDockerOverlay2",
		strings.HasPrefix(kind, "Frequent"), strings.HasSuffix(kind, "Pressure"), strings.HasSuffix(kind, "Problem"):
		return "see what reports it: kubectl describe node; on the machine: dmesg", true
	}
	return "", false
}
