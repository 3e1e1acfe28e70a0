// Package annotation reads and writes the scheduler's annotations on pods, and the details of a place on a claim.
// In: the text of a pod's scheduling request, and a bound pod's annotations about its place. Out: the
// core's request and placement, and the annotations of a pod that is being bound. The formats are HiveD's versions 1 and 2, so
// that pods and tools made for it keep working.
package annotation

// Keys on pods. All but PlacementKey are HiveD's.
const (
	// SpecKey is the annotation with a pod's scheduling request.
	SpecKey = "hivedscheduler.microsoft.com/pod-scheduling-spec"
	// IsolationKey holds the device indices, joined by commas; containers get them as
	// NVIDIA_VISIBLE_DEVICES.
	IsolationKey = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
	// LegacyIsolationKey is the key that early releases of HiveD wrote instead of IsolationKey.
	LegacyIsolationKey = "hivedscheduler.microsoft.com/pod-gpu-isolation"
	// BindInfoKey holds the place of the whole gang.
	BindInfoKey = "hivedscheduler.microsoft.com/pod-bind-info"
	// EnableKey is the resource whose limit, above 0, leaves a pod to the scheduler.
	EnableKey = "hivedscheduler.microsoft.com/pod-scheduling-enable"
	// PlacementKey holds the details that BindInfoKey can't express and that a restart needs.
	PlacementKey = "paictl.openpai.org/placement"
)

// Bound holds the values of the annotations of a bound pod: IsolationKey, BindInfoKey and PlacementKey.
type Bound struct{ Isolation, BindInfo, Placement string }
