package cell

import (
	"fmt"
	"slices"
	"strings"
)

// shape is the shape of a gang in the levels of one chain.
type shape struct {
	sets   []setShape
	starts []int // the first slot of each set
	root   *part
	// loose is root without its groups. It is nil if root has no groups, or if a group must be in one cell.
	loose *part
	pods  int
	total int // number of leaves of the whole gang
}

// setShape is a set of count equal pods. Each pod needs n leaves in whole cells of level unit.
type setShape struct{ count, n, unit int }

// part is a Group in levels and numbers of leaves.
type part struct {
	within int // the level of the cell that must contain the part; -1 means anywhere
	sets   []int
	kids   []*part
	leaves int
	unit   int // the unit of all its sets; -1 if they differ
}

func (p *part) flat() bool { return p.within < 0 && len(p.kids) == 0 }

// maxPods is the maximum number of pods in a gang, so that a request can't use up the memory.
const maxPods = 1 << 20

// shapeOf returns the shape of a request in a chain. It returns an error if the chain doesn't contain a cell type of the
// request.
func (t *tree) shapeOf(r *Request) (*shape, error) {
	s := &shape{}
	root, err := t.partOf(&r.Root, s, 0)
	if err != nil {
		return nil, err
	}
	s.root, s.total = root, root.leaves
	if len(root.kids) > 0 && len(s.sets) > 0 && !root.bound() {
		s.loose = &part{within: -1, leaves: root.leaves, unit: s.sets[0].unit}
		for i, set := range s.sets {
			s.loose.sets = append(s.loose.sets, i)
			if set.unit != s.loose.unit {
				s.loose.unit = -1
			}
		}
		s.order(s.loose.sets)
	}
	return s, nil
}

// bound reports whether the part, or a part inside, must be in one cell.
func (p *part) bound() bool { return p.within >= 0 || slices.ContainsFunc(p.kids, (*part).bound) }

// order sorts sets by pod size, largest first, because the last pods find only small gaps. Among equal sizes, pods that need
// whole cells come first, because fewer places suit them.
func (s *shape) order(sets []int) {
	slices.SortStableFunc(sets, func(a, b int) int {
		if by := s.sets[b].n - s.sets[a].n; by != 0 {
			return by
		}
		return s.sets[b].unit - s.sets[a].unit
	})
}

const maxDepth = 64

func (t *tree) partOf(g *Group, s *shape, depth int) (*part, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the pod groups are nested deeper than %d", maxDepth)
	}
	p := &part{within: -1}
	if g.Within != "" {
		if p.within = t.level(g.Within); p.within < 0 {
			return nil, fmt.Errorf("cell type %s is not one of %s", g.Within, strings.Join(t.names, ", "))
		}
	}
	for _, set := range g.Pods {
		unit := 0
		if set.CellType != "" {
			if unit = t.level(set.CellType); unit < 0 || unit > t.node {
				return nil, fmt.Errorf("cell type %s is not one of %s", set.CellType, strings.Join(t.names[:t.node+1], ", "))
			}
		}
		if set.Cells > 1<<20 || set.Count > maxPods-s.pods {
			return nil, fmt.Errorf("the gang has more than %d pods or cells", maxPods)
		}
		if len(p.sets) == 0 {
			p.unit = unit
		} else if p.unit != unit {
			p.unit = -1
		}
		p.sets = append(p.sets, len(s.sets))
		s.starts = append(s.starts, s.pods)
		one := setShape{set.Count, set.Cells * t.leaves[unit], unit}
		s.sets = append(s.sets, one)
		s.pods += one.count
		p.leaves += one.count * one.n
	}
	for i := range g.Children {
		kid, err := t.partOf(&g.Children[i], s, depth+1)
		if err != nil {
			return nil, err
		}
		p.kids = append(p.kids, kid)
		p.leaves += kid.leaves
	}
	s.order(p.sets)
	if len(p.kids) > 1 {
		slices.SortStableFunc(p.kids, func(a, b *part) int { return b.leaves - a.leaves })
	}
	return p, nil
}
