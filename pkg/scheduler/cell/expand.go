package cell

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCells is the maximum number of cells in a configuration, of all levels. No real cluster is that large. Without the limit,
// a mistyped number could use up all memory.
const maxCells = 4 << 20

// Expanded is a physical cell with all optional fields set.
type Expanded struct {
	Type string
	// Address is the last component of the cell's address. Full is the whole address: the components of all ancestors and of
	// the cell, joined with "/".
	Address, Full string
	Pinned        string
	Children      []Expanded
}

// Expand returns the physical cells with their types, addresses and children. It adds missing values by HiveD's rules. A child
// has the child type of its parent's type. The number of a top cell is its position in the list. Child i of a cell with number
// p gets the number p*children+i. Below a node, numbers start at 0 again, so GPUs have the numbers 0 to n-1. Expand returns the
// first error that Validate reports about types or physical cells.
func (c Config) Expand() ([]Expanded, error) {
	x := newExpander(c)
	cells := x.expand()
	if len(x.problems) > 0 {
		return nil, x.problems[0]
	}
	return cells, nil
}

// Cells counts the cells of all levels without creating them. A caller can reject a too large configuration before it uses
// memory. Cells ignores invalid cells.
func (c Config) Cells() int {
	x, total := newExpander(c), 0
	for i := range c.Physical {
		if l, err := x.Levels(c.Physical[i].Type); err == nil {
			total = min(total+count(l), maxCells+1)
		}
	}
	return total
}

// Error returns the position, the message, and the remedy.
func (p Problem) Error() string {
	var b strings.Builder
	for i, step := range p.Path {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, s)
		}
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

type expander struct {
	*Hierarchy
	config   Config
	broken   map[string]bool // top types with a problem that is already reported
	tops     []int           // by cell that expand returned: its index in Physical
	cells    int
	problems []Problem
}

func newExpander(c Config) *expander {
	return &expander{Hierarchy: c.Hierarchy(), config: c, broken: map[string]bool{}}
}

