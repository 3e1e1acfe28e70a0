package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/iostreams"
	"github.com/openpai/paictl/pkg/sandbox"
)

// DownOptions are those of "paictl sandbox down".
type DownOptions struct {
	IO       *iostreams.IOStreams
	Dir      string
	CacheDir string
	Purge    bool
}

// NewCmdDown returns "paictl sandbox down". runF replaces the run in tests.
func NewCmdDown(f *cmdutil.Factory, runF func(context.Context, *DownOptions) error) *cobra.Command {
	opts := &DownOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox and remove everything it made",
		Long: `Stops the hosts, removes their files, network, address translation and cgroups, and restores
kernel settings. The base image is kept for the next sandbox unless --purge is given.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
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
