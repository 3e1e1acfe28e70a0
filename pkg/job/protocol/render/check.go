package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// check compares the job's requests with the known facts about the cluster.
func (r *renderer) check() {
	r.checkUser()
	r.checkStorages()
	if !isLabel(r.job.VirtualCluster) {
		r.fail(strictyaml.Path{"defaults", "virtualCluster"}, "job/name", fmt.Sprintf("%q is not the name of a virtual cluster", short(r.job.VirtualCluster)), "write letters, digits, - _ and ., at most 63 characters")
		return
	}
	r.chooseTypes()
	r.countCells()
	r.chooseAlternatives()
	r.makeGroups()
	vc, ok := r.Cluster.VirtualClusters[r.job.VirtualCluster]
	if r.Cluster.VirtualClusters != nil && !ok {
		r.fail(strictyaml.Path{"defaults", "virtualCluster"}, "job/unknown-virtual-cluster", fmt.Sprintf("the cluster has no virtual cluster %q", r.job.VirtualCluster),
			choose(r.job.VirtualCluster, "write one of these into defaults.virtualCluster: ", slices.Sorted(maps.Keys(r.Cluster.VirtualClusters)), "ask the administrator which there are"))
	}
	for i := range r.job.Roles {
		r.checkHardware(i, vc, ok)
		r.checkSharedMemory(i)
	}
	if ok && len(r.findings.Errors()) == 0 {
		r.checkQuota(vc)
	}
	if r.useCells() && len(r.findings.Errors()) == 0 {
		r.checkRequests()
	}
}

func short(s string) string {
	if runes := []rune(s); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return s
}

func (r *renderer) checkUser() {
	for _, one := range []struct{ what, name string }{{"user", r.User}, {"group", r.Group}} {
		if one.what == "group" && one.name == "" || isLabel(one.name) {
			continue
		}
		r.findings = append(r.findings, strictyaml.Finding{File: r.job.File, Line: 1, Column: 1, Rule: "job/user", Severity: strictyaml.Error,
			Message: fmt.Sprintf("%q is not a %s name that Kubernetes can store", short(one.name), one.what),
			Remedy:  fmt.Sprintf("give another with --%[1]s, or correct PAICTL_%[2]s or the setting %[1]s: letters, digits, - _ and ., at most 63 characters", one.what, strings.ToUpper(one.what))})
	}
}

// checkHardware compares the requests of one role with the hardware of the cluster.
func (r *renderer) checkHardware(i int, vc VirtualCluster, known bool) {
	r.checkRDMA(i, vc, known)
	r.checkDevices(i)
	role, sku := &r.job.Roles[i], r.types[i]
	asks := strictyaml.Path{"extras", "hivedScheduler", "taskRoles", role.Name}
	resources := strictyaml.Path{"taskRoles", role.Name, "resourcePerInstance"}
	if r.Cluster.SKUs == nil {
		return
	}
	if role.GPU > 0 && !r.hasGPUs() {
		r.fail(resources.With("gpu"), "job/no-gpu", "the cluster has no GPUs", "write gpu: 0")
		return
	}
	if len(r.Cluster.SKUs) == 0 {
		return
	}
	all := slices.Sorted(maps.Keys(r.Cluster.SKUs))
	_, exists := r.Cluster.SKUs[sku]
	switch {
	case sku != "" && !exists:
		r.fail(asks.With("skuType"), "job/unknown-sku", fmt.Sprintf("the cluster has no GPUs of the type %q", sku), choose(sku, "the types are ", all, ""))
		return
	case role.GPU > 0 && sku != "" && r.onCPUCells(i):
		r.fail(asks.With("skuType"), "job/unknown-sku", fmt.Sprintf("machines of the type %s have no GPUs, but %s requests %s", sku, role.Name, gpus(role.GPU)), "write gpu: 0, or a type with GPUs")
		return
	case sku != "" && known && r.guaranteed() && vc.Cells[sku] == 0:
		r.fail(asks.With("skuType"), "job/unknown-sku", fmt.Sprintf("the virtual cluster %s owns no %s", r.job.VirtualCluster, sku), ownRemedy(vc))
		return
	case role.PinnedCell != "" && known && !slices.Contains(vc.Pinned, role.PinnedCell):
		r.fail(asks.With("pinnedCellId"), "job/unknown-pinned-cell", fmt.Sprintf("the virtual cluster %s has no pinned cell %q", r.job.VirtualCluster, role.PinnedCell),
			choose(role.PinnedCell, "its pinned cells are ", vc.Pinned, "remove pinnedCellId"))
		return
	case role.GPU > 0 && role.PinnedCell != "" && r.onCPUCells(i):
		r.fail(asks.With("pinnedCellId"), "job/unknown-pinned-cell", fmt.Sprintf("the pinned cell %s has no GPUs, but %s requests %s", role.PinnedCell, role.Name, gpus(role.GPU)), "write gpu: 0, or remove pinnedCellId")
		return
	}
	if unit := r.unit(i); unit.PerNode > 0 && r.cells[i] > unit.PerNode {
		r.tooLarge(i, unit, resources)
	} else if role.GPU > 0 && r.cells[i] > role.GPU && r.useCells() {
		r.takesMore(i, unit, resources)
	}
}

