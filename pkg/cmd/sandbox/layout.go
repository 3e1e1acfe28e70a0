package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
)

// simulatedNodes reads the machines of a layout. If the folder also contains the file that defines roles, nodes get the labels and taints of
// their roles. Otherwise they get only the labels and taints in the layout.
func simulatedNodes(path string) ([]sandbox.Node, error) {
	dir := filepath.Dir(path)
	_, err := os.Stat(filepath.Join(dir, config.RolesFile))
	if err == nil && filepath.Base(path) == config.LayoutFile {
		c, err := config.Load(dir)
		if err != nil {
			return nil, err
		}
		return sandbox.NodesOf(c.Layout, c.LabelsOf, c.TaintsOf)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the layout: %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the layout: %w", err)
	}
	var l layout.Layout
	if _, findings := strictyaml.Decode(path, data, &l); findings.Err() != nil {
		return nil, findings.Err()
	}
	return sandbox.NodesOf(l, func(m layout.Machine) map[string]string { return m.Labels },
		func(m layout.Machine) []string { return m.Taints })
}
