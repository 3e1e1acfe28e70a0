package cell

// Limits of the priorities of gangs. A guaranteed gang has a priority from MinGuaranteed to MaxGuaranteed and uses cells of its
// virtual cluster. An opportunistic gang uses idle cells, and any guaranteed gang can preempt it.
const (
	Opportunistic = -1
	MinGuaranteed = 0
	MaxGuaranteed = 1000
)

// PodID identifies a pod during its whole life. It is the UID in a cluster, and any unique text in a replay.
type PodID string

// Request is the request of a pod. It contains the pod's own request and the request of the pod's gang.
type Request struct {
	VirtualCluster string
	Priority       int
	// PinnedCell restricts the gang to one pinned cell of its virtual cluster.
	PinnedCell string
	// LeafType restricts the gang to leaves of one type, such as a GPU model. "" means GPUs of any model.
	LeafType string
	// Gang is the gang's name, which is unique in its virtual cluster.
	Gang string
	// LazyPreemption means that the gang may be downgraded to an opportunistic gang instead of being evicted.
	LazyPreemption bool
	// OnlySuggested restricts the gang to the nodes that the caller passes to Schedule.
	OnlySuggested bool
	// Root is the shape of the whole gang. Set is the index of the pod's set in Sets().
	Root Group
	Set  int
	// User and UserGroup determine the quotas for the gang. Gangs without a User share one quota. Gangs without a UserGroup
	// have no group quota.
	User, UserGroup string
	// Alternative requests alternative cells for the same pods. It may be nil. Callers choose between the two requests. The
	// algorithm ignores Alternative.
	Alternative *Request
}

// Group is a part of a gang with its own pods and its subgroups.
type Group struct {
	Name string
	// Within is a cell type. All pods of the group and of its subgroups must be in one cell of that type. It may be "", because
	// the algorithm always prefers the lowest cell that can hold a gang.
	Within   string
	Pods     []PodSet
	Children []Group
}

// PodSet is a set of equal pods.
type PodSet struct {
	// Count is the number of pods. It is positive.
	Count int
	// CellType is the type of the cells for each pod, at or below the node level. "" means leaves.
	CellType string
	// Cells is the number of cells for each pod. It is positive.
	Cells int
}

// Sets returns the pod sets of the gang in depth-first order.
func (r *Request) Sets() []PodSet {
	var sets []PodSet
	var walk func(g *Group)
	walk = func(g *Group) {
		sets = append(sets, g.Pods...)
		for i := range g.Children {
			walk(&g.Children[i])
		}
	}
	walk(&r.Root)
	return sets
}

// Phase determines whether Schedule changes the state. Filtering finds a placement. Preempting also reserves the cells of gangs
// that must be evicted.
type Phase int

// Phases of kube-scheduler's extender protocol.
const (
	Filtering Phase = iota
	Preempting
)

// Nodes is a set of node names. nil contains every name.
type Nodes interface{ Has(name string) bool }

// Result is the result of Schedule.
type Result string

// Results of Schedule.
const (
	// Bind means that the pod can start now on Node with Indices.
	Bind Result = "bind"
	// Wait means that the pod has no place now but may get one later.
	Wait Result = "wait"
	// Preempt means that the pod can start after the pods in Victims have ended.
	Preempt Result = "preempt"
	// Refuse means that the request is invalid, or that it couldn't be met even in an idle, healthy cluster.
	Refuse Result = "badRequest"
)

// Decision is the result of Schedule.
type Decision struct {
	Result Result
	// Reason explains in one sentence why a pod waits or is rejected.
	Reason string
	// Node, Indices and Chain are the pod's place if the result is Bind. Indices are device indices on the node, in ascending
	// order.
	Node    string
	Indices []int32
	Chain   string
	// Placement is the place of the whole gang if the result is Bind or Preempt. Slot is the pod's index in Placement.Pods if
	// the result is Bind. All decisions of the gang share the Placement, so callers must not change it.
	Placement *Placement
	Slot      int
	// Victims are the pods that must be evicted if the result is Preempt. They are all pods of whole gangs, sorted by node and
	// pod.
	Victims []Victim
	// Changes are the gangs that lost or regained their guarantee because of the reservation.
	Changes []Downgrade

	plan    *plan // the plan of a Preempt, for Reserve
	victims []*gang
}

// Victim is a pod that must be evicted for another pod.
type Victim struct {
	Pod      PodID
	Node     string
	VC, Gang string
}

// Placement is the place of a gang. It contains all data for rebuilding the place after a restart.
type Placement struct {
	Chain string
	// Order increases with each placed gang, so the youngest gang has the highest Order.
	Order uint64
	// Moves counts how often pods of the gang were moved. The placement with more moves is newer.
	Moves uint64
	// Downgraded means that a guaranteed gang runs as an opportunistic gang.
	Downgraded bool
	// Pods contains an entry for each pod of the gang, in the order of Request.Sets(). Entries for other pods may be outdated.
	Pods []PodPlacement

	plan  *plan
	chain *chain // the chain of the scheduler that decided the placement; nil if the placement comes from annotations
}

// PodPlacement is the place of one pod of a gang. Without Node and Indices, it is open: no cells are kept for the pod.
type PodPlacement struct {
	// Set is the index in Request.Sets(). It is -1 if HiveD's annotation doesn't contain the index.
	Set     int
	Node    string
	Indices []int32
	// Preassigned contains the type of the preassigned virtual cell for each leaf in Indices. All types are "" if the gang is
	// opportunistic.
	Preassigned []string
	// Virtual contains the address of the virtual leaf for each leaf in Indices. It is nil if the gang is opportunistic, or if
	// HiveD's annotation doesn't contain the addresses.
	Virtual []string
}

// Downgrade reports that a running gang lost its guarantee or, with Restored, regained its guarantee. Placement is the new
// content for the annotations of Pods.
type Downgrade struct {
	VC, Gang  string
	Pods      []PodID
	Placement *Placement
	Reason    string
	Restored  bool
}