// checkRDMA reports a role that requests RDMA if no machine for its tasks publishes an RDMA device.
func (r *renderer) checkRDMA(i int, vc VirtualCluster, known bool) {
	role := &r.job.Roles[i]
	if !role.Infiniband {
		return
	}
	where, remedy := "of the cluster", ""
	if !r.Cluster.NoRDMA {
		types, have := r.typesFor(i, vc, known), func(sku string) bool { return !r.Cluster.SKUs[sku].NoRDMA }
		if len(types) == 0 || slices.ContainsFunc(types, have) {
			return
		}
		where = "of the type " + strings.Join(types, " or ")
		if others := slices.DeleteFunc(slices.Sorted(maps.Keys(r.Cluster.SKUs)), func(sku string) bool { return !have(sku) }); len(others) > 0 {
			remedy = ", request another type: " + strings.Join(others, ", ")
		}
	}
	r.fail(strictyaml.Path{"taskRoles", role.Name, "extraContainerOptions", "infiniband"}, "job/infiniband",
		"no machine "+where+" publishes the resource "+ResourceRDMA+", so that the job would wait forever",
		"remove infiniband"+remedy+", or ask the administrator to install a device plugin that publishes "+ResourceRDMA)
}

// typesFor returns the types of machines that may run a role, or nil if they are unknown. These are the type that the role requests, or the types
// that its virtual cluster owns, or all types. A role without GPUs that gets CPU cells may also run on a share of GPUs.
func (r *renderer) typesFor(i int, vc VirtualCluster, known bool) (out []string) {
	if sku := r.types[i]; sku != "" && (r.job.Roles[i].GPU > 0 || r.job.Roles[i].SKU != "") {
		if _, exists := r.Cluster.SKUs[sku]; !exists {
			return nil
		}
		return []string{sku}
	}
	for _, sku := range slices.Sorted(maps.Keys(r.Cluster.SKUs)) {
		owned := !known || !r.guaranteed() || vc.Cells[sku] > 0
		if owned && (r.job.Roles[i].GPU == 0 || r.Cluster.SKUs[sku].GPU > 0) {
			out = append(out, sku)
		}
	}
	return out
}

