package layout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// SKUs groups machines with equal hardware. SKUs returns a map from SKU names to SKUs, and a map from the keys of facts to SKU names. The result
// doesn't depend on the order of the machines.
//
// Two machines are equal if their system, architecture, processors, GPUs, disks and RDMA devices are equal. The memory of equal machines may differ by 1 %, because
// the firmware of each machine reserves a different amount.
func SKUs(facts map[string]Facts) (map[string]SKU, map[string]string) {
	groups := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(facts)) {
		key := hardwareKey(facts[id])
		groups[key] = append(groups[key], id)
	}
	skus, assigned := map[string]SKU{}, map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		for _, ids := range splitByMemory(groups[key], facts) {
			name := freeName(skuName(facts[ids[0]]), skus)
			skus[name] = skuOf(ids, facts)
			for _, id := range ids {
				assigned[id] = name
			}
		}
	}
	return skus, assigned
}

// hardwareKey returns a key that is equal for machines whose hardware is equal apart from the memory.
func hardwareKey(f Facts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%s|%05d|%s", f.Arch, f.OS(), f.VCores, f.CPUModel)
	if g := f.GPU(); g != nil {
		fmt.Fprintf(&b, "|%d x %s", g.Count, g.Type)
	}
	for _, d := range sortedDisks(f) {
		fmt.Fprintf(&b, "|%s %s", d.Kind, diskSize(d.Bytes))
	}
	fmt.Fprintf(&b, "|%v", rdma(f))
	return b.String()
}

// splitByMemory sorts the machines by memory, largest first. splitByMemory starts a new group at a machine whose memory is much smaller than the
// memory of the group's first machine. The limit is 1 %, but at least 64 MiB.
func splitByMemory(ids []string, facts map[string]Facts) [][]string {
	slices.SortStableFunc(ids, func(a, b string) int {
		if c := cmp.Compare(facts[b].MemKiB, facts[a].MemKiB); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	var out [][]string
	var largest int64
	for _, id := range ids {
		mem := facts[id].MemKiB
		if len(out) == 0 || largest-mem > max(largest/100, 64<<10) {
			out, largest = append(out, nil), mem
		}
		out[len(out)-1] = append(out[len(out)-1], id)
	}
	return out
}

// skuOf returns the SKU of a group of machines. The SKU contains the smallest memory in the group. The SKU contains the driver only if all machines
// use the same driver.
func skuOf(ids []string, facts map[string]Facts) SKU {
	first := facts[ids[0]]
	least := first.MemKiB
	gpu := first.GPU()
	for _, id := range ids {
		f := facts[id]
		least = min(least, f.MemKiB)
		if gpu != nil && f.Driver != gpu.Driver {
			gpu.Driver = ""
		}
	}
	s := SKU{
		Mem: memQuantity(least), CPU: CPU{VCore: first.VCores, Model: first.CPUModel}, GPU: gpu,
		OS: first.OS(), Arch: first.Arch, RDMA: rdma(first), Discovered: true,
	}
	for _, d := range sortedDisks(first) {
		s.Disks = append(s.Disks, Disk{Name: d.Name, Size: diskSize(d.Bytes), Kind: d.Kind})
	}
	return s
}

func sortedDisks(f Facts) []BlockDevice {
	out := slices.Clone(f.Disks)
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func rdma(f Facts) []string {
	var out []string
	for _, p := range f.Infiniband {
		out = append(out, p.Name)
	}
	sort.Strings(out)
	return out
}

// memQuantity returns a Kubernetes quantity. Values of at least 8 GiB are rounded down to GiB, and smaller values to MiB.
func memQuantity(kib int64) string {
	if kib >= 8<<20 {
		return fmt.Sprintf("%dGi", kib>>20)
	}
	return fmt.Sprintf("%dMi", kib>>10)
}

func diskSize(bytes int64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%dGi", bytes>>30)
	}
	return fmt.Sprintf("%dMi", bytes>>20)
}

// skuName returns a name for a SKU from its hardware, such as 8x-a100-sxm4-80gb or cpu-64c-512g.
func skuName(f Facts) string {
	if g := f.GPU(); g != nil {
		model := word(g.Type, true)
		for _, brand := range []string{"nvidia-", "tesla-", "geforce-", "amd-"} {
			model = strings.TrimPrefix(model, brand)
		}
		if len(model) > 40 {
			model = strings.Trim(model[:40], "-.")
		}
		return fmt.Sprintf("%dx-%s", g.Count, model)
	}
	return fmt.Sprintf("cpu-%dc-%dg", f.VCores, fittedGiB(f.MemKiB))
}

// fittedGiB estimates the installed memory from the memory that the kernel reports, which is up to 6 % less. For example, 503 becomes 512, and 1007
// becomes 1024.
func fittedGiB(kib int64) int64 {
	gib := (kib + (1 << 20) - 1) >> 20
	step := int64(1)
	for step*2*16 <= gib {
		step *= 2
	}
	return max((gib+step-1)/step*step, 1)
}

func freeName(name string, taken map[string]SKU) string {
	if _, ok := taken[name]; !ok {
		return name
	}
	for i := 2; ; i++ {
		next := fmt.Sprintf("%s-%d", name, i)
		if _, ok := taken[next]; !ok {
			return next
		}
	}
}
