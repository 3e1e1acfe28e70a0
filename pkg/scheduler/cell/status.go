package cell

// GangStatus is the status of a gang in the format of HiveD's inspect API.
type GangStatus struct {
	Name string `json:"name"`
	VC   string `json:"vc"`
	// Priority is the priority of the request. A downgrade doesn't change it.
	Priority int `json:"priority"`
	// State is Allocated, Preempting or BeingPreempted.
	State string `json:"state"`
	// PhysicalPlacement contains the gang's device indices by node.
	PhysicalPlacement map[string][]int32 `json:"physicalPlacement,omitempty"`
	// VirtualPlacement contains the addresses of the gang's virtual leaves by preassigned cell. It is absent for opportunistic
	// gangs.
	VirtualPlacement map[string][]string `json:"virtualPlacement,omitempty"`
	AllocatedPods    []PodID             `json:"allocatedPods,omitempty"`
	PreemptingPods   []PodID             `json:"preemptingPods,omitempty"`
	// Downgraded means that the gang runs without its guarantee. Preemptor is the gang that took its cells.
	Downgraded bool   `json:"downgraded,omitempty"`
	Preemptor  string `json:"preemptor,omitempty"`
	Order      uint64 `json:"order"`
	GPUs       int    `json:"gpus"`
	CPUCells   int    `json:"cpuCells,omitempty"`
	User       string `json:"user,omitempty"`
	UserGroup  string `json:"userGroup,omitempty"`
}

// CellStatus is the status of a cell in the format of HiveD's inspect API.
type CellStatus struct {
	LeafCellType    string       `json:"leafCellType,omitempty"`
	CellType        string       `json:"cellType"`
	IsNodeLevel     bool         `json:"isNodeLevel,omitempty"`
	CellAddress     string       `json:"cellAddress"`
	CellState       string       `json:"cellState"`
	CellHealthiness string       `json:"cellHealthiness"`
	CellPriority    int          `json:"cellPriority"`
	CellChildren    []CellStatus `json:"cellChildren,omitempty"`
	// VC and VirtualCell are set for physical cells. PhysicalCell is set for virtual cells.
	VC           string      `json:"vc,omitempty"`
	VirtualCell  *CellStatus `json:"virtualCell,omitempty"`
	PhysicalCell *CellStatus `json:"physicalCell,omitempty"`
}

// Stats contains the figures for metrics.
type Stats struct {
	GPUs, BadGPUs, UsedGPUs             int
	CPUCells, BadCPUCells, UsedCPUCells int

	VirtualClusters []VCStats
	// FreeByLevel counts the largest free, healthy cells by type. A cell counts if it is completely free and its parent isn't.
	FreeByLevel                             []LevelCount
	Gangs, PreemptingGangs, DowngradedGangs int
}

// VCStats contains the figures of one virtual cluster, in GPUs and in CPU cells.
type VCStats struct {
	Name                                      string
	Guaranteed, UsedGuaranteed, Opportunistic int
	Bad                                       int
	CPU                                       CPUStats
	Leaves                                    []LeafStats
	FreeByLevel                               []LevelCount
	// Fragmentation is 1 − the number of GPUs in the largest free cell ÷ the number of all free GPUs. It is 0 if no GPU is
	// free.
	Fragmentation float64
}

// CPUStats contains the number of CPU cells that a virtual cluster owns, and the same figures as for GPUs.
type CPUStats struct {
	Guaranteed    int `json:"guaranteed"`
	Used          int `json:"used"`
	Opportunistic int `json:"opportunistic"`
	Free          int `json:"free"`
	Bad           int `json:"bad"`
}

// LeafStats contains the figures for one leaf type of a virtual cluster. The leaves are GPUs or CPU cells.
type LeafStats struct {
	LeafType   string `json:"leafType"`
	Guaranteed int    `json:"guaranteed"`
	Used       int    `json:"used"` // the leaves that guaranteed gangs use
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
	// NoVirtualCluster: the request's virtual cluster doesn't exist.
	NoVirtualCluster = "NoVirtualCluster"
	// Ready: the gang can start now, or already has its place.
	Ready = "Ready"
	// NoCapacity: other gangs use the cells.
	NoCapacity = "NoCapacity"
	// Fragmented: enough cells are free, but the gang doesn't fit into them.
	Fragmented = "Fragmented"
	// HeldBack: opportunistic gangs temporarily can't use the free cells.
	HeldBack = "HeldBack"
	// Preemption: the gang starts after other gangs have ended.
	Preemption = "PreemptionUnderWay"
	// QuotaUsed: the gang's user or group has used up its quota.
	QuotaUsed = "Quota"
	// BadNodes: cells would be free if their hardware weren't broken.
	BadNodes = "BadNodes"
	// Unsatisfiable: the gang can never start, even if all cells are free.
	Unsatisfiable = "Unsatisfiable"
)

// Explanation explains why a request wouldn't start now.
type Explanation struct {
	// Code is Ready, NoCapacity, Fragmented, BadNodes, HeldBack, Quota, PreemptionUnderWay,
	// BeingPreempted, NameTaken, Unsatisfiable, NoVirtualCluster or Malformed.
	Code string `json:"code"`
	// Sentence is a message for users.
	Sentence string `json:"sentence"`
	Pods     int    `json:"pods"`
	GPUs     int    `json:"gpus"`
	// OwnedGPUs and UsedGPUs count the GPUs that the virtual cluster owns and uses. FreeGPUs counts the GPUs that the request
	// could use with its priority.
	OwnedGPUs int `json:"ownedGPUs"`
	UsedGPUs  int `json:"usedGPUs"`
	FreeGPUs  int `json:"freeGPUs"`
	// CPUCells and the next three fields replace the fields for GPUs if the request is for CPU cells.
	CPUCells      int `json:"cpuCells,omitempty"`
	OwnedCPUCells int `json:"ownedCPUCells,omitempty"`
	UsedCPUCells  int `json:"usedCPUCells,omitempty"`
	FreeCPUCells  int `json:"freeCPUCells,omitempty"`
	// Nodes are the nodes on which a Ready gang would run. They depend only on cells.
	Nodes []string `json:"nodes,omitempty"`
	// Free lists the largest cells that the request could use. Missing lists the cells that it still needs.
	Free    []LevelCount `json:"free,omitempty"`
	Missing []LevelCount `json:"missing,omitempty"`
	// Holders are the gangs on needed cells that the request can't preempt, largest gang first.
	Holders []Holder `json:"holders,omitempty"`
	// Victims are the pods that must be evicted first, if a preemption is in progress or would help.
	Victims []Victim `json:"victims,omitempty"`
	// Smaller is the largest smaller gang with equal pods, or the largest single pod, that would start now.
	Smaller *Smaller `json:"smaller,omitempty"`
}

// Holder is a gang on cells that another gang needs.
type Holder struct {
	VC       string `json:"vc"`
	Gang     string `json:"gang"`
	Priority int    `json:"priority"`
	GPUs     int    `json:"gpus"`
	CPUCells int    `json:"cpuCells,omitempty"`
}

// Smaller is the size of a request that would start now.
type Smaller struct {
	Pods           int `json:"pods"`
	GPUsPerPod     int `json:"gpusPerPod"`
	CPUCellsPerPod int `json:"cpuCellsPerPod,omitempty"`
}
