package cell

import (
	"strconv"
	"strings"
)

// Validate returns all problems of the configuration: unknown types, types that contain themselves, lists of children with a
// wrong length, duplicate addresses, mistakes in pinned cells, and virtual cells that exceed the physical cells of a level. New
// returns an error if there is a problem.
func (c Config) Validate() []Problem {
	v := validator{expander: newExpander(c), nodes: map[string]bool{}, devices: map[device]string{}, pinned: map[string]pin{}}
	v.checkTypes()
	cells := v.expand()
	for i := range cells {
		l, _ := v.Levels(cells[i].Type)
		w := walk{validator: &v, chain: cells[i].Type, line: l}
		w.cell(&cells[i], 0, []any{"physicalCluster", "physicalCells", v.tops[i]})
	}
	v.checkSiblings(cells, nil)
	v.checkVirtualClusters()
	v.checkAdmission(cells)
	return v.problems
}

// validator checks the cells from its expander.
type validator struct {
	*expander
	nodes   map[string]bool // the nodes by chain and name
	devices map[device]string
	pinned  map[string]pin
	claims  []claim
}

type device struct {
	node  string
	index int32
}

type pin struct {
	chain string
	level int
	owner string // the virtual cluster that owns it
}

// claim is a number of cells on a level of a chain that a virtual cluster claims.
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

// checkLoops reports each loop of types once, at its first type.
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

// depth returns the number of levels of a type. It counts at most one level more than the limit. It returns 0 for a type in a
// loop.
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

type walk struct {
	*validator
	chain string
	line  []Level
	node  string // the node that contains the current cell
	pin   string // the pin of a cell around the current cell
}

func (w walk) cell(e *Expanded, depth int, path []any) {
	if e.Pinned != "" {
		w.addPin(e, depth, path)
		w.pin = e.Pinned
	}
	if w.line[depth].Node {
		w.node = e.Address
		key := w.chain + "/" + e.Address
		if w.nodes[key] {
			w.fail(at(path, "cellAddress"), "list a node once; its devices may be divided between chains", "the node %q occurs twice in the chain %q", e.Address, w.chain)
			return
		}
		w.nodes[key] = true
	}
	if len(e.Children) == 0 {
		w.leaf(e, path)
		return
	}
	for i := range e.Children {
		w.cell(&e.Children[i], depth+1, append(path, "cellChildren", i))
	}
}

func (w walk) leaf(e *Expanded, path []any) {
	path = append(path, "cellAddress")
	index, err := strconv.ParseInt(e.Address, 10, 32)
	if err != nil || index < 0 || e.Address[0] == '+' {
		w.fail(path, "write the driver's number of the GPU, such as 0", "%q is not the index of a device", e.Address)
		return
	}
	d := device{w.node, int32(index)}
	if other, twice := w.devices[d]; twice {
		w.fail(path, "write another cellAddress", "device %d of the node %q occurs twice in the configuration, the first time as %s", index, w.node, other)
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
		w.fail(path, "pin the larger cell or the smaller one", "the pinned cell %q is inside the pinned cell %q", e.Pinned, w.pin)
		return
	}
	w.pinned[e.Pinned] = pin{chain: w.chain, level: depth}
}

// checkSiblings reports cells with the same full address. It skips leaves and nodes, because other checks compare devices and
// nodes.
func (v *validator) checkSiblings(cells []Expanded, path []any) {
	seen := make(map[string]bool, len(cells))
	for i := range cells {
		e, here := &cells[i], append(path, "cellChildren", i) //nolint:gocritic // siblings share the array; at copies what is kept
		key := e.Address
		if path == nil {
			here, key = []any{"physicalCluster", "physicalCells", v.tops[i]}, e.Type+"/"+key
		}
		if l, err := v.Levels(e.Type); seen[key] && err == nil && len(e.Children) > 0 && !l[0].Node {
			v.fail(at(here, "cellAddress"), "write another cellAddress", "another cell has the address %q", e.Full)
		}
		seen[key] = true
		if len(e.Children) > 0 && len(e.Children[0].Children) > 0 {
			v.checkSiblings(e.Children, here)
		}
	}
}
