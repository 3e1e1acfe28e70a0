package render

import (
	"cmp"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// useCells reports whether the scheduler of GPUs places the job. A cluster without GPUs has no cells.
func (r *renderer) useCells() bool {
	return r.Cluster.SchedulerName != "" && (r.Cluster.SKUs == nil || len(r.Cluster.SKUs) > 0)
}

// request is the annotation that requests cells from the scheduler, as OpenPAI writes it.
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
	// OrElse isn't part of OpenPAI: it is an extension of paictl.
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

// makeGroups makes the affinity groups of roles: the named groups, or, if no role names a group, one group for all
// roles. A group uses one type of cells. Roles that request different types get one group for each type; the runtime
// still lets their tasks wait for each other. Members of one size are summed up, which keeps jobs of many roles small.
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

// isGang reports whether all tasks of a role start together.
func (r *renderer) isGang(i int) bool {
	return r.job.Roles[i].Affinity != "" || r.job.Extras.Gang && !r.named
}

// gangNames returns the names of roles' affinity groups, for the roles that have one.
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

// chooseTypes sets the type of cells for each role; "" means any type of GPU. A role without GPUs that names no type
// gets CPU cells if its virtual cluster owns some, unless it is to be placed beside GPUs.
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

// largest returns the role of the same affinity group that requests the most, because all roles of a group are on one
// type of cells.
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

// besideGPUs reports whether a role of the same named affinity group has GPUs: a group is on one type.
func (r *renderer) besideGPUs(role *protocol.Role) bool {
	return role.Affinity != "" && slices.ContainsFunc(r.job.Roles, func(other protocol.Role) bool {
		return other.Affinity == role.Affinity && (other.GPU > 0 || other.SKU != "" || other.PinnedCell != "")
	})
}

// processors returns the type of CPU cells that the job may use. If there are several, it prefers types whose machines can hold a task
// of the role, and among these the type with the most cells. It returns "" if the job may not use any.
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

// countCells fills in how many cells each role's task takes: as many as give it GPUs, processors and
// memory. Unknown sizes of a SKU don't count.
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

// Limits of a task whose file says 0, if nothing is known about its cells.
const (
	defaultMilliCPU = 2000
	defaultMemoryMB = 4096
)

// bounds are the limits of a task.
type bounds struct{ milliCPU, memoryMB, shmMB int }

// boundsOf returns the limits of a task. If its file says 0, it may use the share of its cells: a task without a limit could take the memory
// of the whole machine.
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

// onCPUCells reports whether a role's tasks take CPU cells.
func (r *renderer) onCPUCells(i int) bool {
	sku, known := r.Cluster.SKUs[r.typeOf(i)]
	return known && sku.GPU == 0
}

// typeOf returns the type of a role's cells, or of its pinned cell, if it is known.
func (r *renderer) typeOf(i int) string {
	if pin := r.job.Roles[i].PinnedCell; pin != "" && r.types[i] == "" {
		return r.Cluster.VirtualClusters[r.job.VirtualCluster].PinnedTypes[pin]
	}
	return r.types[i]
}

// unit returns the resources of one cell of the type that the role requests. Without a type, it is the smallest cell of the GPUs of
// the virtual cluster, or, for opportunistic jobs, of all GPUs.
func (r *renderer) unit(i int) SKU { return r.unitOf(r.typeOf(i)) }

// unitOf does what unit does, for a type; "" is any GPU.
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

// lesser returns the smaller of two numbers; 0 means unknown.
func lesser(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (r *renderer) guaranteed() bool { return r.job.PriorityNumber() >= 0 }
