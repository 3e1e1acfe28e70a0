package cell

// Config is the hardware and its division. Slices, not maps: their order is the order of decisions.
type Config struct {
	Types           []Type
	Physical        []Physical
	VirtualClusters []VirtualCluster
	// Processors are the leaf types that are CPU cells, a processor with its share of the memory, instead of
	// GPUs. They are given only to requests that name their type, and quotas of GPUs don't count them.
	Processors []string
	// ReserveGPUMachines prevents gangs from using their Request.Alternative.
	ReserveGPUMachines bool
}

// Type is a cell type: a uniform tree. A child type without its own Type is a leaf type, a GPU model.
type Type struct {
	Name     string
	Child    string
	Children int
	// Node marks the type that is a Kubernetes node.
	Node bool
}

// Physical is a physical cell. Type, Address and Children may be left out below the top, as
// HiveD's configuration allows; Address has the last component only.
type Physical struct {
	Type     string
	Address  string
	Pinned   string
	Children []Physical
}

// VirtualCluster holds the cells that a team owns.
type VirtualCluster struct {
	Name   string
	Cells  []Virtual
	Pinned []string
	Quota  Quota
	// Policy is the name of one of Policies, "" for the default.
	Policy string
}

// Virtual is a number of cells of one type. The type is a dotted path from the chain, such as RACK.NODE. Only its first
// and last components matter.
type Virtual struct {
	Type  string
	Count int
}

// Quota limits the guaranteed GPUs that one user or one group of users holds in a virtual cluster
// at a time. A missing entry falls back to PerUser or PerGroup, where 0 means unlimited.
type Quota struct {
	PerUser, PerGroup int
	Users, Groups     map[string]int
}

// Problem is a mistake in a Config. Path has field names of HiveD's YAML (physicalCluster,
// cellTypes, physicalCells, virtualClusters, ...), map keys, and list indices as int.
type Problem struct {
	Path    []any
	Message string
	Remedy  string
}
