package cell

// Priorities of gangs. A guaranteed gang has a priority from MinGuaranteed to MaxGuaranteed and
// uses cells of its virtual cluster. An opportunistic one uses idle cells and can be
// preempted by any guaranteed gang.
const (
	Opportunistic = -1
	MinGuaranteed = 0
	MaxGuaranteed = 1000
)

// PodID names a pod for its whole life: the UID in a cluster, any unique text in a replay.
type PodID string

// Request is the request of a pod: its own share, and the request of its gang.
type Request struct {
	VirtualCluster string
	Priority       int
	// PinnedCell restricts the gang to one pinned cell of its virtual cluster.
	PinnedCell string
	// LeafType restricts the gang to GPUs of one model; "" means any model.
	LeafType string
	// Gang is the gang's name, unique in its virtual cluster.
	Gang string
	// LazyPreemption reports whether the gang accepts to be downgraded to opportunistic instead of being killed.
	LazyPreemption bool
	// OnlySuggested restricts the gang to the nodes that Schedule is given.
	OnlySuggested bool
	// Root is the shape of the whole gang. Set is the index of the pod's own set in Sets().
	Root Group
	Set  int
	// User and UserGroup are charged against the quotas of the virtual cluster; "" isn't charged.
	User, UserGroup string
	// Alternative requests other cells for the same pods; it may be nil. Callers choose between the two: the algorithm ignores it.
	Alternative *Request
}

// Group is a part of a gang: its pods, and its subgroups.
type Group struct {
	Name string
	// Within is a cell type: all pods of the group and of its children must be in one cell of that
	// type. It may be "": the lowest cell that holds a gang is chosen anyway.
	Within   string
	Pods     []PodSet
	Children []Group
}

// PodSet is a number of equal pods.
type PodSet struct {
	// Count is the number of pods, > 0.
	Count int
	// CellType is the type of the cells that each pod gets, at or below the node; "" is the leaf.
	CellType string
	// Cells is the number of such cells of each pod, > 0.
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

// Phase determines what a call of Schedule may do: Filtering finds a placement, Preempting also reserves
// the cells of running gangs that must be evicted.
type Phase int

// The phases, as in kube-scheduler's extender protocol.
const (
	Filtering Phase = iota
	Preempting
)

// Nodes is a set of node names. A nil Nodes holds every name.
type Nodes interface{ Has(name string) bool }

// Result is the result of Schedule.
type Result string

// The results of Schedule.
const (
	// Bind: the pod can start on Node with Indices, now.
	Bind Result = "bind"
	// Wait: the pod has no place now, and may get one later.
	Wait Result = "wait"
	// Preempt: the pod can start where Victims run, once they are gone.
	Preempt Result = "preempt"
	// Refuse: the request is malformed, or could not be met by the idle, healthy cluster either.
	Refuse Result = "badRequest"
)

// Decision is the result of Schedule.
type Decision struct {
	Result Result
	// Reason explains in a sentence why a pod waits or is rejected.
	Reason string
	// Node, Indices and Chain are the pod's place, if the result is Bind. Indices are device
	// indices on the node, ascending.
	Node    string
	Indices []int32
	Chain   string
	// Placement is the place of the whole gang, if the result is Bind or Preempt, and Slot the pod's index in
	// Placement.Pods, if it is Bind. It is shared by all decisions of the gang; don't change it.
	Placement *Placement
	Slot      int
	// Victims are the pods that must be evicted, as whole gangs, in order of node and pod, if the result is Preempt.
	Victims []Victim
	// Changes are the gangs that lost their guarantee to the reservation, or have it again.
	Changes []Downgrade

	plan    *plan // of a Preempt, for Reserve
	victims []*gang
}

// Victim is a pod that must be evicted for another one.
type Victim struct {
	Pod      PodID
	Node     string
	VC, Gang string
}

// Placement is the place of a gang, complete enough to rebuild it after a restart.
type Placement struct {
	Chain string
	// Order grows with each gang that is placed; the youngest gang has the highest.
	Order uint64
	// Moves counts the pods of the gang that were given another place: the placement with more moves is newer.
	Moves uint64
	// Downgraded marks a guaranteed gang that runs as an opportunistic one.
	Downgraded bool
	// Pods has one entry per pod of the gang, in the order of Request.Sets(). All except the pod's own reflect the state when it was
	// written.
	Pods []PodPlacement

	plan  *plan
	chain *chain // of the scheduler that decided it; nil if it was read from annotations
}

// PodPlacement is the place of one pod of a gang. One with neither Node nor Indices is open: no cells are kept for the pod.
type PodPlacement struct {
	// Set is the index in Request.Sets(), -1 if a foreign annotation doesn't contain it.
	Set     int
	Node    string
	Indices []int32
	// Preassigned has per index the type of the cell of the virtual cluster that the leaf belongs
	// to; all are "" if the gang is opportunistic.
	Preassigned []string
	// Virtual has per index the address of the virtual leaf; nil if the gang is opportunistic or
	// a foreign annotation doesn't contain it.
	Virtual []string
}

// Downgrade indicates that a gang keeps running and lost its guarantee (or, with Restored, has it again). Placement is
// the new content for the annotations of Pods.
type Downgrade struct {
	VC, Gang  string
	Pods      []PodID
	Placement *Placement
	Reason    string
	Restored  bool
}
