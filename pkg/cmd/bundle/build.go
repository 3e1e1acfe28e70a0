package bundle

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle/build"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// buildOptions are the options of "paictl bundle build".
type buildOptions struct {
	IO     *iostreams.IOStreams
	Dir    string
	Source string
}

func newCmdBuild(f *cmdutil.Factory, runF func(context.Context, *buildOptions) error) *cobra.Command {
	opts := &buildOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the bundle from source",
		Long: `Builds every program from pinned Go modules, and the images from those programs. The
modules come from the Go module proxy and are checked against go.sum; kube-proxy's and flannel's
images take iptables, nft, conntrack and kmod from this machine's Debian or Ubuntu packages. The
images of paictl's own programs are built from the source that paictl contains, and the services'
charts are packed.

It needs Go, gcc and libseccomp's headers, and about ten minutes on two cores. Finished parts are
kept: an interrupted build continues where it stopped, and a second build has nothing to do. Two
builds on the same machine give the same checksums.`,
		Example: `  paictl bundle build
  paictl bundle build -o /srv/bundle
  paictl bundle build --source ./bundle   # your own versions, in a checkout`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if opts.Dir, err = folder(f, opts.Dir, nil); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return buildRun(cmd.Context(), opts)
		},
	}
	addDirFlag(cmd, &opts.Dir)
	cmd.Flags().StringVar(&opts.Source, "source", "", "folder with the pinned modules (default: those inside paictl)")
	return cmd
}

func buildRun(ctx context.Context, opts *buildOptions) error {
	b, err := build.Run(ctx, build.Options{Dir: opts.Dir, Source: opts.Source, Progress: opts.IO.Err})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(opts.IO.Out, b.Dir())
	return err
}
