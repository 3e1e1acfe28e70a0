package cell

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// malformed returns an error for an invalid request, or nil. The result doesn't depend on the state of the cluster.
func (s *Scheduler) malformed(r *Request) error {
	switch {
	case r == nil:
		return errors.New("the pod has no scheduling request")
	case r.VirtualCluster == "":
		return errors.New("virtualCluster is empty; name the virtual cluster to run in")
	case s.byVC[r.VirtualCluster] == nil:
		return fmt.Errorf("there is no virtual cluster %s; there are %s", r.VirtualCluster, s.vcNames())
	case r.Priority < Opportunistic || r.Priority > MaxGuaranteed:
		return fmt.Errorf("priority %d is not between %d and %d", r.Priority, Opportunistic, MaxGuaranteed)
	case r.Gang == "":
		return errors.New("the name of the affinity group is empty")
	}
	sets := r.Sets()
	if r.Set < 0 || r.Set >= len(sets) {
		return errors.New("the pod's own size is not among the members of its affinity group")
	}
	for _, set := range sets {
		if set.Count < 1 {
			return fmt.Errorf("a member of the affinity group has %d pods; give at least 1", set.Count)
		}
		if set.Cells < 1 {
			return fmt.Errorf("a member of the affinity group requests %d cells per pod; give at least 1", set.Cells)
		}
	}
	return nil
}

func (s *Scheduler) vcNames() string {
	names := make([]string, len(s.vcs))
	for i, v := range s.vcs {
		names[i] = v.name
	}
	return strings.Join(names, ", ")
}

// WantsCPU reports whether a request is for CPU cells.
func (s *Scheduler) WantsCPU(r *Request) bool {
	if r.PinnedCell == "" {
		return slices.Contains(s.config.Processors, r.LeafType)
	}
	v := s.byVC[r.VirtualCluster]
	return v != nil && v.pinned[r.PinnedCell] != nil && v.pinned[r.PinnedCell].chain.cpu
}

// knowsKind reports whether the result of WantsCPU is certain. It isn't certain if the configuration no longer contains a
// running gang's pinned cell or leaf type.
func (s *Scheduler) knowsKind(r *Request) bool {
	if r.PinnedCell != "" {
		v := s.byVC[r.VirtualCluster]
		return v != nil && v.pinned[r.PinnedCell] != nil
	}
	return r.LeafType == "" || slices.ContainsFunc(s.chains, func(ch *chain) bool { return ch.names[0] == r.LeafType })
}

// leavesOf returns the number of leaves of a request. It uses the first chain with the same kind of leaves and the request's
// cell types.
func (s *Scheduler) leavesOf(r *Request) int {
	cpu := s.WantsCPU(r)
	for _, ch := range s.chains {
		if ch.cpu != cpu {
			continue
		}
		if sh, err := ch.shapeOf(r); err == nil {
			return sh.total
		}
	}
	return 0
}

// Leaves returns the number of leaves in a cell of a type, or 1 for an unknown type.
func (s *Scheduler) Leaves(cellType string) int {
	for _, ch := range s.chains {
		if l := ch.level(cellType); l >= 0 {
			return ch.leaves[l]
		}
	}
	return 1
}

// overQuota describes the exceeded quota of a request, or returns "".
func (s *Scheduler) overQuota(v *vc, r *Request) string {
	if r.Priority < MinGuaranteed || s.WantsCPU(r) {
		return ""
	}
	if limit := v.quota.ofUser(r.User); limit > 0 {
		if n := s.leavesOf(r); v.userUse[r.User]+n > limit {
			who := "user " + r.User + " holds"
			if r.User == "" {
				who = "gangs without a user hold" // they share one quota, so a request without a user isn't better off than a request with a user
			}
			return fmt.Sprintf("%s %d of %d GPUs that one user may hold in virtual cluster %s; the gang requests %d", who, v.userUse[r.User], limit, v.name, n)
		}
	}
	if limit := v.quota.ofGroup(r.UserGroup); r.UserGroup != "" && limit > 0 {
		if n := s.leavesOf(r); v.groupUse[r.UserGroup]+n > limit {
			return fmt.Sprintf("group %s holds %d of %d GPUs that it may hold in virtual cluster %s; the gang requests %d", r.UserGroup, v.groupUse[r.UserGroup], limit, v.name, n)
		}
	}
	return ""
}

