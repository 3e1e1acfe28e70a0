// Package annotation reads and writes the scheduler's annotations on pods, and the details of a place on a claim. In: the text of a pod's scheduling
// request, and a bound pod's annotations about its place. Out: the core's request and placement, and the annotations of a pod that is being bound.
// The formats are HiveD's versions 1 and 2, so that pods and tools for HiveD continue to work.
package annotation

// These are the keys of annotations and resources on pods. All except PlacementKey are HiveD's keys.
const (
	// SpecKey is the annotation with a pod's scheduling request.
	SpecKey = "hivedscheduler.microsoft.com/pod-scheduling-spec"
	// IsolationKey is the annotation with the device indices, joined by commas. Containers get the indices as NVIDIA_VISIBLE_DEVICES.
	IsolationKey = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
	// LegacyIsolationKey is the key that early releases of HiveD wrote instead of IsolationKey.
	LegacyIsolationKey = "hivedscheduler.microsoft.com/pod-gpu-isolation"
	// BindInfoKey is the annotation with the place of the whole gang.
	BindInfoKey = "hivedscheduler.microsoft.com/pod-bind-info"
	// EnableKey is a resource. If a container's limit for it is above 0, our scheduler schedules the pod.
	EnableKey = "hivedscheduler.microsoft.com/pod-scheduling-enable"
	// PlacementKey is the annotation with the details that BindInfoKey can't express and that the scheduler needs after a restart.
	PlacementKey = "paictl.openpai.org/placement"
)

// Bound holds the values of the annotations of a bound pod: IsolationKey, BindInfoKey and PlacementKey.
type Bound struct{ Isolation, BindInfo, Placement string }
