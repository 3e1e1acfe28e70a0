package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Parse reads and checks a configuration. It returns all findings in order of lines, including the problems from
// cell.Config.Validate. If a finding is an error, the configuration is invalid.
func Parse(name string, data []byte) (cell.Config, strictyaml.Findings) {
	return ParseWithin(name, data, 0)
}

// ParseWithin works like Parse with a limit for the number of cells. It checks the limit before it creates cells. 0 means the
// general limit.
func ParseWithin(name string, data []byte, cells int) (cell.Config, strictyaml.Findings) {
	var f fileFormat
	doc, findings := strictyaml.Decode(name, data, &f)
	if len(findings) > 0 {
		return cell.Config{}, findings
	}
	r := reader{doc: doc}
	if !doc.Has("physicalCluster") {
		r.add(strictyaml.Error, nil, "scheduler/no-hardware", "there is no physicalCluster", "write the hardware: physicalCluster with cellTypes and physicalCells")
		return cell.Config{}, r.findings
	}
	if !doc.Has("virtualClusters") {
		r.add(strictyaml.Warning, nil, "scheduler/no-virtual-cluster", "there are no virtualClusters, so that no job can run", "write at least one virtual cluster")
	}
	if len(f.Physical.Cells) == 0 {
		r.add(strictyaml.Warning, strictyaml.Path{"physicalCluster"}, "scheduler/no-hardware", "there are no physicalCells, so that no job can run", "write the nodes")
	}
	r.warnUnknown(reflect.ValueOf(f), nil)
	c := r.config(f.Physical, f.Virtual)
	c.ReserveGPUMachines = f.Reserve
	if n := c.Cells(); cells > 0 && n > cells {
		r.add(strictyaml.Error, strictyaml.Path{"physicalCluster"}, "scheduler/hardware", fmt.Sprintf("the cluster has more than %d cells", cells), "check the numbers of children")
		return c, r.findings
	}
	r.check(c)
	return c, r.findings
}

type reader struct {
	doc      *strictyaml.Document
	base     strictyaml.Path // the path at which the configuration begins in the document
	findings strictyaml.Findings
}

func (r *reader) add(s strictyaml.Severity, p strictyaml.Path, rule, message, remedy string) {
	p = r.base.With(p...)
	line, column, _ := r.doc.Position(p)
	r.findings = append(r.findings, strictyaml.Finding{File: r.doc.File, Line: line, Column: column, Field: p.String(),
		Rule: rule, Severity: s, Message: message, Remedy: remedy})
}

func (r *reader) config(p physicalCluster, vcs map[string]virtualCluster) cell.Config {
	var c cell.Config
	for _, name := range r.inOrder(p.Types) {
		t := p.Types[name]
		c.Types = append(c.Types, cell.Type{Name: name, Child: t.Child, Children: t.Children, Node: t.Node})
	}
	c.Processors = p.SKUTypes
	c.Physical = physical(p.Cells)
	c.VirtualClusters = virtual(vcs)
	return c
}

// inOrder returns the names of cell types in the order of the file.
func (r *reader) inOrder(types map[string]cellType) []string {
	rest := maps.Clone(types)
	names := make([]string, 0, len(types))
	for _, name := range r.doc.Keys(r.base.With("physicalCluster", "cellTypes")...) {
		if _, ok := rest[name]; ok {
			names = append(names, name)
			delete(rest, name)
		}
	}
	return append(names, slices.Sorted(maps.Keys(rest))...)
}

func physical(cells []physicalCell) []cell.Physical {
	if len(cells) == 0 {
		return nil
	}
	out := make([]cell.Physical, len(cells))
	for i, p := range cells {
		out[i] = cell.Physical{Type: p.Type, Address: p.Address, Pinned: p.Pinned, Children: physical(p.Children)}
	}
	return out
}

// virtual returns the virtual clusters, sorted by name.
func virtual(vcs map[string]virtualCluster) []cell.VirtualCluster {
	var out []cell.VirtualCluster
	for _, name := range slices.Sorted(maps.Keys(vcs)) {
		v := vcs[name]
		vc := cell.VirtualCluster{Name: name, Policy: v.Policy, Quota: cell.Quota{PerUser: v.Quota.PerUser, PerGroup: v.Quota.PerGroup, Users: v.Quota.Users, Groups: v.Quota.Groups}}
		for _, one := range v.Cells {
			vc.Cells = append(vc.Cells, cell.Virtual{Type: one.Type, Count: one.Number})
		}
		for _, one := range v.Pinned {
			vc.Pinned = append(vc.Pinned, one.ID)
		}
		out = append(out, vc)
	}
	return out
}

// check runs the checks of package cell. It adds warnings about valid but questionable settings.
func (r *reader) check(c cell.Config) {
	problems := c.Validate()
	for _, p := range problems {
		rule := "scheduler/hardware"
		if len(p.Path) > 0 && p.Path[0] == "virtualClusters" {
			rule = "scheduler/virtual-cluster"
		}
		r.add(strictyaml.Error, p.Path, rule, p.Message, p.Remedy)
	}
	if len(problems) == 0 {
		r.warnNoCells(c)
		r.warnUnusedTypes(c)
		r.warnHardware(c)
	}
	r.findings.Sort()
}

