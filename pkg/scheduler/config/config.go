// Package config reads and makes the scheduler's configuration.
// In: YAML in the format of HiveD, or a layout and the section scheduler of
// services-configuration.yaml. Out: a cell.Config, and findings with line, column and remedy.
package config

import (
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/strictyaml"
)

// FromCluster makes the configuration of a layout's machines and of the section scheduler in
// services-configuration.yaml.
func FromCluster(l layout.Layout, servicesFile string, services []byte) (cell.Config, strictyaml.Findings) {
	return cell.Config{}, nil
}

// Encode writes a configuration in HiveD's format.
func Encode(c cell.Config) ([]byte, error) { return nil, nil }