func (q Quota) ofUser(name string) int {
	if n, ok := q.Users[name]; ok {
		return n
	}
	return q.PerUser
}

func (q Quota) ofGroup(name string) int {
	if n, ok := q.Groups[name]; ok {
		return n
	}
	return q.PerGroup
}

// unitOf returns the name of the leaves of targets. All targets of a request have the same kind of leaves.
func unitOf(targets []target) string {
	if len(targets) > 0 && targets[0].chain.cpu {
		return "CPU cell"
	}
	return "GPU"
}

// freeAt returns the number of leaves that a gang with a priority may use.
func (t target) freeAt(priority int) int {
	free := t.view().free
	if t.space != nil {
		for p := range priority {
			free += t.space.used[p]
		}
	}
	return free
}

func (s *Scheduler) couldFitAny(targets []target) bool {
	return slices.ContainsFunc(targets, s.couldFit)
}

// couldFit reports whether the shape would fit in the target in an idle, healthy cluster.
func (s *Scheduler) couldFit(t target) bool {
	key := t.key()
	if can, known := s.possible[key]; known {
		return can
	}
	if len(s.possible) >= maxRemembered {
		clear(s.possible)
	}
	_, can := t.idle().place(t.shape)
	s.possible[key] = can
	return can
}

const maxRemembered = 4096

func (t target) key() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(t.chain.id))
	if t.space != nil {
		b.WriteString("/" + t.space.vc.name + "/" + t.space.pinned)
	}
	t.shape.root.key(&b, t.shape)
	return b.String()
}

func (p *part) key(b *strings.Builder, s *shape) {
	b.WriteString("(" + strconv.Itoa(p.within))
	for _, set := range p.sets {
		one := s.sets[set]
		b.WriteString("," + strconv.Itoa(one.count) + "x" + strconv.Itoa(one.n) + "u" + strconv.Itoa(one.unit))
	}
	for _, k := range p.kids {
		k.key(b, s)
	}
	b.WriteString(")")
}

// idle returns a view of the target in which all leaves are free and healthy.
func (t target) idle() *view {
	where := &t.chain.empty
	if t.space != nil {
		where = &t.space.empty
	}
	if *where == nil {
		*where = t.view().emptied()
	}
	return *where
}

func (v *view) emptied() *view {
	out := &view{tree: v.tree, byShape: map[shapeKey]*bucket{}, byBits: map[shapeKey]*bucket{}, scratch: newBitset(v.leaves[v.node])}
	out.nodes = make([]viewNode, len(v.nodes))
	out.upper = make([][]upperCell, len(v.upper))
	for l := range v.upper {
		out.upper[l] = append([]upperCell(nil), v.upper[l]...)
		for i := range out.upper[l] {
			c := &out.upper[l][i]
			c.free, c.hist = 0, make([]int32, len(c.hist))
			c.hist[0] = c.hi - c.lo
		}
	}
	for i := range v.nodes {
		n := &out.nodes[i]
		*n = viewNode{lo: v.nodes[i].lo, top: v.nodes[i].top, up: v.nodes[i].up, free: newBitset(v.leaves[v.nodes[i].top])}
		n.free.setRange(0, v.leaves[n.top])
		out.index(int32(i))
	}
	return out
}

func (t target) size() int {
	if t.space != nil {
		return len(t.space.leaves)
	}
	return len(t.chain.cells[0])
}

func shapeText(r *Request, leaf string) string {
	var parts []string
	for _, set := range r.Sets() {
		unit := leaf + "s"
		if set.CellType != "" {
			unit = set.CellType
		}
		parts = append(parts, fmt.Sprintf("%s of %d %s", plural.Of(set.Count, "pod"), set.Cells, unit))
	}
	return strings.Join(parts, ", ")
}