// checkDevices reports a role whose tasks request more GPUs than any machine publishes, in a cluster without a GPU scheduler.
func (r *renderer) checkDevices(i int) {
	role, most := &r.job.Roles[i], r.Cluster.GPUs
	if r.Cluster.SchedulerName != "" || most == nil || role.GPU <= *most {
		return
	}
	at := strictyaml.Path{"taskRoles", role.Name, "resourcePerInstance", "gpu"}
	if *most == 0 {
		r.fail(at, "job/no-gpu", "no machine of the cluster publishes the resource "+ResourceGPU+", so that the job would wait forever",
			"write gpu: 0, or ask the administrator to start the scheduler of GPUs")
		return
	}
	r.fail(at, "job/too-large", fmt.Sprintf("a task of %s needs %s, but no machine has more than %d", role.Name, gpus(role.GPU), *most), "request less per task, and more instances")
}

// checkSharedMemory reports a role whose /dev/shm is larger than the memory of its tasks. /dev/shm is a part of that memory.
func (r *renderer) checkSharedMemory(i int) {
	role, b := &r.job.Roles[i], r.bounds[i]
	if b.shmMB > b.memoryMB {
		r.fail(strictyaml.Path{"taskRoles", role.Name, "extraContainerOptions", "shmMB"}, "job/range",
			fmt.Sprintf("/dev/shm of %s has %d MB, and is a part of its memory, which has %d MB", role.Name, b.shmMB, b.memoryMB),
			fmt.Sprintf("write shmMB: %d or less, or resourcePerInstance.memoryMB: %d or more", b.memoryMB, b.shmMB))
	}
}

// takesMore warns that each task of a role occupies more GPUs than the role requests.
func (r *renderer) takesMore(i int, unit SKU, at strictyaml.Path) {
	role := &r.job.Roles[i]
	var asks, fits []string
	if share(role.MilliCPU, unit.MilliCPU) > role.GPU {
		at = at.With("cpu")
		asks, fits = append(asks, fmt.Sprintf("cpu %g", float64(role.MilliCPU)/1000)), append(fits, fmt.Sprintf("cpu %g", float64(role.GPU*unit.MilliCPU)/1000))
	}
	if share(role.MemoryMB, unit.MemoryMB) > role.GPU {
		if len(asks) == 0 {
			at = at.With("memoryMB")
		}
		asks, fits = append(asks, fmt.Sprintf("memoryMB %d", role.MemoryMB)), append(fits, fmt.Sprintf("memoryMB %d", role.GPU*unit.MemoryMB))
	}
	verb := "is"
	if len(asks) > 1 {
		verb = "are"
	}
	r.warn(at, "job/share", fmt.Sprintf("a task of %s asks for %s and takes %d: %s %s the machine's share of %s", role.Name, gpus(role.GPU), r.cells[i], strings.Join(asks, " and "), verb, gpus(r.cells[i])),
		fmt.Sprintf("write %s or less to take %s", strings.Join(fits, " and "), gpus(role.GPU)))
}

// taken returns how many GPUs are occupied by the tasks that request GPUs.
func (r *renderer) taken() int {
	n := 0
	for i := range r.job.Roles {
		if role := &r.job.Roles[i]; role.GPU > 0 && r.useCells() {
			n += max(r.cells[i], role.GPU) * role.Instances
		}
	}
	return n
}

func (r *renderer) hasGPUs() bool {
	for _, sku := range r.Cluster.SKUs {
		if sku.GPU > 0 {
			return true
		}
	}
	for _, vc := range r.Cluster.VirtualClusters {
		for name := range vc.Cells {
			if _, known := r.Cluster.SKUs[name]; !known && len(r.Cluster.SKUs) > 0 {
				return true // its machines don't answer at the moment
			}
		}
	}
	return false
}

