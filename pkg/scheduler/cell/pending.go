package cell

// This file holds signatures whose bodies are being written; it goes before the issue closes.

type plan struct{}

// Scheduler is the state of one cluster.
type Scheduler struct{}

// New makes a scheduler for a valid configuration. All nodes are bad until SetNode says otherwise.
func New(Config) (*Scheduler, error) { return &Scheduler{}, nil }

// Schedule decides about one pod. suggested are the nodes that Kubernetes offers; nil is all.
func (s *Scheduler) Schedule(pod PodID, r *Request, phase Phase, suggested Nodes) Decision {
	return Decision{Result: Wait}
}

// Allocate accepts a Bind (the placement and slot of its Decision), or takes over a pod that runs
// already (those that annotation.ReadBound returns). It reports gangs that lost their guarantee by
// it. An error means that the pod's claim contradicts the state and that nothing was changed.
func (s *Scheduler) Allocate(pod PodID, r *Request, at *Placement, slot int) ([]Downgrade, error) {
	return nil, nil
}

// DeleteAllocated forgets a pod that was allocated; false if it is not known. The cells of a gang are
// free once all its pods are gone.
func (s *Scheduler) DeleteAllocated(pod PodID) ([]Downgrade, bool) { return nil, false }

// DeleteUnallocated forgets a pod that waits; the last one of a gang that holds reservations gives them back.
func (s *Scheduler) DeleteUnallocated(pod PodID, r *Request) []Downgrade { return nil }

// SetNode says whether a node can be used; names that the configuration doesn't have are ignored.
func (s *Scheduler) SetNode(name string, healthy bool) {}

// SetDevice says whether one GPU of a node can be used.
func (s *Scheduler) SetDevice(node string, index int32, healthy bool) {}

// Nodes returns the names of all nodes of the configuration, in its order, without duplicates.
func (s *Scheduler) Nodes() []string { return nil }

// Devices returns the device indices that the configuration has on a node, ascending; nil if it has no such node.
func (s *Scheduler) Devices(node string) []int32 { return nil }

// Reconfigure makes a scheduler for another configuration with the same gangs and bad hardware, and reports what they
// lose. s itself is not changed, so that this is also the dry run.
func (s *Scheduler) Reconfigure(c Config) (*Scheduler, []Downgrade, error) { return nil, nil, nil }

// Gangs returns all gangs in order of virtual cluster and name.
func (s *Scheduler) Gangs() []GangStatus { return nil }

// Gang returns one gang.
func (s *Scheduler) Gang(vc, name string) (GangStatus, bool) { return GangStatus{}, false }

// Physical returns the physical cells, top cells first in order of the configuration.
func (s *Scheduler) Physical() []CellStatus { return nil }

// Virtual returns the virtual cells of each virtual cluster.
func (s *Scheduler) Virtual() map[string][]CellStatus { return nil }

// Stats counts.
func (s *Scheduler) Stats() Stats { return Stats{} }

// Why explains what keeps a request from starting now. It changes nothing.
func (s *Scheduler) Why(r *Request) Explanation { return Explanation{} }

// Check recounts all bookkeeping from scratch and returns the first contradiction.
func (s *Scheduler) Check() error { return nil }
