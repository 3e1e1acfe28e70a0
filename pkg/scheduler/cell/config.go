package cell

// Config describes the hardware and its division among virtual clusters. It contains slices instead of maps, because their
// order determines the order of decisions.
type Config struct {
	Types           []Type
	Physical        []Physical
	VirtualClusters []VirtualCluster
	// Processors lists the leaf types that are CPU cells instead of GPUs. A CPU cell is a processor with its share of the
	// memory. Requests get CPU cells only if they contain the leaf type. Quotas of GPUs don't count CPU cells.
	Processors []string
	// ReserveGPUMachines prevents gangs from using their Request.Alternative.
	ReserveGPUMachines bool
}

// Type is a cell type. All cells of a type contain the same tree of cells. A child type without a Type is a leaf type, such as
// a GPU model.
type Type struct {
	Name     string
	Child    string
	Children int
	// Node marks the type of a Kubernetes node.
	Node bool
}

// Physical describes a physical cell in the configuration, with the cells inside. As in HiveD's configuration, only a top cell
// needs Type, Address and Children. Address is only the last component of the address.
type Physical struct {
	Type     string
	Address  string
	Pinned   string
	Children []Physical
}

// VirtualCluster describes the cells that a team owns.
type VirtualCluster struct {
	Name   string
	Cells  []Virtual
	Pinned []string
	Quota  Quota
	// Policy is one of the names in Policies, or "" for the default policy.
	Policy string
}

// Virtual is a number of cells of one type. The type is a dotted path from the chain, such as RACK.NODE. Only the first and
// last components matter.
type Virtual struct {
	Type  string
	Count int
}

// Quota limits the guaranteed GPUs of each user or group in a virtual cluster. Users and groups without an entry have the limit
// PerUser or PerGroup. 0 means unlimited.
type Quota struct {
	PerUser, PerGroup int
	Users, Groups     map[string]int
}

// Problem is a mistake in a Config. Path consists of field names in HiveD's YAML (physicalCluster, cellTypes, physicalCells,
// virtualClusters, ...), map keys, and list indices as int.
type Problem struct {
	Path    []any
	Message string
	Remedy  string
}
