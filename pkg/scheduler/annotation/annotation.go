// Package annotation reads and writes the scheduler's annotations on pods, and the details of a place on a claim. In: the text
// of a pod's scheduling request, and a bound pod's annotations about its place. Out: the request and the placement for package
// cell, and the annotations of a pod that is being bound. The formats are HiveD's versions 1 and 2, so that pods and tools for
// HiveD continue to work.
package annotation

// Keys of annotations and resources on pods. All except PlacementKey are HiveD's keys.
const (
	// SpecKey is the annotation with a pod's scheduling request.
	SpecKey = "hivedscheduler.microsoft.com/pod-scheduling-spec"
	// IsolationKey is the annotation with the device indices, separated by commas. Containers get the indices as
	// NVIDIA_VISIBLE_DEVICES.
	IsolationKey = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
	// LegacyIsolationKey is the name of IsolationKey in early releases of HiveD.
	LegacyIsolationKey = "hivedscheduler.microsoft.com/pod-gpu-isolation"
	// BindInfoKey is the annotation with the nodes and devices of the whole gang.
	BindInfoKey = "hivedscheduler.microsoft.com/pod-bind-info"
	// EnableKey is a resource. If a container's limit for this resource is above 0, paictl's scheduler schedules the pod.
	EnableKey = "hivedscheduler.microsoft.com/pod-scheduling-enable"
	// PlacementKey is the annotation with details that BindInfoKey can't express. The scheduler needs these details after a
	// restart.
	PlacementKey = "paictl.openpai.org/placement"
)

// Bound holds the annotations of a bound pod: IsolationKey, BindInfoKey and PlacementKey.
type Bound struct{ Isolation, BindInfo, Placement string }