// fail records a problem. It copies the path, because the paths of siblings share an array.
func (x *expander) fail(path []any, remedy, format string, args ...any) {
	x.problems = append(x.problems, Problem{Path: slices.Clone(path), Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// at appends steps to a path. It never changes the array of the given path.
func at(path []any, steps ...any) []any {
	out := make([]any, 0, len(path)+len(steps))
	return append(append(out, path...), steps...)
}

// Results of nodeAt if the number of node levels isn't 1.
const (
	noNode    = -1
	manyNodes = -2
)

// nodeAt returns the index of the node level, or noNode or manyNodes.
func nodeAt(l []Level) int {
	found := noNode
	for i := range l {
		if l[i].Node && found >= 0 {
			return manyNodes
		}
		if l[i].Node {
			found = i
		}
	}
	return found
}

// count returns the number of cells in one cell of the first level, including the cell itself. It stops counting above the
// limit.
func count(l []Level) int {
	total, width := 0, 1
	for i := range l {
		total += width
		if total > maxCells || l[i].Children > maxCells {
			return maxCells + 1
		}
		width = min(width*max(l[i].Children, 1), maxCells+1)
	}
	return total
}

// expand returns the valid cells. It adds the mistakes of invalid cells to problems.
func (x *expander) expand() []Expanded {
	out := make([]Expanded, 0, len(x.config.Physical))
	for i := range x.config.Physical {
		p, path := &x.config.Physical[i], []any{"physicalCluster", "physicalCells", i}
		l := x.top(p, path)
		if l == nil {
			continue
		}
		x.cells += count(l)
		if x.cells > maxCells {
			x.fail(path, "check the numbers of children", "the cluster has more than %d cells with this one", maxCells)
			for j := range x.config.Physical {
				x.broken[x.config.Physical[j].Type] = true
			}
			return out
		}
		before := len(x.problems)
		cell := x.cell(p, l, "", i, path)
		if len(x.problems) > before {
			x.broken[p.Type] = true
			continue
		}
		out, x.tops = append(out, cell), append(x.tops, i)
	}
	return out
}

// top returns the levels of a top cell, or nil if the cell can't be at the top of a chain.
func (x *expander) top(p *Physical, path []any) []Level {
	path = at(path, "cellType")
	if p.Type == "" {
		x.fail(path, "write one of "+x.known(), "a top-level cell has no type")
		return nil
	}
	l, err := x.Levels(p.Type)
	if errors.Is(err, errUnknownType) {
		x.broken[p.Type] = true
		x.fail(path, "the cell types are "+x.known(), "there is no cell type %q", p.Type)
		return nil
	}
	if x.broken[p.Type] && (err != nil || nodeAt(l) < 0) {
		return nil // already reported
	}
	switch {
	case err != nil:
		x.broken[p.Type] = true
		x.fail(path, "correct the cell types first", "the type %q can't be used, because it, or a type below it, is malformed", p.Type)
		return nil
	}
	n := nodeAt(l)
	if n < 0 {
		x.broken[p.Type] = true
	}
	switch n {
	case noNode:
		if above := x.nodeAbove(p.Type); above != "" {
			x.fail(path, "use "+above+", or a type above it", "a top-level cell is a node or above it, and %q is below the node", p.Type)
		} else {
			x.fail(path, "write isNodeLevel: true in the type that is a Kubernetes node", "no level of %q is a node", p.Type)
		}
		return nil
	case manyNodes:
		x.fail(path, "keep isNodeLevel: true in one type", "several levels of %q are marked as the node", p.Type)
		return nil
	}
	return l
}

// nodeAbove returns a node type that contains a type.
func (x *expander) nodeAbove(name string) string {
	for _, t := range x.config.Types {
		if !t.Node {
			continue
		}
		l, err := x.Levels(t.Name)
		for i := range l {
			if err == nil && l[i].Type == name {
				return t.Name
			}
		}
	}
	return ""
}

// cell expands p, whose levels are l. number is the default address.
func (x *expander) cell(p *Physical, l []Level, parent string, number int, path []any) Expanded {
	e := Expanded{Type: l[0].Type, Address: p.Address, Pinned: p.Pinned}
	if p.Type != "" && p.Type != e.Type {
		x.fail(at(path, "cellType"), "write "+e.Type+", or leave it out", "the cell is of type %q, and its parent holds cells of type %q", p.Type, e.Type)
	}
	if e.Address == "" {
		e.Address = strconv.Itoa(number)
	}
	if strings.ContainsFunc(e.Address, func(r rune) bool { return r <= ' ' || r == '/' }) {
		x.fail(at(path, "cellAddress"), "write the name of the node, or the index of the device, alone", "the address %q has a slash or a blank", e.Address)
	}
	e.Full = e.Address
	if parent != "" {
		e.Full = parent + "/" + e.Address
	}
	n := l[0].Children
	if len(p.Children) > 0 && len(p.Children) != n {
		remedy := "list all of them, or none"
		if n == 0 {
			remedy = "remove cellChildren"
		}
		x.fail(at(path, "cellChildren"), remedy, "%d children are listed, but a cell of type %q has %d", len(p.Children), e.Type, n)
		return e
	}
	if n == 0 {
		return e
	}
	if l[0].Node {
		number = 0
	}
	e.Children = make([]Expanded, n)
	var none Physical
	for i := range e.Children {
		child, childPath := &none, path
		if len(p.Children) > 0 {
			child, childPath = &p.Children[i], append(path, "cellChildren", i) //nolint:gocritic // siblings share the array; at copies what is kept
		}
		e.Children[i] = x.cell(child, l[1:], e.Full, number*n+i, childPath)
	}
	return e
}

// known lists the first few types for a remedy, in the order of the configuration.
func (x *expander) known() string {
	const shown = 20
	var names []string
	for _, t := range x.config.Types {
		if len(names) == shown {
			names = append(names, "…")
			break
		}
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return "none: write physicalCluster.cellTypes"
	}
	return strings.Join(names, ", ")
}
