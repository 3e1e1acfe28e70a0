package config

import (
	"fmt"
	"maps"
	"path/filepath"

	"github.com/openpai/paictl/pkg/hint"
)

// ServiceRules determine how services-configuration.yaml is adapted when machines are added or removed.
type ServiceRules struct {
	// Adapt returns a new text for the file that fits the machines after the change, or nil if the file needn't change.
	Adapt func(before, after *Cluster) ([]byte, error)
	// Check applies the rules of the services to the result.
	Check Check
}

// settle prepares the edit of services-configuration.yaml, and applies all rules to both files.
func (e *LayoutEdit) settle(data map[string][]byte, before *Cluster, s ServiceRules) error {
	dir := e.Cluster.Dir
	e.services = fileEdit{path: filepath.Join(dir, ServicesFile), before: data[ServicesFile], after: data[ServicesFile], secret: before.HoldsSecret(ServicesFile)}
	if s.Adapt != nil && len(e.Machines) > 0 {
		text, err := s.Adapt(before, e.Cluster)
		if err != nil {
			return err
		}
		if text != nil {
			e.services.after = text
		}
	}
	after := maps.Clone(data)
	after[LayoutFile], after[ServicesFile] = e.after, e.services.after
	c, err := Parse(dir, after)
	if err != nil {
		return err
	}
	e.Cluster = c
	var checks []Check
	if s.Check != nil {
		checks = append(checks, s.Check)
	}
	if err := Validate(c, checks...).Err(); err != nil {
		return hint.Wrap(fmt.Errorf("%s was not changed, with this change the configuration would break a rule: %w", LayoutFile, err), "")
	}
	return nil
}

// Write replaces both files. It writes services-configuration.yaml first, because a file with fewer cells also fits the machines before the change.
func (e *LayoutEdit) Write() error {
	if err := e.services.Write(); err != nil {
		return err
	}
	return e.fileEdit.Write()
}

// Undo restores the files that Write has replaced. It skips files that have been changed since.
func (e *LayoutEdit) Undo() error {
	if err := e.fileEdit.Undo(); err != nil {
		return err
	}
	return e.services.Undo()
}
