package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/plural"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/strictyaml"
)

// check compares what the job asks for with what is known about the cluster.
func (r *renderer) check() {
	r.checkUser()
	r.checkStorages()
	if !isLabel(r.job.VirtualCluster) {
		r.fail(strictyaml.Path{"defaults", "virtualCluster"}, "job/name", fmt.Sprintf("%q is no name of a virtual cluster", short(r.job.VirtualCluster)), "write letters, digits, - _ and ., 63 at most")
		return
	}
	r.countCells()
	r.makeGroups()
	vc, ok := r.Cluster.VirtualClusters[r.job.VirtualCluster]
	if r.Cluster.VirtualClusters != nil && !ok {
		r.fail(strictyaml.Path{"defaults", "virtualCluster"}, "job/unknown-virtual-cluster", fmt.Sprintf("the cluster has no virtual cluster %q", r.job.VirtualCluster),
			choose(r.job.VirtualCluster, "write one of these into defaults.virtualCluster: ", slices.Sorted(maps.Keys(r.Cluster.VirtualClusters)), "ask the administrator which there are"))
	}
	for i := range r.job.Roles {
		r.checkHardware(i, vc, ok)
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
			Message: fmt.Sprintf("%q is no name of a %s that Kubernetes can keep", short(one.name), one.what),
			Remedy:  fmt.Sprintf("give another with --%s: letters, digits, - _ and ., 63 at most", one.what)})
	}
}

// checkHardware checks what one role asks for against what there is.
func (r *renderer) checkHardware(i int, vc VirtualCluster, known bool) {
	role := &r.job.Roles[i]
	asks := strictyaml.Path{"extras", "hivedScheduler", "taskRoles", role.Name}
	resources := strictyaml.Path{"taskRoles", role.Name, "resourcePerInstance"}
	if r.Cluster.SKUs == nil {
		return
	}
	if len(r.Cluster.SKUs) == 0 {
		if role.GPU > 0 {
			r.fail(resources.With("gpu"), "job/no-gpu", "the cluster has no GPUs", "write gpu: 0")
		}
		return
	}
	all := slices.Sorted(maps.Keys(r.Cluster.SKUs))
	_, exists := r.Cluster.SKUs[role.SKU]
	switch {
	case role.SKU != "" && !exists:
		r.fail(asks.With("skuType"), "job/unknown-sku", fmt.Sprintf("the cluster has no GPUs of the type %q", role.SKU), choose(role.SKU, "the types are ", all, ""))
		return
	case role.SKU != "" && known && r.guaranteed() && vc.Cells[role.SKU] == 0:
		r.fail(asks.With("skuType"), "job/unknown-sku", fmt.Sprintf("the virtual cluster %s owns no %s", r.job.VirtualCluster, role.SKU), ownRemedy(vc))
		return
	case role.PinnedCell != "" && known && !slices.Contains(vc.Pinned, role.PinnedCell):
		r.fail(asks.With("pinnedCellId"), "job/unknown-pinned-cell", fmt.Sprintf("the virtual cluster %s has no pinned cell %q", r.job.VirtualCluster, role.PinnedCell),
			choose(role.PinnedCell, "its pinned cells are ", vc.Pinned, "remove pinnedCellId"))
		return
	}
	if unit := r.unit(role); unit.PerNode > 0 && r.cells[i] > unit.PerNode {
		what := fmt.Sprintf("a task of %s needs the machine's share of %d GPUs, and no machine has more than %d", role.Name, r.cells[i], unit.PerNode)
		if unit.MilliCPU > 0 && unit.MemoryMB > 0 {
			what += fmt.Sprintf(" (each with %g processors and %d MB)", float64(unit.MilliCPU)/1000, unit.MemoryMB)
		}
		r.fail(resources, "job/too-large", what, "ask for less per task, and for more instances")
	}
}

func ownRemedy(vc VirtualCluster) string {
	own := slices.Sorted(maps.Keys(vc.Cells))
	if len(own) == 0 {
		return "choose another virtual cluster in defaults.virtualCluster"
	}
	return "it owns " + strings.Join(own, ", ") + "; choose another virtual cluster, or jobPriorityClass: oppo, which may use the GPUs of others"
}

// checkQuota refuses what could never start: more than the virtual cluster owns, or than one user may
// have at a time.
func (r *renderer) checkQuota(vc VirtualCluster) {
	if !r.guaranteed() || !r.useCells() {
		return
	}
	owned, wanted := 0, 0
	bySKU := map[string]int{}
	for _, n := range vc.Cells {
		owned += n
	}
	for i, role := range r.job.Roles {
		tasks := role.Instances
		if !r.job.Extras.Gang {
			tasks = 1 // they need not run at the same time
			wanted = max(wanted, r.cells[i])
		} else {
			wanted += tasks * r.cells[i]
		}
		if role.SKU != "" {
			bySKU[role.SKU] += tasks * r.cells[i]
		}
	}
	const remedy = "ask for less, choose another virtual cluster in defaults.virtualCluster, or use jobPriorityClass: oppo"
	at := strictyaml.Path{"taskRoles"}
	if wanted > owned {
		r.fail(at, "job/quota", fmt.Sprintf("the job needs %s at a time, and the virtual cluster %s owns %d", gpus(wanted), r.job.VirtualCluster, owned), remedy)
		return
	}
	for _, sku := range slices.Sorted(maps.Keys(bySKU)) {
		if bySKU[sku] > vc.Cells[sku] && r.job.Extras.Gang {
			r.fail(at, "job/quota", fmt.Sprintf("the job needs %s of the type %s at a time, and the virtual cluster %s owns %d", gpus(bySKU[sku]), sku, r.job.VirtualCluster, vc.Cells[sku]), remedy)
			return
		}
	}
	if limit := quota(vc.Users, r.User, vc.PerUser); limit > 0 && wanted > limit {
		r.fail(at, "job/quota", fmt.Sprintf("the job needs %s at a time, and user %s may have %d in the virtual cluster %s", gpus(wanted), r.User, limit, r.job.VirtualCluster), remedy)
	} else if limit := quota(vc.Groups, r.Group, vc.PerGroup); r.Group != "" && limit > 0 && wanted > limit {
		r.fail(at, "job/quota", fmt.Sprintf("the job needs %s at a time, and group %s may have %d in the virtual cluster %s", gpus(wanted), r.Group, limit, r.job.VirtualCluster), remedy)
	}
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

// checkRequests asks the scheduler's own reader, so that it accepts what is written here.
func (r *renderer) checkRequests() {
	for i, role := range r.job.Roles {
		if _, err := annotation.ParseRequest(r.request(i), r.Namespace+"/"+r.object); err != nil {
			r.fail(strictyaml.Path{"taskRoles", role.Name}, "job/cells", err.Error(), "")
		}
	}
}
