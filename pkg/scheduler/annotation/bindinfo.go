package annotation

import (
	"encoding/json"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// bindInfo is the parsed value of BindInfoKey.
type bindInfo struct {
	node, chain string
	isolation   []int32
	pods        []cell.PodPlacement
	groups      []int // for version 2: the number of pods of each group, depth first
}

// bindText is the unparsed structure of BindInfoKey. Version 1 has members, version 2 has a root group. In early releases of
// HiveD, field names contain gpu instead of leafCell.
type bindText struct {
	Node         string      `yaml:"node" json:"node"`
	Isolation    []int32     `yaml:"leafCellIsolation" json:"leafCellIsolation"`
	GPUIsolation []int32     `yaml:"gpuIsolation" json:"gpuIsolation,omitempty"`
	Chain        string      `yaml:"cellChain" json:"cellChain"`
	Version      string      `yaml:"version" json:"version,omitempty"`
	Members      []bindGroup `yaml:"affinityGroupBindInfo" json:"affinityGroupBindInfo,omitempty"`
	Root         *bindGroup  `yaml:"podRootGroupBindInfo" json:"podRootGroupBindInfo,omitempty"`
	Others       others      `yaml:",inline" json:"-"`
}

type bindGroup struct {
	Pods     []bindPod   `yaml:"podPlacements" json:"podPlacements"`
	Children []bindGroup `yaml:"childGroupBindingInfo" json:"childGroupBindingInfo,omitempty"`
	Others   others      `yaml:",inline" json:"-"`
}

type bindPod struct {
	Node       string   `yaml:"physicalNode" json:"physicalNode"`
	Indices    []int32  `yaml:"physicalLeafCellIndices" json:"physicalLeafCellIndices"`
	GPUIndices []int32  `yaml:"physicalGpuIndices" json:"physicalGpuIndices,omitempty"`
	Types      []string `yaml:"preassignedCellTypes" json:"preassignedCellTypes,omitempty"`
	Others     others   `yaml:",inline" json:"-"`
}

// parseBindInfo parses a bind info. It parses JSON from Write with a fast decoder, because a new scheduler may read thousands
// of pods. It parses all other text as YAML, which is much slower.
func parseBindInfo(text string) (*bindInfo, error) {
	var t bindText
	if len(text) <= maxBindInfo && json.Unmarshal([]byte(text), &t) == nil && t.String() == text {
		return t.read(document{})
	}
	t = bindText{}
	d, err := parse(text, maxBindInfo)
	if err != nil {
		return nil, err
	}
	if err := d.decode(&t); err != nil {
		return nil, err
	}
	return t.read(d)
}

// read checks the fields and returns the bindInfo.
func (t *bindText) read(d document) (b *bindInfo, err error) {
	b = &bindInfo{node: t.Node, chain: t.Chain}
	if b.isolation, err = d.indices(nil, "leafCellIsolation", t.Isolation, "gpuIsolation", t.GPUIsolation); err != nil {
		return nil, err
	}
	for i := range t.Members {
		if err := b.add(d, strictyaml.Path{"affinityGroupBindInfo", i}, t.Members[i].Pods); err != nil {
			return nil, err
		}
	}
	if t.Root != nil {
		err = b.addGroup(d, strictyaml.Path{"podRootGroupBindInfo"}, t.Root, 0)
	}
	return b, err
}

// indices returns the device indices of a field that has a current and a former name. It returns an error if an index is
// negative.
func (d document) indices(path strictyaml.Path, field string, list []int32, former string, formerList []int32) ([]int32, error) {
	if list == nil {
		field, list = former, formerList
	}
	for i, n := range list {
		if n < 0 {
			return nil, d.fault(path.With(field, i), "%s has %d, which is not the index of a device", field, n)
		}
	}
	return list, nil
}

// addGroup adds the pods of a group of version 2 and of its nested groups.
func (b *bindInfo) addGroup(d document, path strictyaml.Path, g *bindGroup, depth int) error {
	if depth > maxGroupDepth {
		return d.fault(path, "groups of pods are nested deeper than %d levels", maxGroupDepth)
	}
	if err := b.add(d, path, g.Pods); err != nil {
		return err
	}
	b.groups = append(b.groups, len(g.Pods))
	for i := range g.Children {
		if err := b.addGroup(d, path.With("childGroupBindingInfo", i), &g.Children[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// add adds the pods of a group.
func (b *bindInfo) add(d document, group strictyaml.Path, pods []bindPod) error {
	for i := range pods {
		in, path := &pods[i], group.With("podPlacements", i)
		p := cell.PodPlacement{Set: -1, Node: in.Node, Preassigned: in.Types}
		var err error
		if p.Indices, err = d.indices(path, "physicalLeafCellIndices", in.Indices, "physicalGpuIndices", in.GPUIndices); err != nil {
			return err
		}
		if p.Preassigned == nil {
			p.Preassigned = make([]string, len(p.Indices))
		}
		switch {
		case p.Node == "" && p.Indices != nil && len(p.Indices) == 0: // a pod that has no place yet
		case p.Node == "" || len(p.Indices) == 0:
			return d.fault(path, "a placement has no physicalNode, or no physicalLeafCellIndices")
		case len(p.Preassigned) != len(p.Indices):
			return d.fault(path, "a placement has %d physicalLeafCellIndices and %d preassignedCellTypes", len(p.Indices), len(p.Preassigned))
		}
		b.pods = append(b.pods, p)
	}
	return nil
}
