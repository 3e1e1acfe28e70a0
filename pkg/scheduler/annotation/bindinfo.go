package annotation

import "github.com/openpai/paictl/pkg/scheduler/cell"

// bindInfo is the content of BindInfoKey.
type bindInfo struct {
	node, chain string
	isolation   []int32
	pods        []cell.PodPlacement
	groups      []int // version 2: the number of pods of each group, depth first
}

func (t *tree) bindInfo(b *bindInfo) error {
	if t.nodes[0].kind != kindMap {
		return t.wrongKind(0, "the bind info", "a map")
	}
	for i := range t.children(0) {
		var err error
		switch key := t.key(i); key {
		case "node":
			err = t.str(i, key, &b.node)
		case "leafCellIsolation", "gpuIsolation":
			b.isolation, err = t.indices(i, key)
		case "cellChain":
			err = t.str(i, key, &b.chain)
		case "affinityGroupBindInfo":
			err = t.members(i, b)
		case "podRootGroupBindInfo":
			err = t.bindGroup(i, b, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list checks that a value is a list; nothing is an empty one.
func (t *tree) list(i int32, field string) error {
	if k := t.nodes[i].kind; k != kindList && k != kindNull {
		return t.wrongKind(i, field, "a list")
	}
	return nil
}

func (t *tree) indices(i int32, field string) ([]int32, error) {
	if err := t.list(i, field); err != nil {
		return nil, err
	}
	n := 0
	for range t.children(i) {
		n++
	}
	out := make([]int32, 0, n)
	for c := range t.children(i) {
		number := -1
		if err := t.number(c, "an entry of "+field, &number); err != nil {
			return nil, err
		}
		if number < 0 {
			return nil, t.fault(c, "%s has %d, which is no index of a device", field, number)
		}
		out = append(out, int32(number))
	}
	return out, nil
}

func (t *tree) members(at int32, b *bindInfo) error {
	if err := t.list(at, "affinityGroupBindInfo"); err != nil {
		return err
	}
	for i := range t.children(at) {
		if t.nodes[i].kind != kindMap {
			return t.wrongKind(i, "an entry of affinityGroupBindInfo", "a map")
		}
		for c := range t.children(i) {
			if t.key(c) == "podPlacements" {
				if err := t.placements(c, b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (t *tree) bindGroup(at int32, b *bindInfo, depth int) error {
	if t.nodes[at].kind != kindMap || depth > maxGroupDepth {
		return t.wrongKind(at, "a group in podRootGroupBindInfo", "a map")
	}
	before, children := len(b.pods), int32(0)
	for c := range t.children(at) {
		switch t.key(c) {
		case "podPlacements":
			if err := t.placements(c, b); err != nil {
				return err
			}
		case "childGroupBindingInfo":
			children = c
		}
	}
	b.groups = append(b.groups, len(b.pods)-before)
	if children == 0 {
		return nil
	}
	if err := t.list(children, "childGroupBindingInfo"); err != nil {
		return err
	}
	for c := range t.children(children) {
		if err := t.bindGroup(c, b, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) placements(at int32, b *bindInfo) error {
	if err := t.list(at, "podPlacements"); err != nil {
		return err
	}
	for i := range t.children(at) {
		if t.nodes[i].kind != kindMap {
			return t.wrongKind(i, "an entry of podPlacements", "a map")
		}
		p := cell.PodPlacement{Set: -1}
		for c := range t.children(i) {
			var err error
			switch key := t.key(c); key {
			case "physicalNode":
				err = t.str(c, key, &p.Node)
			case "physicalLeafCellIndices", "physicalGpuIndices":
				p.Indices, err = t.indices(c, key)
			case "preassignedCellTypes":
				p.Preassigned, err = t.types(c, key)
			}
			if err != nil {
				return err
			}
		}
		switch {
		case p.Node == "" && p.Indices != nil && len(p.Indices) == 0: // an open one
		case p.Node == "" || len(p.Indices) == 0:
			return t.fault(i, "a placement has no physicalNode, or no physicalLeafCellIndices")
		case p.Preassigned == nil:
			p.Preassigned = make([]string, len(p.Indices))
		case len(p.Preassigned) != len(p.Indices):
			return t.fault(i, "a placement has %d physicalLeafCellIndices and %d preassignedCellTypes", len(p.Indices), len(p.Preassigned))
		}
		b.pods = append(b.pods, p)
	}
	return nil
}

func (t *tree) types(at int32, field string) ([]string, error) {
	if err := t.list(at, field); err != nil || t.nodes[at].kind == kindNull {
		return nil, err
	}
	out := []string{}
	for c := range t.children(at) {
		name := ""
		if err := t.str(c, "an entry of "+field, &name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, nil
}
