package vc

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Definition is a virtual cluster in the section scheduler.
type Definition struct {
	VirtualCells []Cells  `yaml:"virtualCells,omitempty" json:"virtualCells,omitempty"`
	PinnedCells  []Pinned `yaml:"pinnedCells,omitempty" json:"pinnedCells,omitempty"`
	Quota        Quota    `yaml:"quota,omitempty" json:"quota,omitzero"`
	// Policy is one of the names in cell.Policies, or "" for the default policy.
	Policy string `yaml:"policy,omitempty" json:"policy,omitempty"`
}

// Cells is a number of cells of one type.
type Cells struct {
	CellType   string `yaml:"cellType" json:"cellType"`
	CellNumber int    `yaml:"cellNumber" json:"cellNumber"`
}

// Pinned identifies a physical cell by name.
type Pinned struct {
	ID string `yaml:"pinnedCellId" json:"pinnedCellId"`
}

// Quota limits the guaranteed GPUs of each user or group. 0 means unlimited.
type Quota struct {
	PerUser  int            `yaml:"perUser,omitempty" json:"perUser,omitempty"`
	PerGroup int            `yaml:"perGroup,omitempty" json:"perGroup,omitempty"`
	Users    map[string]int `yaml:"users,omitempty" json:"users,omitempty"`
	Groups   map[string]int `yaml:"groups,omitempty" json:"groups,omitempty"`
}

// IsZero reports whether the quota has no limits.
func (q Quota) IsZero() bool {
	return q.PerUser == 0 && q.PerGroup == 0 && len(q.Users) == 0 && len(q.Groups) == 0
}

// Cells returns how many cells of a type the virtual cluster owns.
func (d *Definition) Cells(cellType string) int {
	n := 0
	for _, c := range d.VirtualCells {
		if sameType(c.CellType, cellType) {
			n += c.CellNumber
		}
	}
	return n
}

// SetCells sets the number of cells of a type. 0 removes the type. The order of the types stays the same.
func (d *Definition) SetCells(cellType string, n int) {
	at := slices.IndexFunc(d.VirtualCells, func(c Cells) bool { return sameType(c.CellType, cellType) })
	if at < 0 {
		d.VirtualCells, at = append(slices.Clone(d.VirtualCells), Cells{CellType: cellType}), len(d.VirtualCells)
	}
	d.VirtualCells = slices.Clone(d.VirtualCells)
	d.VirtualCells[at].CellNumber = n
	first := true
	d.VirtualCells = slices.DeleteFunc(d.VirtualCells, func(c Cells) bool {
		if !sameType(c.CellType, cellType) {
			return false
		}
		keep := first && n > 0
		first = false
		return !keep
	})
}

// section is the part of services-configuration.yaml that this package reads.
type section struct {
	Scheduler struct {
		VirtualClusters map[string]Definition `yaml:"virtualClusters"`
	} `yaml:"scheduler"`
}

// Read returns the virtual clusters in services-configuration.yaml, by name. If the file contains no virtual clusters, the map
// is empty, and a virtual cluster called default owns all cells.
func Read(text []byte) (map[string]Definition, error) {
	var s section
	if err := yaml.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("read the virtual clusters: %w", err)
	}
	return s.Scheduler.VirtualClusters, nil
}

// ParseFile reads a file with the definition of one virtual cluster, or with several definitions under the key virtualClusters.
// The name of a single definition is "".
func ParseFile(file string, data []byte) (map[string]Definition, error) {
	doc, found := strictyaml.Parse(file, data)
	if err := found.Err(); err != nil {
		return nil, err
	}
	if doc.Has("virtualClusters") {
		var several struct {
			VirtualClusters map[string]Definition `yaml:"virtualClusters"`
		}
		if err := doc.Decode(&several).Err(); err != nil {
			return nil, err
		}
		return several.VirtualClusters, nil
	}
	var one Definition
	if err := doc.Decode(&one).Err(); err != nil {
		return nil, err
	}
	return map[string]Definition{"": one}, nil
}

// String describes the cells, for example "2 x 8x-a100, 1 x rack".
func (d *Definition) String() string {
	var parts []string
	for _, c := range d.VirtualCells {
		parts = append(parts, fmt.Sprintf("%d x %s", c.CellNumber, c.CellType))
	}
	for _, p := range d.PinnedCells {
		parts = append(parts, "pinned "+p.ID)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
