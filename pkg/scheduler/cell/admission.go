package cell

import (
	"fmt"
	"sort"
	"strings"
)

// checkAdmission compares the cells that the virtual clusters own with the existing cells. It checks each chain from the top
// level down, and splits the remaining cells of a level into cells of the next level.
//
// If a virtual cluster owns a pinned cell, the cells around the pinned cell can't be allocated as a whole. The cells beside the
// pinned cell can be allocated. HiveD counts such a cell as whole, and detects the error only when a job needs the cell.
func (v *validator) checkAdmission(cells []Expanded) {
	done := map[string]bool{}
	for i := range cells {
		chain := cells[i].Type
		if done[chain] || v.broken[chain] {
			continue
		}
		done[chain] = true
		v.admitChain(chain, cells)
	}
}

func (v *validator) admitChain(chain string, cells []Expanded) {
	l, _ := v.Levels(chain)
	free, total := make([]int, len(l)), 0
	for i := range cells {
		if cells[i].Type != chain {
			continue
		}
		total++
		if !v.loose(&cells[i], 0, free) {
			free[0]++
		}
	}
	left := 0
	for depth := range l {
		left += free[depth]
		v.admitLevel(chain, l, depth, left, total)
		for _, c := range v.claims {
			if c.chain == chain && c.level == depth {
				left -= c.count
			}
		}
		left = max(left, 0) * l[depth].Children
		total *= l[depth].Children
	}
}

// loose reports whether a cell is or contains a pinned cell that a virtual cluster owns. It adds the cells beside such cells to
// free, by level.
func (v *validator) loose(e *Expanded, depth int, free []int) bool {
	if e.Pinned != "" && v.pinned[e.Pinned].owner != "" {
		return true
	}
	clean := 0
	for i := range e.Children {
		if !v.loose(&e.Children[i], depth+1, free) {
			clean++
		}
	}
	if clean == len(e.Children) {
		return false
	}
	free[depth+1] += clean
	return true
}

// admitLevel reports a problem if virtual clusters own more cells of a level than remain. The problem is at the first claim
// that exceeds the remaining cells.
func (v *validator) admitLevel(chain string, l []Level, depth, left, total int) {
	want := 0
	var first *claim
	for i := range v.claims {
		c := &v.claims[i]
		if c.chain != chain || c.level != depth {
			continue
		}
		if want += c.count; want > left && first == nil {
			first = c
		}
	}
	if first == nil {
		return
	}
	where := ""
	if depth > 0 {
		where = " in the chain " + chain
	}
	message := fmt.Sprintf("the virtual clusters own %s%s (%s)", countOf(want, l[depth].Type), where, v.askers(chain, depth))
	if left == total {
		message += fmt.Sprintf(", and there are %d", total)
	} else {
		message += fmt.Sprintf(", but of the %d existing %d are left %s", total, left, v.takers(chain, l, depth))
	}
	v.fail(first.path, "assign fewer cells, or add physical ones", "%s", message)
}

// askers lists the virtual clusters that own cells of a level, with the number of cells.
func (v *validator) askers(chain string, depth int) string {
	var order []string
	counts := map[string]int{}
	for _, c := range v.claims {
		if c.chain != chain || c.level != depth {
			continue
		}
		if counts[c.vc] == 0 {
			order = append(order, c.vc)
		}
		counts[c.vc] += c.count
	}
	for i, vc := range order {
		order[i] = fmt.Sprintf("%s %d", vc, counts[vc])
	}
	return strings.Join(order, ", ")
}

// takers lists the larger cells and the pinned cells that reduce the number of cells on a level.
func (v *validator) takers(chain string, l []Level, depth int) string {
	var parts []string
	for above := range depth {
		if who := v.askers(chain, above); who != "" {
			parts = append(parts, fmt.Sprintf("larger cells of type %s (%s)", l[above].Type, who))
		}
	}
	var pins []string
	for id, p := range v.pinned {
		if p.chain == chain && p.owner != "" {
			pins = append(pins, fmt.Sprintf("%s of %s", id, p.owner))
		}
	}
	if len(pins) > 0 {
		sort.Strings(pins)
		parts = append(parts, "pinned cells ("+strings.Join(pins, ", ")+")")
	}
	return "beside " + strings.Join(parts, " and ")
}
