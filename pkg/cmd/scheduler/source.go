package scheduler

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
)

// source is where the scheduler configuration comes from: a file or a configuration folder.
type source struct {
	File, Dir string
}

// add adds the flags --config and -p.
func (s *source) add(cmd *cobra.Command, f *cmdutil.Factory) {
	cmd.Flags().StringVar(&s.File, "config", "", "scheduler configuration in HiveD's format")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	cmd.Flags().StringVarP(&s.Dir, "config-path", "p", ".", "folder with the configuration, if --config is not given (setting: config, PAICTL_CONFIG)")
	_ = cmd.MarkFlagDirname("config-path")
	cmd.PreRunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("config-path") {
			if s.File != "" {
				return cmdutil.Usagef("give --config or --config-path, not both")
			}
			return nil
		}
		settings, err := f.Settings()
		if err != nil {
			return err
		}
		if dir := settings.GetString("config"); dir != "" {
			s.Dir = dir
		}
		return nil
	}
}

// name returns the name of the file or folder for messages.
func (s *source) name() string {
	if s.File != "" {
		return s.File
	}
	return s.Dir
}

// load reads the configuration. Mistakes in the configuration are returned as findings, and other failures as an error.
func (s *source) load() (cell.Config, strictyaml.Findings, error) {
	if s.File != "" {
		data, err := readConfig(s.File)
		if err != nil {
			return cell.Config{}, nil, err
		}
		c, findings := schedulerconfig.Parse(s.File, data)
		return c, findings, nil
	}
	files, err := config.ReadFiles(s.Dir)
	if err != nil {
		return cell.Config{}, nil, hint.Wrap(err, "name a configuration folder with -p, or a scheduler configuration with --config")
	}
	cluster, err := config.Parse(s.Dir, files)
	if err != nil {
		return cell.Config{}, nil, err
	}
	c, findings := schedulerconfig.FromCluster(cluster.Layout, filepath.Join(s.Dir, config.ServicesFile), files[config.ServicesFile])
	return c, findings, nil
}

// valid returns the configuration. It returns an error if the configuration contains mistakes.
func (s *source) valid() (cell.Config, error) {
	c, findings, err := s.load()
	if err != nil {
		return c, err
	}
	return c, findings.Err()
}

// readConfig reads the file that --config selects.
func readConfig(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the scheduler configuration: %w", err)
	}
	return data, nil
}
