package gangs

import (
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Paths of HiveD's inspect API. The JSON of the responses is also compatible with HiveD.
const (
	inspectGroups   = "/v1/inspect/affinitygroups/"
	inspectCluster  = "/v1/inspect/clusterstatus"
	inspectPhysical = "/v1/inspect/clusterstatus/physicalcluster"
	inspectVirtual  = "/v1/inspect/clusterstatus/virtualclusters/"
)

type groups struct {
	Items []group `json:"items"`
}

type group struct {
	Metadata groupMetadata `json:"metadata"`
	Status   groupStatus   `json:"status"`
}

type groupMetadata struct {
	Name string `json:"name"`
}

type groupStatus struct {
	VC                   string              `json:"vc"`
	Priority             int                 `json:"priority"`
	State                string              `json:"state"`
	PhysicalPlacement    map[string][]int32  `json:"physicalPlacement,omitempty"`
	VirtualPlacement     map[string][]string `json:"virtualPlacement,omitempty"`
	AllocatedPods        []cell.PodID        `json:"allocatedPods,omitempty"`
	PreemptingPods       []cell.PodID        `json:"preemptingPods,omitempty"`
	LazyPreemptionStatus *lazyPreemption     `json:"lazyPreemptionStatus,omitempty"`
}

type lazyPreemption struct {
	Preemptor      string    `json:"preemptor"`
	PreemptionTime time.Time `json:"preemptionTime"`
}

type clusterStatus struct {
	PhysicalCluster []cell.CellStatus            `json:"physicalCluster"`
	VirtualClusters map[string][]cell.CellStatus `json:"virtualClusters"`
}

func (s *state) inspectGroups() groups {
	out := groups{Items: []group{}}
	for _, status := range s.core.Gangs() {
		out.Items = append(out.Items, s.group(&status))
	}
	return out
}

// inspectGroup returns the group in a path, which is GROUP or VC/GROUP. See find.
func (s *state) inspectGroup(path, vc string) (group, error) {
	var found []cell.GangStatus
	for _, status := range s.core.Gangs() {
		if (vc == "" || vc == status.VC) && status.Name == path || vc == "" && status.VC+"/"+status.Name == path {
			found = append(found, status)
		}
	}
	switch len(found) {
	case 0:
		return group{}, badRequest("there is no group %s that has cells", path)
	case 1:
		return s.group(&found[0]), nil
	}
	var names []string
	for _, status := range found {
		names = append(names, status.VC)
	}
	return group{}, badRequest("several virtual clusters have a group %s: %s; name one with ?vc=", path, strings.Join(names, ", "))
}

func (s *state) group(g *cell.GangStatus) group {
	out := group{groupMetadata{g.Name}, groupStatus{
		VC: g.VC, Priority: g.Priority, State: g.State, PhysicalPlacement: g.PhysicalPlacement,
		VirtualPlacement: g.VirtualPlacement, AllocatedPods: g.AllocatedPods, PreemptingPods: g.PreemptingPods,
	}}
	if g.Downgraded {
		out.Status.LazyPreemptionStatus = &lazyPreemption{Preemptor: g.Preemptor}
		if known := s.gangs[gangKey{g.VC, g.Name}]; known != nil {
			out.Status.LazyPreemptionStatus.PreemptionTime = known.downgraded
		}
	}
	return out
}

func (s *state) inspectVirtual(vc string) ([]cell.CellStatus, error) {
	cells, ok := s.core.Virtual()[vc]
	if !ok {
		return nil, badRequest("there is no virtual cluster %s", vc)
	}
	return cells, nil
}
