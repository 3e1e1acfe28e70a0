package render

import (
	"fmt"

	"github.com/openpai/paictl/pkg/job/protocol"
)

// A role without GPUs may get CPU cells that it hasn't requested. Such a role has an alternative: a share of the machines with GPUs, which it
// would get in a virtual cluster without CPU cells. The alternative helps if a storage or a label excludes the machines with CPU cells. The
// scheduler chooses between the two.

// alternative is the share of GPUs that one task of a role can take instead of CPU cells.
type alternative struct {
	cells int    // 0: the role has no alternative
	group *group // nil if the role has no affinity group
}

// chooseAlternatives sets the alternative of each role that has one. If CPU cells can never hold a gang, the roles of the gang get a share of
// GPUs instead of CPU cells.
func (r *renderer) chooseAlternatives() {
	r.alternatives, r.outgrown = make([]alternative, len(r.job.Roles)), make([]bool, len(r.job.Roles))
	if r.Cluster.ReserveGPUMachines {
		return
	}
	for _, members := range r.gangs() {
		share, fits := r.shareOf(members)
		switch {
		case !fits:
			continue
		case !r.holdsCPU(members):
			for _, i := range members {
				r.types[i], r.implied[i], r.outgrown[i] = "", false, true
				r.count(i)
			}
			continue
		}
		for _, i := range members {
			r.alternatives[i].cells = share[i]
		}
	}
}

// gangs returns the roles that get CPU cells without requesting them, grouped by gang. A role whose tasks start one by one is a group by itself.
func (r *renderer) gangs() [][]int {
	byKey := map[string][]int{}
	var keys []string
	for i, key := range r.gangNames() {
		if !r.isGang(i) {
			key = fmt.Sprintf("/%d", i)
		}
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = append(byKey[key], i)
	}
	var out [][]int
	for _, key := range keys {
		implied := true
		for _, i := range byKey[key] {
			implied = implied && r.implied[i]
		}
		if implied {
			out = append(out, byKey[key])
		}
	}
	return out
}

// shareOf returns how many GPUs one task of each of the roles would take. fits reports whether the machines can hold the tasks and the job may
// have so many GPUs.
func (r *renderer) shareOf(members []int) (share map[int]int, fits bool) {
	most, unit := r.mostGPUs(), r.unitOf("")
	share, fits = map[int]int{}, most > 0
	total := 0
	for _, i := range members {
		task := r.job.Roles[i]
		task.MilliCPU, task.MemoryMB = r.bounds[i].milliCPU, r.bounds[i].memoryMB
		share[i] = cellsOf(&task, unit)
		fits = fits && (unit.PerNode == 0 || share[i] <= unit.PerNode)
		total += share[i] * r.together(i)
	}
	return share, fits && total <= most
}

// holdsCPU reports whether the CPU cells that the job may use are enough for the roles, when all these cells are free.
func (r *renderer) holdsCPU(members []int) bool {
	vc, known := r.Cluster.VirtualClusters[r.job.VirtualCluster]
	total := map[string]int{}
	for _, i := range members {
		unit, name := r.unit(i), r.types[i]
		total[name] += r.cells[i] * r.together(i)
		if unit.PerNode > 0 && r.cells[i] > unit.PerNode || known && r.guaranteed() && total[name] > vc.Cells[name] {
			return false
		}
	}
	return true
}

// together returns how many tasks of a role must start at the same time.
func (r *renderer) together(i int) int {
	if r.isGang(i) {
		return r.job.Roles[i].Instances
	}
	return 1
}

// mostGPUs returns how many GPUs the job may have at the same time. If there is no limit, it returns more than any job needs.
func (r *renderer) mostGPUs() int {
	vc, known := r.Cluster.VirtualClusters[r.job.VirtualCluster]
	n := 0
	for name, sku := range r.Cluster.SKUs {
		switch {
		case sku.GPU == 0:
		case known && r.guaranteed():
			n += vc.Cells[name]
		default:
			return protocol.MaxTasks * protocol.MaxTasks
		}
	}
	if limit := quota(vc.Users, r.User, vc.PerUser); limit > 0 {
		n = min(n, limit)
	}
	if limit := quota(vc.Groups, r.Group, vc.PerGroup); r.Group != "" && limit > 0 {
		n = min(n, limit)
	}
	return n
}

// fitsGPUs reports whether machines with GPUs could hold the tasks of a role that gets CPU cells.
func (r *renderer) fitsGPUs(i int) bool {
	_, fits := r.shareOf([]int{i})
	return fits
}

// neither returns a text which says that a role's share of GPUs, as the alternative to CPU cells, is also too large. It returns "" if the role
// has no alternative.
func (r *renderer) neither(i int) string {
	if r.Cluster.ReserveGPUMachines || !r.implied[i] || r.mostGPUs() == 0 {
		return ""
	}
	share, _ := r.shareOf([]int{i})
	return fmt.Sprintf("; nor can it take its share of GPUs instead, which is %s per task", gpus(share[i]))
}
