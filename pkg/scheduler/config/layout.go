package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// DefaultVirtualCluster is the virtual cluster that owns all cells if the configuration defines no virtual clusters.
const DefaultVirtualCluster = "default"

// ProcessorType is the leaf type of machines without GPUs. Such a leaf is called a CPU cell. It is one processor with its share
// of the memory.
const ProcessorType = "CPU"

// systemProcessors is the number of processors that are reserved for system programs on a machine without GPUs.
// masterProcessors is the number of additional reserved processors on a master.
const (
	systemProcessors = 1
	masterProcessors = 2
)

// rackLabels returns the labels for the rack of a machine, in order of preference.
func rackLabels() []string { return []string{"rack", "topology.kubernetes.io/rack"} }

// hardware returns the physical part of the configuration for a layout. Each SKU becomes a cell type SKU-NODE. The leaves of a
// machine are its GPUs, whose type is named after the GPU model. On machines without GPUs, the leaves are processors of
// ProcessorType. Machines with a rack label are in cells of the type SKU-RACK-n, where n is the number of machines in the rack.
// All cells of a type have the same number of children.
//
// hardware omits machines that are only masters. It also omits machines without GPUs that aren't workers, or whose processors
// the control plane uses. A machine with GPUs for ordinary pods is a separate cell outside its rack. The cell's type is
// SKU-NODE-n, where n is the number of the machine's other GPUs.
//
// A layout doesn't describe the connections between GPUs, so the GPUs of a machine form one level. If GPUs are split, each GPU is
// a cell of the type SKU-GPU. The leaves are its parts or instances. Their type is named after the model, and after the number of
// parts or the profile of the instances.
func hardware(l layout.Layout) cell.Config {
	var c cell.Config
	for _, sku := range slices.Sorted(maps.Keys(l.MachineSKU)) {
		leaf, leaves := leavesOf(l, sku)
		racks, loose := machinesOf(l, sku)
		partial := partialNodes(l, sku)
		if leaves < 1 || len(racks) == 0 && len(loose) == 0 && len(partial) == 0 {
			continue
		}
		if leaf == ProcessorType && len(c.Processors) == 0 {
			c.Processors = []string{ProcessorType}
		}
		node := typeName(sku) + "-NODE"
		if len(racks) > 0 || len(loose) > 0 {
			child, children := leaf, leaves
			if parts := partsOf(l, sku); parts > 1 {
				child, children = typeName(sku)+"-GPU", leaves/parts
				c.Types = append(c.Types, cell.Type{Name: child, Child: leaf, Children: parts})
			}
			c.Types = append(c.Types, cell.Type{Name: node, Child: child, Children: children, Node: true})
		}
		var racksOf []cell.Physical
		sizes := map[int]bool{}
		for _, rack := range racks {
			name := fmt.Sprintf("%s-RACK-%d", typeName(sku), len(rack.nodes))
			if !sizes[len(rack.nodes)] {
				sizes[len(rack.nodes)] = true
				c.Types = append(c.Types, cell.Type{Name: name, Child: node, Children: len(rack.nodes)})
			}
			racksOf = append(racksOf, cell.Physical{Type: name, Address: address(rack.name), Children: nodes("", rack.nodes)})
		}
		c.Physical = append(append(c.Physical, racksOf...), nodes(node, loose)...)
		for _, p := range partial {
			if n := len(p.Children); !slices.ContainsFunc(c.Types, func(t cell.Type) bool { return t.Name == p.Type }) {
				c.Types = append(c.Types, cell.Type{Name: p.Type, Child: leaf, Children: n, Node: true})
			}
			c.Physical = append(c.Physical, p)
		}
	}
	return c
}

// partialNodes returns the cells for machines of a SKU that give some of their GPUs to ordinary pods. If a machine gives all its GPUs to
// ordinary pods, it has no cell.
func partialNodes(l layout.Layout, sku string) (out []cell.Physical) {
	for _, m := range l.MachineList {
		jobs := l.GPUsForJobs(m)
		if m.SKU != sku || len(m.GPUsForPods) == 0 || len(jobs) == 0 || !hasCells(m) {
			continue
		}
		p := cell.Physical{Type: fmt.Sprintf("%s-NODE-%d", typeName(sku), len(jobs)), Address: m.Hostname}
		for _, index := range jobs {
			p.Children = append(p.Children, cell.Physical{Address: strconv.Itoa(index)})
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b cell.Physical) int { return strings.Compare(a.Address, b.Address) })
	return out
}

