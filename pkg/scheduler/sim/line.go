package sim

import (
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/strictyaml"
)

// Results of steps beyond those of cell.Result.
const (
	// OK is a step that did what it says.
	OK = "ok"
	// ConfigRejected is a start with a configuration that can't be used; what ran before goes on.
	ConfigRejected = "configRejected"
	// Failed is a step that is not written as a step, or that nothing has started before.
	Failed = "error"
)

// Line is the answer to one step. Fields that an operation doesn't have are absent.
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
	// Recovered are the pods that a restart took over, Lost those that it couldn't.
	Recovered  []string      `json:"recovered,omitempty"`
	Lost       []LostPod     `json:"lost,omitempty"`
	Downgraded []ChangedGang `json:"downgraded,omitempty"`
	// Restored are gangs that have their guarantee again.
	Restored []ChangedGang `json:"restored,omitempty"`
	// Violation is a contradiction in the scheduler's bookkeeping, if the replay looks for them.
	Violation string `json:"violation,omitempty"`
}

// Place is the answer to a pod that wants to be scheduled.
type Place struct {
	Node              string   `json:"node"`
	LeafCellIsolation []int32  `json:"leafCellIsolation"`
	CellChain         string   `json:"cellChain"`
	Victims           []string `json:"victims"`
	// PodBindInfo is the annotation of a pod that binds.
	PodBindInfo string `json:"podBindInfo,omitempty"`
}

// Cluster is the state of everything.
type Cluster struct {
	Groups          []cell.GangStatus            `json:"groups"`
	PhysicalCluster []cell.CellStatus            `json:"physicalCluster"`
	VirtualClusters map[string][]cell.CellStatus `json:"virtualClusters"`
}

// ChangedGang is a gang that lost its guarantee, or has it again, and goes on running.
type ChangedGang struct {
	VC     string   `json:"vc"`
	Group  string   `json:"group"`
	Pods   []string `json:"pods"`
	Reason string   `json:"reason,omitempty"`
}

// LostPod is a pod that a restart couldn't take over. It runs, and the scheduler doesn't know it.
type LostPod struct {
	Pod    string `json:"pod"`
	Reason string `json:"reason"`
}
