// Package config reads and creates the scheduler's configuration. In: YAML in the format of HiveD, or a layout and the section scheduler of
// services-configuration.yaml. Out: a cell.Config, and findings with line, column and remedy.
package config
