package vc

import (
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// hardware holds the nesting of cells: for each top type, the chain of types down to the GPU.
type hardware struct {
	chains   [][]string
	children map[string]int // the number of children of a cell, by type
}

// hardwareOf returns the nesting of cells in a configuration. It omits invalid parts, because the check of the configuration
// reports them.
func hardwareOf(c cell.Config) *hardware {
	h, types := &hardware{children: map[string]int{}}, c.Hierarchy()
	for _, p := range c.Physical {
		levels, err := types.Levels(p.Type)
		if err != nil || slices.ContainsFunc(h.chains, func(chain []string) bool { return chain[0] == p.Type }) {
			continue
		}
		var chain []string
		for _, l := range levels {
			chain = append(chain, l.Type)
			h.children[l.Type] = l.Children
		}
		h.chains = append(h.chains, chain)
	}
	return h
}

// CellTypes returns all types of cells that a virtual cluster may own, as written in the configuration. A type is a top type,
// or a top type followed by dots and the types inside.
func CellTypes(c cell.Config) []string { return hardwareOf(c).types() }

func (h *hardware) types() []string {
	var out []string
	for _, chain := range h.chains {
		for _, name := range chain {
			out = append(out, pathOf(chain, name))
		}
	}
	return out
}

func pathOf(chain []string, name string) string {
	if name == chain[0] {
		return name
	}
	return chain[0] + "." + name
}

// find returns the chain of a type, and the level of the type in the chain. If only one chain contains a type, the type may be
// given without its path.
func (h *hardware) find(cellType string) (chain []string, level int) {
	first, last := ends(cellType)
	for _, c := range h.chains {
		if c[0] == first {
			return c, slices.Index(c, last)
		}
	}
	if first != last {
		return nil, -1
	}
	for _, c := range h.chains {
		if at := slices.Index(c, last); at >= 0 {
			if chain != nil {
				return nil, -1
			}
			chain, level = c, at
		}
	}
	if chain == nil {
		return nil, -1
	}
	return chain, level
}

// whole returns the full path of a type. It returns an unknown type unchanged, because the check of the configuration reports
// unknown types.
func (h *hardware) whole(cellType string) string {
	first, last := ends(cellType)
	if chain, level := h.find(cellType); level >= 0 && first == last {
		return pathOf(chain, last)
	}
	return cellType
}

// provide makes a virtual cluster own n cells of a type by splitting its larger cells. It splits the smallest of the larger
// cells, and keeps the rest of a split cell in the largest possible pieces. It reports whether it succeeded.
func (h *hardware) provide(d *Definition, cellType string, n int) bool {
	chain, level := h.find(cellType)
	for d.Cells(cellType) < n {
		at := level - 1
		for at >= 0 && d.Cells(pathOf(chain, chain[at])) == 0 {
			at--
		}
		if at < 0 {
			return false
		}
		larger, smaller := pathOf(chain, chain[at]), pathOf(chain, chain[at+1])
		d.SetCells(larger, d.Cells(larger)-1)
		d.SetCells(smaller, d.Cells(smaller)+h.children[chain[at]])
	}
	return true
}

// ends returns the first and the last component of a path of types. Other components don't matter.
func ends(cellType string) (first, last string) {
	first, _, _ = strings.Cut(cellType, ".")
	return first, cellType[strings.LastIndex(cellType, ".")+1:]
}

// sameType reports whether two paths identify the same type.
func sameType(a, b string) bool {
	firstA, lastA := ends(a)
	firstB, lastB := ends(b)
	return firstA == firstB && lastA == lastB
}
