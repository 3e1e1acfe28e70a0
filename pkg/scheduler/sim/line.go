package sim

import (
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Results of steps. The values of cell.Result are also results.
const (
	// OK is the result of a successful step.
	OK = "ok"
	// ConfigRejected is the result of a start with an invalid configuration. The former scheduler continues.
	ConfigRejected = "configRejected"
	// Failed is the result of an invalid step, or of a step before the first start.
	Failed = "error"
)

// Line is the answer to a step. Unused fields are absent.
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
	// Recovered are the pods that a restart took over. Lost are the pods that a restart couldn't take over.
	Recovered  []string      `json:"recovered,omitempty"`
	Lost       []LostPod     `json:"lost,omitempty"`
	Downgraded []ChangedGang `json:"downgraded,omitempty"`
	// Restored are the gangs that regained their guarantee.
	Restored []ChangedGang `json:"restored,omitempty"`
	// Violation describes an inconsistency in the scheduler's state, if the replay checks the state.
	Violation string `json:"violation,omitempty"`
}

// Place is the place of a pod in the answer to a schedule step.
type Place struct {
	Node              string   `json:"node"`
	LeafCellIsolation []int32  `json:"leafCellIsolation"`
	CellChain         string   `json:"cellChain"`
	Victims           []string `json:"victims"`
	// PodBindInfo is the annotation of a bound pod.
	PodBindInfo string `json:"podBindInfo,omitempty"`
}

// Cluster is the state of the whole cluster.
type Cluster struct {
	Groups          []Group                      `json:"groups"`
	PhysicalCluster []cell.CellStatus            `json:"physicalCluster"`
	VirtualClusters map[string][]cell.CellStatus `json:"virtualClusters"`
}

// Group is a gang in two formats: flat with additional fields, and in the format of HiveD's inspect API.
type Group struct {
	cell.GangStatus
	Metadata GroupMetadata `json:"metadata"`
	Status   GroupStatus   `json:"status"`
}

// GroupMetadata holds the name of a group in HiveD's format.
type GroupMetadata struct {
	Name string `json:"name"`
}

// GroupStatus holds the other fields of HiveD's format. A replay has no clock, so the time of a downgrade is missing.
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

// LazyPreemption names the gang that took a group's guarantee.
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

// ChangedGang is a running gang that lost or regained its guarantee.
type ChangedGang struct {
	VC     string   `json:"vc"`
	Group  string   `json:"group"`
	Pods   []string `json:"pods"`
	Reason string   `json:"reason,omitempty"`
}

// LostPod is a running pod that a restart couldn't take over. The scheduler ignores the pod.
type LostPod struct {
	Pod    string `json:"pod"`
	Reason string `json:"reason"`
}
