package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// DownOptions are the options of "paictl sandbox down".
type DownOptions struct {
	IO       *iostreams.IOStreams
	Dir      string
	CacheDir string
	Purge    bool
	// Hosts are the hosts to remove. If Hosts is empty, the whole sandbox is removed.
	Hosts []string
}

// NewCmdDown returns "paictl sandbox down".
func NewCmdDown(f *cmdutil.Factory) *cobra.Command {
	opts := &DownOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "down [HOST...]",
		Short: "Stop the sandbox and remove everything it made, or single hosts of it",
		Long: `Stops the hosts, removes their files, network, address translation and cgroups, and restores
kernel settings. The base image is kept for the next sandbox unless --purge is given.

With names, only these hosts are removed: power, disk, and their lines in known_hosts and quick-start.yaml. Before, remove them
from the cluster: paictl node remove. "paictl sandbox up" with a larger number gives their names to new hosts.`,
		Example: `  paictl sandbox down
  paictl sandbox down pai-3`,
		ValidArgsFunction: completeHosts(&opts.Dir),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Hosts = args
			if opts.Purge && len(args) > 0 {
				return cmdutil.Usagef("--purge is for a sandbox that is removed as a whole")
			}
			return downRun(cmd.Context(), opts)
		},
	}
	addDirFlag(cmd, f, &opts.Dir)
	cmd.Flags().BoolVar(&opts.Purge, "purge", false, "also remove the cached base images")
	cmd.Flags().StringVar(&opts.CacheDir, "cache", sandbox.DefaultCache, "folder where base images are kept between sandboxes")
	return cmd
}

func downRun(ctx context.Context, opts *DownOptions) error {
	progress := func(line string) { fmt.Fprintln(opts.IO.Err, line) }
	s, err := sandbox.Load(opts.Dir, progress)
	if len(opts.Hosts) > 0 {
		if err != nil {
			return err
		}
		return s.Remove(ctx, opts.Hosts...)
	}
	if errors.Is(err, sandbox.ErrNone) {
		s, err = sandbox.Salvage(ctx, opts.Dir, progress)
	}
	switch {
	case errors.Is(err, sandbox.ErrNone):
		fmt.Fprintf(opts.IO.Err, "no sandbox in %s\n", opts.Dir)
	case err != nil:
		return err
	default:
		if err := s.Down(ctx); err != nil {
			return err
		}
	}
	if opts.Purge {
		return sandbox.Purge(opts.CacheDir)
	}
	return nil
}
