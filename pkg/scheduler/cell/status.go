package cell

// GangStatus is a gang as HiveD's inspect API shows it.
type GangStatus struct {
	Name string `json:"name"`
	VC   string `json:"vc"`
	// Priority is the priority of the request; a downgraded gang keeps it.
	Priority int `json:"priority"`
	// State is Allocated, Preempting or BeingPreempted.
	State string `json:"state"`
	// PhysicalPlacement has per node the device indices.
	PhysicalPlacement map[string][]int32 `json:"physicalPlacement,omitempty"`
	// VirtualPlacement has per preassigned cell its leaves' addresses; absent if opportunistic.
	VirtualPlacement map[string][]string `json:"virtualPlacement,omitempty"`
	AllocatedPods    []PodID             `json:"allocatedPods,omitempty"`
	PreemptingPods   []PodID             `json:"preemptingPods,omitempty"`
	// Downgraded indicates that the gang runs without its guarantee. Preemptor is the gang that got its cells.
	Downgraded bool   `json:"downgraded,omitempty"`
	Preemptor  string `json:"preemptor,omitempty"`
	Order      uint64 `json:"order"`
	GPUs       int    `json:"gpus"`
	CPUCells   int    `json:"cpuCells,omitempty"`
	User       string `json:"user,omitempty"`
	UserGroup  string `json:"userGroup,omitempty"`
}

// CellStatus is a cell as HiveD's inspect API shows it.
type CellStatus struct {
	LeafCellType    string       `json:"leafCellType,omitempty"`
	CellType        string       `json:"cellType"`
	IsNodeLevel     bool         `json:"isNodeLevel,omitempty"`
	CellAddress     string       `json:"cellAddress"`
	CellState       string       `json:"cellState"`
	CellHealthiness string       `json:"cellHealthiness"`
	CellPriority    int          `json:"cellPriority"`
	CellChildren    []CellStatus `json:"cellChildren,omitempty"`
	// VC and VirtualCell are set for physical cells, and PhysicalCell is set for virtual cells.
	VC           string      `json:"vc,omitempty"`
	VirtualCell  *CellStatus `json:"virtualCell,omitempty"`
	PhysicalCell *CellStatus `json:"physicalCell,omitempty"`
}

// Stats are the figures behind the metrics.
type Stats struct {
	GPUs, BadGPUs, UsedGPUs             int
	CPUCells, BadCPUCells, UsedCPUCells int

	VirtualClusters []VCStats
	// FreeByLevel counts the largest idle, healthy cells: per cell type, cells that are free while their
	// parent is not.
	FreeByLevel                             []LevelCount
	Gangs, PreemptingGangs, DowngradedGangs int
}

// VCStats are the figures of one virtual cluster, in GPUs, and in CPU cells.
type VCStats struct {
	Name                                      string
	Guaranteed, UsedGuaranteed, Opportunistic int
	Bad                                       int
	CPU                                       CPUStats
	Leaves                                    []LeafStats
	FreeByLevel                               []LevelCount
	// Fragmentation is 1 − the largest free cell's GPUs ÷ all free GPUs, 0 if none is free.
	Fragmentation float64
}

// CPUStats are CPU cells of a virtual cluster: the number that it owns, and the same figures as for GPUs.
type CPUStats struct {
	Guaranteed    int `json:"guaranteed"`
	Used          int `json:"used"`
	Opportunistic int `json:"opportunistic"`
	Free          int `json:"free"`
	Bad           int `json:"bad"`
}

// LeafStats are the leaves of one type of a virtual cluster: GPUs, or CPU cells.
type LeafStats struct {
	LeafType   string `json:"leafType"`
	Guaranteed int    `json:"guaranteed"`
	Used       int    `json:"used"` // by guaranteed gangs
	Bad        int    `json:"bad"`
}

// LevelCount is a number of cells of one type.
type LevelCount struct {
	CellType string `json:"cellType"`
	GPUs     int    `json:"gpus"`
	CPUCells int    `json:"cpuCells,omitempty"`
	Count    int    `json:"count"`
}

// Codes of explanations that other packages check.
const (
	// NoVirtualCluster: the request's virtual cluster doesn't exist, or no longer.
	NoVirtualCluster = "NoVirtualCluster"
	// Ready: it can start now, or has its place.
	Ready = "Ready"
	// NoCapacity: other gangs have the cells.
	NoCapacity = "NoCapacity"
	// Fragmented: the free cells don't fit the gang.
	Fragmented = "Fragmented"
	// HeldBack: the free cells are kept from opportunistic gangs for a while.
	HeldBack = "HeldBack"
	// Preemption: it starts when other gangs have ended.
	Preemption = "PreemptionUnderWay"
	// QuotaUsed: its user or group has used up its quota.
	QuotaUsed = "Quota"
	// BadNodes: cells would be free if hardware weren't broken.
	BadNodes = "BadNodes"
	// Unsatisfiable: it can never start, even if all cells were free.
	Unsatisfiable = "Unsatisfiable"
)

// Explanation explains why a request would not start now.
type Explanation struct {
	// Code is Ready, NoCapacity, Fragmented, BadNodes, HeldBack, Quota, PreemptionUnderWay,
	// BeingPreempted, NameTaken, Unsatisfiable, NoVirtualCluster or Malformed.
	Code string `json:"code"`
	// Sentence is a message for people.
	Sentence string `json:"sentence"`
	Pods     int    `json:"pods"`
	GPUs     int    `json:"gpus"`
	// OwnedGPUs, UsedGPUs and FreeGPUs are the virtual cluster's, as seen by the request's priority.
	OwnedGPUs int `json:"ownedGPUs"`
	UsedGPUs  int `json:"usedGPUs"`
	FreeGPUs  int `json:"freeGPUs"`
	// CPUCells and the following fields count instead of GPUs if the request is for CPU cells.
	CPUCells      int `json:"cpuCells,omitempty"`
	OwnedCPUCells int `json:"ownedCPUCells,omitempty"`
	UsedCPUCells  int `json:"usedCPUCells,omitempty"`
	FreeCPUCells  int `json:"freeCPUCells,omitempty"`
	// Nodes are where a gang that is Ready would go. Only GPUs were considered.
	Nodes []string `json:"nodes,omitempty"`
	// Free are the largest cells that the request could use, and Missing are the cells that it still needs.
	Free    []LevelCount `json:"free,omitempty"`
	Missing []LevelCount `json:"missing,omitempty"`
	// Holders have the cells that the request needs and can't be preempted by it, largest first.
	Holders []Holder `json:"holders,omitempty"`
	// Victims are the gangs that must be evicted first, if a preemption is under way or would help.
	Victims []Victim `json:"victims,omitempty"`
	// Smaller is the largest smaller gang of equal pods, or the largest single pod, that would start now.
	Smaller *Smaller `json:"smaller,omitempty"`
}

// Holder is a gang that has cells which another needs.
type Holder struct {
	VC       string `json:"vc"`
	Gang     string `json:"gang"`
	Priority int    `json:"priority"`
	GPUs     int    `json:"gpus"`
	CPUCells int    `json:"cpuCells,omitempty"`
}

// Smaller is a request that would start now.
type Smaller struct {
	Pods           int `json:"pods"`
	GPUsPerPod     int `json:"gpusPerPod"`
	CPUCellsPerPod int `json:"cpuCellsPerPod,omitempty"`
}