// warnNoCells warns about entries that give no cells to a virtual cluster. HiveD accepts such entries.
func (r *reader) warnNoCells(c cell.Config) {
	for _, vc := range c.VirtualClusters {
		for i, one := range vc.Cells {
			if one.Count == 0 {
				r.add(strictyaml.Warning, strictyaml.Path{"virtualClusters", vc.Name, "virtualCells", i, "cellNumber"}, "scheduler/no-cells",
					fmt.Sprintf("the virtual cluster %s owns no cell of the type %s", vc.Name, one.Type), "write how many of them it owns, or remove the entry")
			}
		}
	}
}

// warnUnusedTypes warns about types without physical cells. For example, a type is unused if its name is misspelled in its
// parent.
func (r *reader) warnUnusedTypes(c cell.Config) {
	used, types := map[string]bool{}, c.Hierarchy()
	for _, p := range c.Physical {
		if used[p.Type] {
			continue
		}
		levels, _ := types.Levels(p.Type) // types.Levels can't fail, because the configuration is valid
		for _, l := range levels {
			used[l.Type] = true
		}
	}
	for _, t := range c.Types {
		if !used[t.Name] {
			r.add(strictyaml.Warning, strictyaml.Path{"physicalCluster", "cellTypes", t.Name}, "scheduler/unused-type",
				fmt.Sprintf("no physical cell is or has a cell of type %q", t.Name), "remove it, or correct the childCellType that should name it")
		}
	}
}

// warnHardware warns about nodes without an address and about pinned cells without an owner.
func (r *reader) warnHardware(c cell.Config) {
	w := hardwareWalk{reader: r, node: map[string]bool{}, child: map[string]string{}, owned: map[string]bool{}}
	for _, t := range c.Types {
		w.node[t.Name], w.child[t.Name] = t.Node, t.Child
	}
	for _, vc := range c.VirtualClusters {
		for _, id := range vc.Pinned {
			w.owned[id] = true
		}
	}
	for i := range c.Physical {
		w.cell(&c.Physical[i], c.Physical[i].Type, strictyaml.Path{"physicalCluster", "physicalCells", i})
	}
}

type hardwareWalk struct {
	*reader
	node  map[string]bool
	child map[string]string
	owned map[string]bool
	named bool // whether the warning about nodes without a name was added
}

func (w *hardwareWalk) cell(p *cell.Physical, typeName string, path strictyaml.Path) {
	if p.Pinned != "" && !w.owned[p.Pinned] {
		w.add(strictyaml.Warning, path.With("pinnedCellId"), "scheduler/unused-pin",
			fmt.Sprintf("the pinned cell %q belongs to no virtual cluster", p.Pinned), "name it in pinnedCells of one, or remove the id")
	}
	if w.node[typeName] {
		if p.Address == "" && !w.named {
			w.named = true
			w.add(strictyaml.Warning, path.With("cellAddress"), "scheduler/node-name",
				"a node has no cellAddress, so its name is a number", "write the name that the node has in Kubernetes")
		}
	} else if len(p.Children) == 0 && !w.named && typeName != "" && w.child[typeName] != "" && w.aboveNode(typeName) {
		w.named = true
		w.add(strictyaml.Warning, path.With("cellChildren"), "scheduler/node-name",
			"the nodes of a cell are not listed, so their names are numbers", "list them in cellChildren, each with its cellAddress")
	}
	for i := range p.Children {
		w.cell(&p.Children[i], w.child[typeName], path.With("cellChildren", i))
	}
}

func (w *hardwareWalk) aboveNode(typeName string) bool {
	for t := w.child[typeName]; t != ""; t = w.child[t] {
		if w.node[t] {
			return true
		}
	}
	return false
}

// warnUnknown warns about unknown keys in v and its fields.
func (r *reader) warnUnknown(v reflect.Value, path strictyaml.Path) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			r.warnUnknown(v.Index(i), path.With(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			r.warnUnknown(v.MapIndex(k), path.With(k.String()))
		}
	case reflect.Struct:
		var known []string
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if name == "" {
				continue
			}
			known = append(known, name)
			r.warnUnknown(v.Field(i), path.With(name))
		}
		if rest := v.FieldByName("Rest"); rest.IsValid() {
			r.warnKeys(rest.Interface().(unknownKeys), known, path)
		}
	}
}

func (r *reader) warnKeys(rest unknownKeys, known []string, path strictyaml.Path) {
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		remedy := "the keys here are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
		if near := strictyaml.Nearest(key, known); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		r.add(strictyaml.Warning, path.With(key), "scheduler/unknown-key", fmt.Sprintf("there is no key %q here; it has no effect", key), remedy)
	}
}
