package annotation

import (
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// maxGroupDepth is how deep groups of pods may be nested.
const maxGroupDepth = 16

// v2 reads the fields of version 2. It has no ignoreK8sSuggestedNodes: all nodes may be used.
func (t *tree) v2(r *cell.Request, s *spec, pod string) error {
	s.number, s.numberAt = 0, 0
	for i := range t.children(0) {
		var err error
		switch key := t.key(i); key {
		case "cellType":
			err = t.str(i, key, &s.cellType)
		case "cellNumber":
			s.numberAt = i
			err = t.number(i, key, &s.number)
		}
		if err != nil {
			return err
		}
	}
	if err := t.positive(s.numberAt, "cellNumber", s.number); err != nil {
		return err
	}
	own := cell.PodSet{Count: 1, CellType: s.cellType, Cells: s.number}
	if s.podRootGroup == 0 || t.nodes[s.podRootGroup].kind == kindNull {
		r.Gang = pod
		r.Root = cell.Group{Name: pod, Pods: []cell.PodSet{own}}
		return nil
	}
	g := groupReader{t: t, own: own, current: -1}
	if err := g.group(s.podRootGroup, &r.Root, 0); err != nil {
		return err
	}
	switch {
	case r.Root.Name == "":
		return t.fault(s.podRootGroup, "podRootGroup.name is missing; write a name that all pods of the gang share")
	case g.current < 0:
		return t.fault(s.podRootGroup, "no entry of podRootGroup has containsCurrentPod: true; write it where this pod belongs")
	case g.total > maxNumber:
		return t.fault(s.podRootGroup, "the gang has more than %d pods", maxNumber)
	}
	r.Gang, r.Set = r.Root.Name, g.current
	return nil
}

// groupReader reads the tree of groups. sets and current count as Request.Sets does, depth first.
type groupReader struct {
	t       *tree
	own     cell.PodSet // what the head of the request says about this pod
	sets    int
	current int
	total   int
}

func (g *groupReader) group(at int32, out *cell.Group, depth int) error {
	t := g.t
	if t.nodes[at].kind != kindMap {
		return t.wrongKind(at, "a group of pods", "a map")
	}
	if depth > maxGroupDepth {
		return t.fault(at, "groups of pods are nested deeper than %d levels", maxGroupDepth)
	}
	pods, children := int32(0), int32(0)
	for i := range t.children(at) {
		var err error
		switch key := t.key(i); key {
		case "name":
			err = t.str(i, key, &out.Name)
		case "withinOneCell":
			err = t.str(i, key, &out.Within)
		case "pods", "pod":
			if pods != 0 {
				err = t.fault(i, "pod and pods mean the same; keep one of the two")
			}
			pods = i
		case "childGroups":
			children = i
		}
		if err != nil {
			return err
		}
	}
	if err := g.pods(pods, out); err != nil {
		return err
	}
	return g.children(children, out, depth)
}

// pods reads a list of pod sets, or a single one.
func (g *groupReader) pods(at int32, out *cell.Group) error {
	t := g.t
	if at == 0 {
		return nil
	}
	switch t.nodes[at].kind {
	case kindNull:
		return nil
	case kindMap:
		return g.set(at, out)
	case kindList:
		for i := range t.children(at) {
			if err := g.set(i, out); err != nil {
				return err
			}
		}
		return nil
	}
	return t.wrongKind(at, "pods", "a list")
}

func (g *groupReader) children(at int32, out *cell.Group, depth int) error {
	t := g.t
	if at == 0 || t.nodes[at].kind == kindNull {
		return nil
	}
	if t.nodes[at].kind != kindList {
		return t.wrongKind(at, "childGroups", "a list")
	}
	for i := range t.children(at) {
		var child cell.Group
		if err := g.group(i, &child, depth+1); err != nil {
			return err
		}
		out.Children = append(out.Children, child)
	}
	return nil
}

func (g *groupReader) set(at int32, out *cell.Group) error {
	t := g.t
	if t.nodes[at].kind != kindMap {
		return t.wrongKind(at, "an entry of pods", "a map")
	}
	var least, most int
	var current bool
	set := cell.PodSet{}
	for i := range t.children(at) {
		var err error
		switch key := t.key(i); key {
		case "podMinNumber":
			err = t.number(i, key, &least)
		case "podMaxNumber":
			err = t.number(i, key, &most)
		case "containsCurrentPod":
			err = t.boolean(i, key, &current)
		case "cellsPerPod":
			err = g.cells(i, &set)
		}
		if err != nil {
			return err
		}
	}
	if err := t.positive(at, "podMinNumber", least); err != nil {
		return err
	}
	if err := t.positive(at, "podMaxNumber", most); err != nil {
		return err
	}
	if least != most {
		return t.fault(at, "podMinNumber is %d and podMaxNumber is %d; gangs have a fixed size, write the same number", least, most)
	}
	if err := t.positive(at, "cellsPerPod.cellNumber", set.Cells); err != nil {
		return err
	}
	set.Count = most
	g.total += most
	if set.CellType == "" {
		set.CellType = g.own.CellType
	}
	if current {
		if err := g.isCurrent(at, set); err != nil {
			return err
		}
	}
	g.sets++
	out.Pods = append(out.Pods, set)
	return nil
}

func (g *groupReader) isCurrent(at int32, set cell.PodSet) error {
	if g.current >= 0 {
		return g.t.fault(at, "containsCurrentPod is true twice; write it once, where this pod belongs")
	}
	if set.Cells != g.own.Cells || set.CellType != g.own.CellType {
		return g.t.fault(at, "this pod asks for %d %q cells, and its entry in podRootGroup for %d %q; write the same",
			g.own.Cells, g.own.CellType, set.Cells, set.CellType)
	}
	g.current = g.sets
	return nil
}

func (g *groupReader) cells(at int32, set *cell.PodSet) error {
	t := g.t
	if t.nodes[at].kind == kindNull {
		return nil
	}
	if t.nodes[at].kind != kindMap {
		return t.wrongKind(at, "cellsPerPod", "a map")
	}
	for i := range t.children(at) {
		var err error
		switch t.key(i) {
		case "cellType":
			err = t.str(i, "cellsPerPod.cellType", &set.CellType)
		case "cellNumber":
			err = t.number(i, "cellsPerPod.cellNumber", &set.Cells)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
