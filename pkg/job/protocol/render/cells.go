package render

import (
	"cmp"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// useCells reports whether the GPU scheduler places the job. Without GPUs and CPU cells, the cluster has no cells to request.
func (r *renderer) useCells() bool {
	return r.Cluster.SchedulerName != "" && (r.Cluster.SKUs == nil || len(r.Cluster.SKUs) > 0)
}

// request is the content of the annotation that requests cells from the scheduler, in OpenPAI's format.
type request struct {
	VirtualCluster          string `yaml:"virtualCluster"`
	Priority                int    `yaml:"priority"`
	PinnedCellID            string `yaml:"pinnedCellId,omitempty"`
	LeafCellType            string `yaml:"leafCellType,omitempty"`
	LeafCellNumber          int    `yaml:"leafCellNumber"`
	GangReleaseEnable       *bool  `yaml:"gangReleaseEnable,omitempty"`
	LazyPreemptionEnable    *bool  `yaml:"lazyPreemptionEnable,omitempty"`
	IgnoreK8sSuggestedNodes *bool  `yaml:"ignoreK8sSuggestedNodes,omitempty"`
	AffinityGroup           *group `yaml:"affinityGroup"`
	// OrElse is an extension of paictl that OpenPAI doesn't have.
	OrElse *orElse `yaml:"orElse,omitempty"`
}

type orElse struct {
	LeafCellNumber int    `yaml:"leafCellNumber"`
	AffinityGroup  *group `yaml:"affinityGroup,omitempty"`
}

type group struct {
	Name    string   `yaml:"name"`
	Members []member `yaml:"members"`
}

type member struct {
	PodNumber      int `yaml:"podNumber"`
	LeafCellNumber int `yaml:"leafCellNumber"`
}

func (r *renderer) request(i int) string {
	j, role := r.job, &r.job.Roles[i]
	q := request{
		VirtualCluster: j.VirtualCluster, Priority: j.PriorityNumber(), PinnedCellID: role.PinnedCell, LeafCellType: r.types[i], LeafCellNumber: r.cells[i],
		GangReleaseEnable: j.Extras.GangRelease, LazyPreemptionEnable: j.Extras.LazyPreemption, IgnoreK8sSuggestedNodes: j.Extras.IgnoreSuggestedNodes,
		AffinityGroup: r.groups[i],
	}
	if o := r.alternatives[i]; o.cells > 0 {
		q.OrElse = &orElse{o.cells, o.group}
	}
	b, err := strictyaml.Encode(q, nil)
	if err != nil { // strings and numbers: nothing can fail
		r.fail(nil, "job/cells", err.Error(), "")
	}
	return string(b)
}

// makeGroups makes the affinity groups of the roles: the groups that the roles name or, if no role names a group, one group for all roles. All
// tasks of a group use one type of cells, so roles that request different types get one group for each type. The runtime still makes the tasks of
// these groups wait for each other. Members with the same size are summed up, which keeps jobs with many roles small.
func (r *renderer) makeGroups() {
	byName, alternatives, names := map[string]*group{}, map[string]*group{}, r.gangNames()
	for i, role := range r.job.Roles {
		if !r.isGang(i) {
			r.groups = append(r.groups, nil)
			continue
		}
		join := func(groups map[string]*group, cells int) *group {
			name := names[i]
			if groups[name] == nil {
				groups[name] = &group{Name: v1.FullName(r.User, r.job.Name) + "/" + name}
			}
			groups[name].add(role.Instances, cells)
			return groups[name]
		}
		r.groups = append(r.groups, join(byName, r.cells[i]))
		if n := r.alternatives[i].cells; n > 0 {
			r.alternatives[i].group = join(alternatives, n)
		}
	}
}

// isGang reports whether all tasks of a role must start together.
func (r *renderer) isGang(i int) bool {
	return r.job.Roles[i].Affinity != "" || r.job.Extras.Gang && !r.named
}

// gangNames returns the name of the affinity group of each role, which is only used for roles that have a group.
func (r *renderer) gangNames() []string {
	kinds := map[string]bool{}
	for i, role := range r.job.Roles {
		kinds[r.types[i]+role.PinnedCell] = true
	}
	var out []string
	for i, role := range r.job.Roles {
		name := cmp.Or(role.Affinity, "default")
		if kind := r.types[i] + role.PinnedCell; role.Affinity == "" && kind != "" && len(kinds) > 1 {
			name += "-" + kind
		}
		out = append(out, name)
	}
	return out
}

func (g *group) add(pods, cells int) {
	at := slices.IndexFunc(g.Members, func(m member) bool { return m.LeafCellNumber == cells })
	if at < 0 {
		g.Members = append(g.Members, member{LeafCellNumber: cells})
		at = len(g.Members) - 1
	}
	g.Members[at].PodNumber += pods
}

// chooseTypes sets the type of cells for each role. "" means any type of GPU. A role that requests neither GPUs nor a type gets CPU cells if the
// virtual cluster owns some, unless the role must be placed beside GPUs.
func (r *renderer) chooseTypes() {
	r.named = slices.ContainsFunc(r.job.Roles, func(role protocol.Role) bool { return role.Affinity != "" })
	for i := range r.job.Roles {
		role, implied := &r.job.Roles[i], false
		name := role.SKU
		if sku, known := r.Cluster.SKUs[name]; role.SharedSKU && role.GPU > 0 && known && sku.GPU == 0 {
			name = "" // another role requests CPU cells
		}
		if (name == "" || role.SharedSKU) && role.GPU == 0 && role.PinnedCell == "" && !r.besideGPUs(role) {
			cpu := r.processors(r.largest(role))
			name, implied = cmp.Or(cpu, name), cpu != ""
		}
		r.types, r.implied = append(r.types, name), append(r.implied, implied)
	}
}

// largest returns the largest role in the affinity group of a role. All roles of a group use one type of cells, so the largest role decides.
func (r *renderer) largest(role *protocol.Role) *protocol.Role {
	if role.Affinity == "" {
		return role
	}
	for i := range r.job.Roles {
		other := &r.job.Roles[i]
		if other.Affinity == role.Affinity && cmp.Or(cmp.Compare(other.MilliCPU, role.MilliCPU), cmp.Compare(other.MemoryMB, role.MemoryMB)) > 0 {
			role = other
		}
	}
	return role
}

// besideGPUs reports whether another role in the named affinity group of a role needs GPUs or a certain type, because all roles of a group use
// one type.
func (r *renderer) besideGPUs(role *protocol.Role) bool {
	return role.Affinity != "" && slices.ContainsFunc(r.job.Roles, func(other protocol.Role) bool {
		return other.Affinity == role.Affinity && (other.GPU > 0 || other.SKU != "" || other.PinnedCell != "")
	})
}

// processors returns the type of CPU cells for a role. Among the types that the job may use, it prefers types whose machines can hold a task of
// the role, and among these the type with the most cells. It returns "" if the job may not use CPU cells.
func (r *renderer) processors(role *protocol.Role) string {
	vc, known := r.Cluster.VirtualClusters[r.job.VirtualCluster]
	best, fits, most := "", false, 0
	for _, name := range slices.Sorted(maps.Keys(r.Cluster.SKUs)) {
		sku := r.Cluster.SKUs[name]
		if sku.GPU > 0 || known && r.guaranteed() && vc.Cells[name] == 0 {
			continue
		}
		fit := sku.PerNode == 0 || cellsOf(role, sku) <= sku.PerNode
		if best == "" || fit && !fits || fit == fits && vc.Cells[name] > most {
			best, fits, most = name, fit, vc.Cells[name]
		}
	}
	return best
}

// countCells sets how many cells a task of each role takes, so that the cells include enough GPUs, processors and memory. It ignores sizes that
// aren't known.
func (r *renderer) countCells() {
	r.cells, r.bounds = make([]int, len(r.job.Roles)), make([]bounds, len(r.job.Roles))
	for i := range r.job.Roles {
		r.count(i)
	}
}

func (r *renderer) count(i int) {
	unit := r.unit(i)
	r.cells[i] = cellsOf(&r.job.Roles[i], unit)
	r.bounds[i] = boundsOf(&r.job.Roles[i], r.cells[i], unit)
}

// Limits of a task whose job file says 0, if the size of its cells is unknown.
const (
	defaultMilliCPU = 2000
	defaultMemoryMB = 4096
)

// bounds contains the limits of a task for processors, memory and /dev/shm.
type bounds struct{ milliCPU, memoryMB, shmMB int }

// boundsOf returns the limits of a task. If the job file says 0, the limit is the share that belongs to the task's cells. Without a limit, a task
// could take all memory of its machine.
func boundsOf(role *protocol.Role, cells int, unit SKU) bounds {
	memory := cmp.Or(role.MemoryMB, cells*unit.MemoryMB, defaultMemoryMB)
	return bounds{
		milliCPU: cmp.Or(role.MilliCPU, cells*unit.MilliCPU, defaultMilliCPU), memoryMB: memory,
		shmMB: cmp.Or(role.ShmMB, min(defaultShmMB, memory)),
	}
}

func cellsOf(role *protocol.Role, unit SKU) int {
	return max(share(role.GPU, unit.GPU), share(role.MilliCPU, unit.MilliCPU), share(role.MemoryMB, unit.MemoryMB), 1)
}

func share(wanted, unit int) int {
	if unit <= 0 {
		return 0
	}
	return (wanted + unit - 1) / unit
}

// onCPUCells reports whether the tasks of a role take CPU cells.
func (r *renderer) onCPUCells(i int) bool {
	sku, known := r.Cluster.SKUs[r.typeOf(i)]
	return known && sku.GPU == 0
}

// typeOf returns the type of a role's cells. For a role with a pinned cell, it returns the type of the pinned cell, or "" if that is unknown.
func (r *renderer) typeOf(i int) string {
	if pin := r.job.Roles[i].PinnedCell; pin != "" && r.types[i] == "" {
		return r.Cluster.VirtualClusters[r.job.VirtualCluster].PinnedTypes[pin]
	}
	return r.types[i]
}

// unit returns the resources of one cell of the type that a role requests. For a role without a type, it returns the smallest resources of a GPU
// in the virtual cluster, or in the whole cluster for an opportunistic job.
func (r *renderer) unit(i int) SKU { return r.unitOf(r.typeOf(i)) }

// unitOf returns the same as unit, for the name of a type. "" means any type of GPU.
func (r *renderer) unitOf(name string) SKU {
	if name != "" {
		if u, ok := r.Cluster.SKUs[name]; ok {
			return u
		}
		return SKU{GPU: 1}
	}
	vc, known := r.Cluster.VirtualClusters[r.job.VirtualCluster]
	var least *SKU
	for name, u := range r.Cluster.SKUs {
		if u.GPU == 0 || known && r.guaranteed() && vc.Cells[name] == 0 {
			continue
		}
		if least == nil {
			least = &SKU{GPU: u.GPU, MilliCPU: u.MilliCPU, MemoryMB: u.MemoryMB, PerNode: u.PerNode}
			continue
		}
		least.GPU, least.MilliCPU, least.MemoryMB = lesser(least.GPU, u.GPU), lesser(least.MilliCPU, u.MilliCPU), lesser(least.MemoryMB, u.MemoryMB)
		least.PerNode = max(least.PerNode, u.PerNode)
	}
	if least == nil {
		return SKU{GPU: 1}
	}
	return *least
}

// lesser returns the smaller of two numbers. It ignores a number of 0, which means unknown.
func lesser(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (r *renderer) guaranteed() bool { return r.job.PriorityNumber() >= 0 }