// hasCells reports whether jobs may run on a machine. It ignores the GPUs and processors.
func hasCells(m layout.Machine) bool {
	return m.Hostname != "" && (!m.HasRole(layout.RoleMaster) || len(m.Roles) != 1)
}

// leavesOf returns the type and number of leaves per machine of a SKU. The leaves are GPUs. Without GPUs, the leaves are the
// processors that every machine of the SKU can give to jobs.
func leavesOf(l layout.Layout, sku string) (leaf string, n int) {
	s := l.MachineSKU[sku]
	if hasGPUs(s) {
		if s.GPU.MIG != "" {
			return typeName(s.GPU.Type) + api.MIGSuffix(s.GPU.MIG), s.GPU.Leaves()
		}
		if n := s.GPU.Shares(); n > 1 {
			return typeName(s.GPU.Type) + api.PartsSuffix + strconv.Itoa(n), s.GPU.Leaves()
		}
		return typeName(s.GPU.Type), s.GPU.Count
	}
	taken := systemProcessors
	for _, m := range l.MachineList {
		if m.SKU == sku && isBoth(m) && !isFull(l, m) {
			taken = systemProcessors + masterProcessors
		}
	}
	if s.CPU.VCore < 1 {
		return ProcessorType, 0
	}
	return ProcessorType, max(1, s.CPU.VCore-taken)
}

// partsOf returns the number of parts per GPU of a SKU.
func partsOf(l layout.Layout, sku string) int {
	if s := l.MachineSKU[sku]; hasGPUs(s) {
		return s.GPU.Shares()
	}
	return 1
}

func isBoth(m layout.Machine) bool {
	return m.HasRole(layout.RoleMaster) && m.HasRole(layout.RoleWorker)
}

// isFull reports whether the control plane uses all processors of a machine without GPUs. No pod would fit on a cell of such a
// machine.
func isFull(l layout.Layout, m layout.Machine) bool {
	s := l.MachineSKU[m.SKU]
	return !hasGPUs(s) && isBoth(m) && s.CPU.VCore <= systemProcessors+masterProcessors
}

func hasGPUs(s layout.SKU) bool { return s.GPU != nil && s.GPU.Count > 0 }

func nodes(typeName string, names []string) []cell.Physical {
	out := make([]cell.Physical, len(names))
	for i, name := range names {
		out[i] = cell.Physical{Type: typeName, Address: name}
	}
	return out
}

// rack holds the machines of one SKU in one rack.
type rack struct {
	name  string
	nodes []string
}

// machinesOf returns the machines of a SKU that form whole cells: racks sorted by name, and machines without a rack. Machines
// are sorted by name, so the order in layout.yaml has no effect.
func machinesOf(l layout.Layout, sku string) (racks []rack, loose []string) {
	byName := map[string][]string{}
	for _, m := range l.MachineList {
		if m.SKU != sku || !hasCells(m) || len(m.GPUsForPods) > 0 {
			continue
		}
		if !hasGPUs(l.MachineSKU[sku]) && !m.HasRole(layout.RoleWorker) || isFull(l, m) {
			continue // machines with other roles provide GPUs, but not processors
		}
		if name := rackOf(m); name != "" {
			byName[name] = append(byName[name], m.Hostname)
		} else {
			loose = append(loose, m.Hostname)
		}
	}
	slices.Sort(loose)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		slices.Sort(byName[name])
		racks = append(racks, rack{name, byName[name]})
	}
	return racks, loose
}

func rackOf(m layout.Machine) string {
	for _, key := range rackLabels() {
		if name := m.Labels[key]; name != "" {
			return name
		}
	}
	return ""
}

// typeName replaces the characters that aren't valid in a cell type.
func typeName(s string) string { return strings.NewReplacer(".", "-", " ", "-", "/", "-").Replace(s) }

// address replaces the characters that aren't valid in a cell address.
func address(s string) string { return strings.NewReplacer("/", "-", " ", "-").Replace(s) }

// ownEverything returns a virtual cluster that owns all cells. It is used if the configuration defines no virtual clusters.
func ownEverything(c cell.Config) []cell.VirtualCluster {
	vc := cell.VirtualCluster{Name: DefaultVirtualCluster}
	at := map[string]int{}
	for _, p := range c.Physical {
		i, ok := at[p.Type]
		if !ok {
			i = len(vc.Cells)
			at[p.Type] = i
			vc.Cells = append(vc.Cells, cell.Virtual{Type: p.Type})
		}
		vc.Cells[i].Count++
	}
	return []cell.VirtualCluster{vc}
}
