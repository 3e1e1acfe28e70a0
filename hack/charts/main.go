// Command charts packs the charts of the services into a folder, in the same way as Helm.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/openpai/paictl/pkg/cluster/bundle/chart"
	"github.com/openpai/paictl/templates"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: charts FOLDER")
	}
	charts, err := chart.List(templates.Charts())
	if err != nil {
		return err
	}
	for _, c := range charts {
		archive, err := c.Archive()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(args[0], c.File()), archive, 0o644); err != nil {
			return err
		}
	}
	return nil
}
