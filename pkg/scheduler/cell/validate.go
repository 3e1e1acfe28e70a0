package cell

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Validate returns every problem of the configuration: unknown types, types that contain
// themselves, child lists of a wrong length, duplicate addresses, pinned cells, virtual cells that
// exceed the physical ones at any level. New fails if there is one.
func (c Config) Validate() []Problem {
	v := validator{expander: newExpander(c), nodes: map[string]bool{}, devices: map[device]string{}, pinned: map[string]pin{}}
	v.checkTypes()
	cells := v.expand()
	for i := range cells {
		l, _ := v.line(cells[i].Type)
		w := walk{validator: &v, chain: cells[i].Type, line: l}
		w.cell(&cells[i], 0, []any{"physicalCluster", "physicalCells", v.tops[i]})
	}
	v.checkSiblings(cells, nil)
	v.checkVirtualClusters()
	v.checkAdmission(cells)
	return v.problems
}

// validator looks at what expander returns.
type validator struct {
	*expander
	nodes   map[string]bool // by chain and name
	devices map[device]string
	pinned  map[string]pin
	claims  []claim
}

// device is a GPU of a node.
type device struct {
	node  string
	index int32
}

// pin is a physical cell with a pinned id.
type pin struct {
	chain string
	level int
	owner string // a virtual cluster
}

// claim is what a virtual cluster wants of a level of a chain.
type claim struct {
	vc, chain string
	level     int
	count     int
	path      []any
}

func (v *validator) checkTypes() {
	seen := make(map[string]bool, len(v.config.Types))
	for _, t := range v.config.Types {
		path := []any{"physicalCluster", "cellTypes", t.Name}
		switch {
		case t.Name == "":
			v.fail(path, "give it a name", "a cell type has no name")
		case seen[t.Name]:
			v.fail(path, "keep one of the two", "there are two cell types %q", t.Name)
		}
		seen[t.Name] = true
		if t.Child == "" {
			v.fail(at(path, "childCellType"), "write the type of the cells in it; a name that is not defined is a GPU model", "the type of its children is missing")
		}
		if t.Children < 1 {
			v.fail(at(path, "childCellNumber"), "write how many children each cell has", "the number of children is %d", t.Children)
		}
	}
	v.checkLoops()
}

// checkLoops reports each loop of types once, at the type that stands first.
func (v *validator) checkLoops() {
	const open, done = 1, 2
	state := make(map[string]int, len(v.types))
	for _, t := range v.config.Types {
		var trail []string
		next := t.Name
		for state[next] == 0 {
			inner, ok := v.types[next]
			if !ok {
				break
			}
			state[next] = open
			trail = append(trail, next)
			next = inner.Child
		}
		if state[next] == open {
			i := 0
			for trail[i] != next {
				i++
			}
			loop := strings.Join(append(trail[i:len(trail):len(trail)], next), ", ")
			v.fail([]any{"physicalCluster", "cellTypes", next, "childCellType"}, "let one of them have a GPU model as its child", "the type contains itself: %s", loop)
		}
		for _, name := range trail {
			state[name] = done
		}
	}
	for _, t := range v.config.Types {
		if depth := v.depth(t.Name); depth == maxLevels+1 {
			v.fail([]any{"physicalCluster", "cellTypes", t.Name}, "use fewer levels", "the type has more than %d levels", maxLevels)
			return
		}
	}
}

// depth counts the levels of a type up to the first beyond the limit; a loop has none.
func (v *validator) depth(name string) int {
	n, seen := 0, map[string]bool{}
	for n <= maxLevels && !seen[name] {
		seen[name] = true
		n++
		t, inner := v.types[name]
		if !inner {
			return n
		}
		name = t.Child
	}
	if seen[name] {
		return 0
	}
	return n
}

// walk checks the cells of one top cell.
type walk struct {
	*validator
	chain string
	line  []level
	node  string // of the cell that is being looked at
	pin   string // of the cell around it
}

func (w walk) cell(e *Expanded, depth int, path []any) {
	if e.Pinned != "" {
		w.addPin(e, depth, path)
		w.pin = e.Pinned
	}
	if w.line[depth].node {
		w.node = e.Address
		key := w.chain + "/" + e.Address
		if w.nodes[key] {
			w.fail(at(path, "cellAddress"), "list a node once; its devices may be divided between chains", "the node %q is twice in the chain %q", e.Address, w.chain)
			return
		}
		w.nodes[key] = true
	}
	if len(e.Children) == 0 {
		w.leaf(e, path)
		return
	}
	for i := range e.Children {
		w.cell(&e.Children[i], depth+1, at(path, "cellChildren", i))
	}
}

func (w walk) leaf(e *Expanded, path []any) {
	path = at(path, "cellAddress")
	index, err := strconv.ParseInt(e.Address, 10, 32)
	if err != nil || index < 0 || e.Address[0] == '+' {
		w.fail(path, "write the number by which the driver knows the GPU, such as 0", "%q is not the index of a device", e.Address)
		return
	}
	d := device{w.node, int32(index)}
	if other, twice := w.devices[d]; twice {
		w.fail(path, "write another cellAddress", "device %d of the node %q is twice in the configuration, the first time as %s", index, w.node, other)
		return
	}
	w.devices[d] = e.Full
}

func (w walk) addPin(e *Expanded, depth int, path []any) {
	path = at(path, "pinnedCellId")
	if _, twice := w.pinned[e.Pinned]; twice {
		w.fail(path, "write another id", "there are two pinned cells %q", e.Pinned)
		return
	}
	if w.pin != "" {
		w.fail(path, "pin the larger cell or the smaller one", "the pinned cell %q lies in the pinned cell %q", e.Pinned, w.pin)
		return
	}
	w.pinned[e.Pinned] = pin{chain: w.chain, level: depth}
}