// tooLarge reports that a task of a role doesn't fit on any machine.
func (r *renderer) tooLarge(i int, unit SKU, at strictyaml.Path) {
	role := &r.job.Roles[i]
	what, remedy := "the machine's share of "+gpus(r.cells[i]), "request less per task, and more instances"
	switch {
	case r.onCPUCells(i):
		what = cpuCells(r.cells[i])
		if r.fitsGPUs(i) {
			remedy += ", or name machines with GPUs by skuType"
		}
	case role.GPU == 0:
		remedy += r.roomRemedy()
	}
	message := fmt.Sprintf("a task of %s needs %s, but no machine has more than %d", role.Name, what, unit.PerNode)
	if unit.MilliCPU > 0 && unit.MemoryMB > 0 {
		message += fmt.Sprintf(" (each has cpu %g and %d MB)", float64(unit.MilliCPU)/1000, unit.MemoryMB)
	}
	if role.GPU == 0 && !r.onCPUCells(i) {
		message += "; it holds GPUs " + r.shareReason(i)
	}
	message += r.neither(i)
	r.fail(at, "job/too-large", message, remedy)
}

// shareReason returns the reason why a role without GPUs takes a share of GPUs.
func (r *renderer) shareReason(i int) string {
	role := &r.job.Roles[i]
	switch {
	case r.outgrown[i]:
		return "because the machines without GPUs are too small for it"
	case role.SKU != "" && !role.SharedSKU:
		return "because it requires machines with " + role.SKU
	case role.PinnedCell != "":
		return "because the pinned cell " + role.PinnedCell + " has them"
	case r.besideGPUs(role):
		return "because its affinity group has roles with GPUs"
	case !r.guaranteed():
		return "because the cluster has no machines without GPUs"
	}
	return "because the virtual cluster " + r.job.VirtualCluster + " owns no machines without GPUs"
}

// roomRemedy returns the remedy for a virtual cluster without CPU cells, or "" if the whole cluster has no CPU cells.
func (r *renderer) roomRemedy() string {
	for _, sku := range r.Cluster.SKUs {
		if sku.GPU == 0 {
			return "; or ask an administrator for machines without GPUs (paictl vc set " + r.job.VirtualCluster + " --cells TYPE=N)"
		}
	}
	return ""
}

func ownRemedy(vc VirtualCluster) string {
	own := slices.Sorted(maps.Keys(vc.Cells))
	if len(own) == 0 {
		return "choose another virtual cluster in defaults.virtualCluster"
	}
	return "it owns " + strings.Join(own, ", ") + "; choose another virtual cluster, or jobPriorityClass: oppo, which may use the GPUs of others"
}

// wants is how many cells of one kind, GPUs or CPU cells, a job needs at the same time.
type wants struct {
	cells  int
	share  int // of these, the cells for processors and memory of tasks without GPUs
	reason string
	byType map[string]int
}

// wanted returns how many CPU cells or GPUs the job needs at the same time.
func (r *renderer) wanted(cpu bool) wants {
	w := wants{byType: map[string]int{}}
	for i := range r.job.Roles {
		role := &r.job.Roles[i]
		if r.onCPUCells(i) != cpu {
			continue
		}
		n := r.cells[i]
		switch {
		case r.job.Extras.Gang:
			n *= role.Instances
			w.cells += n
		case n <= w.cells:
			continue
		default: // tasks that are not a gang need not run at the same time: the largest counts
			w = wants{cells: n, byType: map[string]int{}}
		}
		if !cpu && role.GPU == 0 {
			w.share += n
			w.reason = r.shareReason(i)
		}
		if r.types[i] != "" {
			w.byType[r.types[i]] += n
		}
	}
	return w
}

// text describes the cells in words.
func (w wants) text(cpu bool) string {
	switch {
	case cpu:
		return cpuCells(w.cells)
	case w.share == w.cells:
		return "the share of " + gpus(w.cells)
	case w.share > 0:
		return fmt.Sprintf("%s, of which %d are the share of tasks without GPUs,", gpus(w.cells), w.share)
	}
	return gpus(w.cells)
}

