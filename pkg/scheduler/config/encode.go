package config

import (
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// ConfigMap is the name of the ConfigMap with the running scheduler's configuration, in the platform's namespace. ConfigMapKey
// is the key in this ConfigMap.
const (
	ConfigMap    = "scheduler-configuration"
	ConfigMapKey = "hivedscheduler.yaml"
)

type encodedType struct {
	Child    string `yaml:"childCellType"`
	Children int    `yaml:"childCellNumber"`
	Node     bool   `yaml:"isNodeLevel,omitempty"`
}

type encodedPhysical struct {
	Type     string            `yaml:"cellType,omitempty"`
	Address  string            `yaml:"cellAddress,omitempty"`
	Pinned   string            `yaml:"pinnedCellId,omitempty"`
	Children []encodedPhysical `yaml:"cellChildren,omitempty"`
}

type encodedVirtual struct {
	Cells  []encodedCell `yaml:"virtualCells,omitempty"`
	Pinned []encodedPin  `yaml:"pinnedCells,omitempty"`
	Quota  encodedQuota  `yaml:"quota,omitempty"`
	Policy string        `yaml:"policy,omitempty"`
}

type encodedCell struct {
	Type  string `yaml:"cellType"`
	Count int    `yaml:"cellNumber"`
}

// encodedSKU describes a CPU cell in OpenPAI's format: no GPU, one processor.
type encodedSKU struct {
	CPU int `yaml:"cpu"`
}

type encodedPin struct {
	ID string `yaml:"pinnedCellId"`
}

type encodedQuota struct {
	PerUser  int            `yaml:"perUser,omitempty"`
	PerGroup int            `yaml:"perGroup,omitempty"`
	Users    map[string]int `yaml:"users,omitempty"`
	Groups   map[string]int `yaml:"groups,omitempty"`
}

// Encode writes a configuration in HiveD's format. Parse returns the same configuration for the result, except that the virtual
// clusters are sorted by name.
func Encode(c cell.Config) ([]byte, error) {
	types, vcs := mapping(), mapping()
	for _, t := range c.Types {
		if err := put(types, t.Name, encodedType{t.Child, t.Children, t.Node}); err != nil {
			return nil, err
		}
	}
	for _, vc := range c.VirtualClusters {
		if err := put(vcs, vc.Name, encodeVirtual(vc)); err != nil {
			return nil, err
		}
	}
	physical, root := mapping(), mapping()
	if err := put(physical, "cellTypes", types); err != nil {
		return nil, err
	}
	if len(c.Processors) > 0 {
		skus := mapping()
		for _, name := range c.Processors {
			if err := put(skus, name, encodedSKU{1}); err != nil {
				return nil, err
			}
		}
		if err := put(physical, "skuTypes", skus); err != nil {
			return nil, err
		}
	}
	if err := put(physical, "physicalCells", encodePhysical(c.Physical)); err != nil {
		return nil, err
	}
	if err := put(root, "physicalCluster", physical); err != nil {
		return nil, err
	}
	if err := put(root, "virtualClusters", vcs); err != nil {
		return nil, err
	}
	if c.ReserveGPUMachines {
		if err := put(root, "reserveGPUMachines", true); err != nil {
			return nil, err
		}
	}
	return strictyaml.Encode(root, nil)
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

// put appends an entry to a mapping.
func put(m *yaml.Node, key string, value any) error {
	k, err := strictyaml.Node(key)
	if err != nil {
		return err
	}
	v, err := strictyaml.Node(value)
	if err != nil {
		return err
	}
	m.Content = append(m.Content, k, v)
	return nil
}

func encodePhysical(cells []cell.Physical) []encodedPhysical {
	if len(cells) == 0 {
		return nil
	}
	out := make([]encodedPhysical, len(cells))
	for i, p := range cells {
		out[i] = encodedPhysical{p.Type, p.Address, p.Pinned, encodePhysical(p.Children)}
	}
	return out
}

func encodeVirtual(vc cell.VirtualCluster) encodedVirtual {
	e := encodedVirtual{Quota: encodedQuota(vc.Quota), Policy: vc.Policy}
	for _, v := range vc.Cells {
		e.Cells = append(e.Cells, encodedCell(v))
	}
	for _, id := range vc.Pinned {
		e.Pinned = append(e.Pinned, encodedPin{id})
	}
	return e
}