// checkSiblings reports cells that have the same full address. Leaves are compared as devices, and
// nodes as nodes.
func (v *validator) checkSiblings(cells []Expanded, path []any) {
	seen := make(map[string]bool, len(cells))
	for i := range cells {
		e, here := &cells[i], at(path, "cellChildren", i)
		key := e.Address
		if path == nil {
			here, key = []any{"physicalCluster", "physicalCells", v.tops[i]}, e.Type+"/"+key
		}
		if l, err := v.line(e.Type); seen[key] && err == nil && len(e.Children) > 0 && !l[0].node {
			v.fail(at(here, "cellAddress"), "write another cellAddress", "another cell has the address %q", e.Full)
		}
		seen[key] = true
		if len(e.Children) > 0 && len(e.Children[0].Children) > 0 {
			v.checkSiblings(e.Children, here)
		}
	}
}

func (v *validator) checkVirtualClusters() {
	seen := make(map[string]bool, len(v.config.VirtualClusters))
	for i := range v.config.VirtualClusters {
		vc := &v.config.VirtualClusters[i]
		path := []any{"virtualClusters", vc.Name}
		switch {
		case strings.TrimSpace(vc.Name) == "" || strings.ContainsRune(vc.Name, '/'):
			v.fail(path, "write a name without slashes", "%q is not a name for a virtual cluster", vc.Name)
		case seen[vc.Name]:
			v.fail(path, "keep one of the two", "there are two virtual clusters %q", vc.Name)
		}
		seen[vc.Name] = true
		for j, cell := range vc.Cells {
			v.virtual(vc.Name, cell, at(path, "virtualCells", j))
		}
		for j, id := range vc.Pinned {
			v.claimPin(vc.Name, id, at(path, "pinnedCells", j, "pinnedCellId"))
		}
		v.checkQuota(vc.Quota, at(path, "quota"))
	}
}

// virtual checks one entry of virtualCells and notes what it claims.
func (v *validator) virtual(vc string, cell Virtual, path []any) {
	if cell.Count < 1 {
		v.fail(at(path, "cellNumber"), "write how many of them the virtual cluster owns, or remove the entry", "the number of cells is %d", cell.Count)
	}
	typePath := at(path, "cellType")
	parts := strings.Split(cell.Type, ".")
	chain := parts[0]
	if v.broken[chain] {
		return // reported where the hardware is
	}
	if !v.isChain(chain) {
		remedy := "begin with the type of a top-level cell: " + v.chains()
		if cell.Type == "" {
			v.fail(typePath, remedy, "the type of the cells is missing")
		} else {
			v.fail(typePath, remedy, "there is no top-level cell of type %q", chain)
		}
		return
	}
	l, _ := v.line(chain)
	level := 0
	for _, name := range parts[1:] {
		next := level + 1
		for next < len(l) && l[next].name != name {
			next++
		}
		if next == len(l) {
			v.fail(typePath, "the types below it are "+names(l[level+1:]), "%q has no type %q in it", l[level].name, name)
			return
		}
		level = next
	}
	if cell.Count > 0 {
		v.claims = append(v.claims, claim{vc: vc, chain: chain, level: level, count: min(cell.Count, maxCells+1), path: at(path, "cellNumber")})
	}
}

func names(l []level) string {
	out := make([]string, len(l))
	for i := range l {
		out[i] = l[i].name
	}
	if len(out) == 0 {
		return "none: it is a GPU"
	}
	return strings.Join(out, ", ")
}

func (v *validator) isChain(name string) bool {
	for i := range v.config.Physical {
		if v.config.Physical[i].Type == name {
			return true
		}
	}
	return false
}

// chains lists the types of the top cells, in their order.
func (v *validator) chains() string {
	var out []string
	seen := map[string]bool{}
	for i := range v.config.Physical {
		if t := v.config.Physical[i].Type; t != "" && !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return "there is none yet"
	}
	return strings.Join(out, ", ")
}

func (v *validator) claimPin(vc, id string, path []any) {
	p, ok := v.pinned[id]
	switch {
	case !ok && len(v.broken) > 0:
		// It may lie in a cell that is reported already.
	case !ok:
		v.fail(path, "write it as pinnedCellId of a physical cell", "there is no pinned cell %q", id)
	case p.owner != "":
		v.fail(path, "give it to one of them", "the pinned cell %q belongs to the virtual cluster %q already", id, p.owner)
	default:
		p.owner = vc
		v.pinned[id] = p
	}
}

func (v *validator) checkQuota(q Quota, path []any) {
	one := func(n int, steps ...any) {
		if n < 0 {
			v.fail(at(path, steps...), "write a number of GPUs; 0 is no limit", "the limit is %d", n)
		}
	}
	one(q.PerUser, "perUser")
	one(q.PerGroup, "perGroup")
	for _, list := range []struct {
		key    string
		limits map[string]int
	}{{"users", q.Users}, {"groups", q.Groups}} {
		keys := make([]string, 0, len(list.limits))
		for k := range list.limits {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			one(list.limits[k], list.key, k)
			if k == "" {
				v.fail(at(path, list.key), "write whose limit it is", "a limit has no name")
			}
		}
	}
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 cell of type " + what
	}
	return fmt.Sprintf("%d cells of type %s", n, what)
}