// checkQuota reports a job that could never start, because it needs more than the virtual cluster owns, or more than one user may have at the
// same time.
func (r *renderer) checkQuota(vc VirtualCluster) {
	if !r.guaranteed() || !r.useCells() {
		return
	}
	owned := map[bool]int{}
	for name, n := range vc.Cells {
		sku, known := r.Cluster.SKUs[name]
		owned[known && sku.GPU == 0] += n
	}
	const remedy = "request less, choose another virtual cluster in defaults.virtualCluster, or use jobPriorityClass: oppo"
	at := strictyaml.Path{"taskRoles"}
	for _, cpu := range []bool{false, true} {
		w, advice, because := r.wanted(cpu), remedy, ""
		for i := range r.job.Roles {
			if cpu && because == "" {
				because = r.neither(i)
			}
		}
		if w.share > 0 {
			advice, because = remedy+r.roomRemedy(), "; tasks without GPUs hold the share that corresponds to their processors and memory, "+w.reason
		}
		if w.cells > owned[cpu] {
			r.fail(at, "job/quota", fmt.Sprintf("the job needs %s at the same time, but the virtual cluster %s owns %d%s", w.text(cpu), r.job.VirtualCluster, owned[cpu], because), advice)
			return
		}
		for _, sku := range slices.Sorted(maps.Keys(w.byType)) {
			if n := w.byType[sku]; n > vc.Cells[sku] && r.job.Extras.Gang {
				count := gpus(n)
				if cpu {
					count = cpuCells(n)
				}
				r.fail(at, "job/quota", fmt.Sprintf("the job needs %s of the type %s at the same time, but the virtual cluster %s owns %d", count, sku, r.job.VirtualCluster, vc.Cells[sku]), advice)
				return
			}
		}
		if !cpu {
			r.checkLimits(vc, w, because, advice)
		}
	}
}

// checkLimits compares the number of GPUs with the quotas of the user and the group.
func (r *renderer) checkLimits(vc VirtualCluster, w wants, because, remedy string) {
	at := strictyaml.Path{"taskRoles"}
	if limit := quota(vc.Users, r.User, vc.PerUser); limit > 0 && w.cells > limit {
		r.fail(at, "job/quota", fmt.Sprintf("the job needs %s at the same time, but user %s may have %d in the virtual cluster %s%s", w.text(false), r.User, limit, r.job.VirtualCluster, because), remedy)
	} else if limit := quota(vc.Groups, r.Group, vc.PerGroup); r.Group != "" && limit > 0 && w.cells > limit {
		r.fail(at, "job/quota", fmt.Sprintf("the job needs %s at the same time, but group %s may have %d in the virtual cluster %s%s", w.text(false), r.Group, limit, r.job.VirtualCluster, because), remedy)
	}
}

func cpuCells(n int) string {
	if n == 1 {
		return "1 CPU cell"
	}
	return fmt.Sprintf("%d CPU cells", n)
}

func gpus(n int) string {
	return plural.Of(n, "GPU")
}

func quota(named map[string]int, name string, each int) int {
	if n, ok := named[name]; ok {
		return n
	}
	return each
}

// checkRequests parses the requests with the scheduler's own parser, so that the scheduler will accept them.
func (r *renderer) checkRequests() {
	// If the placement is stored in claims, it takes no space in annotations. Only tasks with GPUs have claims.
	claimed := r.Cluster.Claims
	for i := range r.job.Roles {
		claimed = claimed && r.job.Roles[i].GPU > 0
	}
	for i, role := range r.job.Roles {
		request, err := annotation.ParseRequest(r.request(i), r.Namespace+"/"+r.object)
		if err != nil {
			r.fail(strictyaml.Path{"taskRoles", role.Name}, "job/cells", err.Error(), "")
			continue
		}
		if size := annotation.LeastSize(request); r.Cluster.SKUs != nil && !claimed && size > annotation.MaxSize {
			r.fail(strictyaml.Path{"taskRoles", role.Name}, "job/size",
				fmt.Sprintf("the placements of all tasks of the gang need %d KiB or more in each task's annotations, but the limit is %d KiB", size>>10, annotation.MaxSize>>10),
				"make the gang smaller, with fewer tasks or fewer processors per task, or let its tasks start one by one (extras: {gangAllocation: false})")
			return
		}
	}
}
