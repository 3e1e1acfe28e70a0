package sim

import (
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Results of steps are these values and the values of cell.Result.
const (
	// OK is the result of a step that succeeded.
	OK = "ok"
	// ConfigRejected is the result of a start with a configuration that can't be used. The former scheduler continues.
	ConfigRejected = "configRejected"
	// Failed is the result of a malformed step, or of a step before the first start.
	Failed = "error"
)

// Line is the answer to a step. Fields that don't apply to the operation are absent.
type Line struct {
	// Step counts from 1.
	Step   int    `json:"step"`
	Op     string `json:"op"`
	Pod    string `json:"pod,omitempty"`
	Result string `json:"result"`
	*Place
	Reason   string              `json:"reason"`
	Findings strictyaml.Findings `json:"findings,omitempty"`
	*Cluster
	// Recovered are the pods that a restart took over, and Lost are the pods that it couldn't take over.
	Recovered  []string      `json:"recovered,omitempty"`
	Lost       []LostPod     `json:"lost,omitempty"`
	Downgraded []ChangedGang `json:"downgraded,omitempty"`
	// Restored are the gangs that regained their guarantee.
	Restored []ChangedGang `json:"restored,omitempty"`
	// Violation describes a contradiction in the scheduler's bookkeeping, if the replay checks it.
	Violation string `json:"violation,omitempty"`
}

// Place is the place of a pod in the answer to a step that schedules the pod.
type Place struct {
	Node              string   `json:"node"`
	LeafCellIsolation []int32  `json:"leafCellIsolation"`
	CellChain         string   `json:"cellChain"`
	Victims           []string `json:"victims"`
	// PodBindInfo is the annotation of a pod that is bound.
	PodBindInfo string `json:"podBindInfo,omitempty"`
}

// Cluster is the state of the whole cluster.
type Cluster struct {
	Groups          []Group                      `json:"groups"`
	PhysicalCluster []cell.CellStatus            `json:"physicalCluster"`
	VirtualClusters map[string][]cell.CellStatus `json:"virtualClusters"`
}

// Group is a gang in two forms: flat with our additional fields, and in the form of HiveD's inspect API.
type Group struct {
	cell.GangStatus
	Metadata GroupMetadata `json:"metadata"`
	Status   GroupStatus   `json:"status"`
}

// GroupMetadata holds the name of a group in HiveD's form.
type GroupMetadata struct {
	Name string `json:"name"`
}

// GroupStatus holds the remaining fields of HiveD's format. A replay has no clock, so it has no time of a downgrade.
type GroupStatus struct {
	VC                   string              `json:"vc"`
	Priority             int                 `json:"priority"`
	State                string              `json:"state"`
	PhysicalPlacement    map[string][]int32  `json:"physicalPlacement,omitempty"`
	VirtualPlacement     map[string][]string `json:"virtualPlacement,omitempty"`
	AllocatedPods        []cell.PodID        `json:"allocatedPods,omitempty"`
	PreemptingPods       []cell.PodID        `json:"preemptingPods,omitempty"`
	LazyPreemptionStatus *LazyPreemption     `json:"lazyPreemptionStatus,omitempty"`
}

// LazyPreemption contains the name of the gang that took a group's guarantee.
type LazyPreemption struct {
	Preemptor string `json:"preemptor"`
}

func groupsOf(gangs []cell.GangStatus) []Group {
	out := make([]Group, len(gangs))
	for i := range gangs {
		g := &gangs[i]
		out[i] = Group{*g, GroupMetadata{g.Name}, GroupStatus{VC: g.VC, Priority: g.Priority, State: g.State, PhysicalPlacement: g.PhysicalPlacement,
			VirtualPlacement: g.VirtualPlacement, AllocatedPods: g.AllocatedPods, PreemptingPods: g.PreemptingPods}}
		if g.Downgraded {
			out[i].Status.LazyPreemptionStatus = &LazyPreemption{g.Preemptor}
		}
	}
	return out
}

// ChangedGang is a gang that lost or regained its guarantee, and continues to run.
type ChangedGang struct {
	VC     string   `json:"vc"`
	Group  string   `json:"group"`
	Pods   []string `json:"pods"`
	Reason string   `json:"reason,omitempty"`
}

// LostPod is a pod that a restart couldn't take over. It runs, but the scheduler doesn't know about it.
type LostPod struct {
	Pod    string `json:"pod"`
	Reason string `json:"reason"`
}
