package vc

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// FitHardware returns the virtual clusters that must change when the hardware changes. They lose cells if too few cells remain. If
// the number of machines in a rack changes, their cells of this rack get the rack's new type. FitHardware takes cells from takeFrom,
// from the only virtual cluster with such cells, or from the virtual cluster default. If several other virtual clusters have
// such cells, the error lists them, unless the choice doesn't matter.
func FitHardware(have map[string]Definition, before, after cell.Config, takeFrom string, anyone bool) (map[string]*Definition, error) {
	if _, there := have[takeFrom]; takeFrom != "" && !there {
		return nil, unknown(takeFrom, have)
	}
	s := &settlement{was: hardwareOf(before), is: hardwareOf(after), owned: maps.Clone(have), takeFrom: takeFrom, anyone: anyone}
	left := tops(after)
	for _, chain := range s.was.chains {
		moved := s.renamed(before, after, chain[0])
		if err := s.fit(s.was, chain, left[chain[0]]+len(moved), nil); err != nil {
			return nil, err
		}
		if err := s.fit(s.was, chain, left[chain[0]], moved); err != nil {
			return nil, err
		}
	}
	for _, chain := range s.is.chains {
		if err := s.fit(s.is, chain, left[chain[0]], nil); err != nil {
			return nil, err
		}
	}
	out := map[string]*Definition{}
	for name, d := range s.owned {
		if !reflect.DeepEqual(d.VirtualCells, have[name].VirtualCells) {
			out[name] = &d
		}
	}
	return out, nil
}

type settlement struct {
	was, is  *hardware
	owned    map[string]Definition
	takeFrom string
	anyone   bool
}

// move is a top cell with a different type in the new configuration.
type move struct {
	to   []string // the chain of the new type
	room int      // the leaves of the old cell that no virtual cluster has moved to the new type yet
}

// tops returns the number of top cells by type.
func tops(c cell.Config) map[string]int {
	out := map[string]int{}
	for _, p := range c.Physical {
		out[p.Type]++
	}
	return out
}

// renamed returns a move for each top cell that had the type top and now has a different type.
func (s *settlement) renamed(before, after cell.Config, top string) (out []move) {
	from, _ := s.was.find(top)
	for _, p := range before.Physical {
		if p.Type != top {
			continue
		}
		for _, q := range after.Physical {
			to, _ := s.is.find(q.Type)
			if q.Address == p.Address && q.Type != p.Type && len(to) > 0 && slices.Equal(to[1:], from[1:]) {
				out = append(out, move{to, s.was.leaves(from, 0)})
				break
			}
		}
	}
	return out
}

// leaves returns the number of leaves per cell at a level of a chain.
func (h *hardware) leaves(chain []string, level int) int {
	n := 1
	for _, name := range chain[level : len(chain)-1] {
		n *= h.children[name]
	}
	return n
}

// fit takes cells of a chain from virtual clusters until their remaining cells fit into the given number of top cells. If a
// move has room, the virtual cluster gets a cell of the new type instead.
func (s *settlement) fit(h *hardware, chain []string, top int, moved []move) error {
	for {
		level, short := s.short(h, chain, top)
		if short == 0 {
			return nil
		}
		cellType := pathOf(chain, chain[level])
		at := slices.IndexFunc(moved, func(m move) bool { return m.room >= h.leaves(chain, level) })
		grows := at >= 0 && s.is.leaves(moved[at].to, 0) >= h.leaves(chain, 0)
		name, err := s.giver(h, cellType, s.anyone || top == 0 || grows)
		if err != nil {
			return fmt.Errorf("%s fewer than virtual clusters own: %w", counted(short, cellType), err)
		}
		d := s.owned[name]
		h.provide(&d, cellType, 1)
		d.SetCells(cellType, d.Cells(cellType)-1)
		if at >= 0 {
			moved[at].room -= h.leaves(chain, level)
			to := moved[at].to[0]
			if level > 0 {
				to = pathOf(moved[at].to, chain[level])
			}
			d.SetCells(to, d.Cells(to)+1)
		}
		s.owned[name] = d
	}
}

// short returns the highest level of a chain at which virtual clusters own more cells than exist, and the number of excess
// cells.
func (s *settlement) short(h *hardware, chain []string, free int) (level, n int) {
	for level := range chain {
		for _, d := range s.owned {
			free -= d.Cells(pathOf(chain, chain[level]))
		}
		if free < 0 {
			return level, -free
		}
		free *= h.children[chain[level]]
	}
	return 0, 0
}

// giver chooses the virtual cluster that loses a cell. The choice doesn't matter if all virtual clusters lose all cells, or if
// no virtual cluster loses a cell.
func (s *settlement) giver(h *hardware, cellType string, anyone bool) (string, error) {
	var owners, shares []string
	for _, name := range slices.Sorted(maps.Keys(s.owned)) {
		d := s.owned[name]
		if h.provide(&d, cellType, 1) {
			d := s.owned[name]
			owners, shares = append(owners, name), append(shares, fmt.Sprintf("%s (%s)", name, d.String()))
		}
	}
	for _, name := range []string{s.takeFrom, DefaultName} {
		if slices.Contains(owners, name) {
			return name, nil
		}
	}
	if len(owners) == 1 || anyone && len(owners) > 0 {
		return owners[0], nil
	}
	return "", &OwnersError{CellType: cellType, Owners: owners, shares: shares}
}

// OwnersError means that one of several virtual clusters must lose cells. Callers add a remedy that explains how to choose the
// virtual cluster.
type OwnersError struct {
	CellType string
	Owners   []string

	shares []string
}

func (e *OwnersError) Error() string { return strings.Join(e.shares, " and ") + " own them" }

func counted(n int, cellType string) string { return fmt.Sprintf("%d x %s", n, cellType) }

// Difference describes changes of virtual clusters, for example "vision: 2 x a, formerly 3 x a".
func Difference(have map[string]Definition, changes map[string]*Definition) (out []string) {
	for _, name := range slices.SortedFunc(maps.Keys(changes), cmp.Compare) {
		was := have[name]
		out = append(out, fmt.Sprintf("%s: %s, formerly %s", name, changes[name], was.String()))
	}
	return out
}
