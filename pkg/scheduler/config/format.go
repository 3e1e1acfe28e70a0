package config

import (
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// fileFormat is the structure of HiveD's configuration. Keys that only HiveD itself reads are accepted and ignored.
type fileFormat struct {
	Physical physicalCluster           `yaml:"physicalCluster"`
	Virtual  map[string]virtualCluster `yaml:"virtualClusters"`
	// Reserve isn't part of HiveD's format. See cell.Config.
	Reserve bool `yaml:"reserveGPUMachines"`

	KubeAPIServerAddress strictyaml.Ignored `yaml:"kubeApiServerAddress"`
	KubeConfigFilePath   strictyaml.Ignored `yaml:"kubeConfigFilePath"`
	WebServerAddress     strictyaml.Ignored `yaml:"webServerAddress"`
	ForceBindThreshold   strictyaml.Ignored `yaml:"forcePodBindThreshold"`
	WaitingBlock         strictyaml.Ignored `yaml:"waitingPodSchedulingBlockMilliSec"`
	Rest                 unknownKeys        `yaml:",inline"`
}

type physicalCluster struct {
	Types map[string]cellType `yaml:"cellTypes"`
	Cells []physicalCell      `yaml:"physicalCells"`
	// SKUTypes determine whether a leaf is a GPU or a CPU cell. GPUTypes comes from early releases. Only OpenPAI's REST server
	// reads it.
	SKUTypes skuTypes           `yaml:"skuTypes"`
	GPUTypes strictyaml.Ignored `yaml:"gpuTypes"`
	Rest     unknownKeys        `yaml:",inline"`
}

type cellType struct {
	Child    string      `yaml:"childCellType"`
	Children int         `yaml:"childCellNumber"`
	Node     bool        `yaml:"isNodeLevel"`
	Rest     unknownKeys `yaml:",inline"`
}

type physicalCell struct {
	Type     string         `yaml:"cellType"`
	Address  string         `yaml:"cellAddress"`
	Pinned   string         `yaml:"pinnedCellId"`
	Children []physicalCell `yaml:"cellChildren"`
	Rest     unknownKeys    `yaml:",inline"`
}

type virtualCluster struct {
	Cells  []virtualCell `yaml:"virtualCells"`
	Pinned []pinnedCell  `yaml:"pinnedCells"`
	// Quota isn't part of HiveD's format. It limits the guaranteed GPUs of each user or each group.
	Quota quota `yaml:"quota"`
	// Policy isn't part of HiveD's format. It is one of the names in cell.Policies.
	Policy string      `yaml:"policy"`
	Rest   unknownKeys `yaml:",inline"`
}

type virtualCell struct {
	Type   string      `yaml:"cellType"`
	Number int         `yaml:"cellNumber"`
	Rest   unknownKeys `yaml:",inline"`
}

type pinnedCell struct {
	ID   string      `yaml:"pinnedCellId"`
	Rest unknownKeys `yaml:",inline"`
}

type quota struct {
	PerUser  int            `yaml:"perUser"`
	PerGroup int            `yaml:"perGroup"`
	Users    map[string]int `yaml:"users"`
	Groups   map[string]int `yaml:"groups"`
	Rest     unknownKeys    `yaml:",inline"`
}

// skuTypes lists the leaf types that OpenPAI describes without GPUs, as units of processors and memory. Only OpenPAI's REST
// server reads other types and the resources of all types.
type skuTypes []string

// DecodeNode implements strictyaml.NodeDecoder. It ignores unreadable types, because they don't describe CPU cells.
func (s *skuTypes) DecodeNode(_ *strictyaml.Decoder, n *yaml.Node, _ strictyaml.Path) {
	var types map[string]struct {
		GPU *float64 `yaml:"gpu"`
		CPU *float64 `yaml:"cpu"`
	}
	if n.Decode(&types) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if t := types[name]; t.CPU != nil && (t.GPU == nil || *t.GPU == 0) {
			*s = append(*s, name)
		}
	}
}

// unknownKeys collects keys that aren't part of the format. They only cause warnings, because HiveD ignores them.
type unknownKeys map[string]strictyaml.Ignored
