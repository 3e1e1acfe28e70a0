package bundle

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle/fetch"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// fetchOptions of "paictl bundle fetch".
type fetchOptions struct {
	IO     *iostreams.IOStreams
	Dir    string
	Lock   string
	Mirror string
	Arch   string
}

func newCmdFetch(f *cmdutil.Factory, runF func(context.Context, *fetchOptions) error) *cobra.Command {
	opts := &fetchOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "fetch",
		Short: "Fetch the bundle from upstream releases and registries",
		Long: `Fetches every program from its project's release and every image from its registry, in the
versions that "paictl bundle build" builds. Each download is checked against the checksum that the
project publishes, and recorded in a lock file: a later fetch that would get a different file is
refused. Finished files are kept, and an interrupted download continues where it stopped.

--mirror replaces all hosts by one; its paths begin with the name of the upstream host:
  https://dl.k8s.io/release/…    comes from  https://mirror.example.org/dl.k8s.io/release/…
  registry.k8s.io/pause:3.10.2   comes from  mirror.example.org/registry.k8s.io/pause:3.10.2
It can also be set as "mirror" in paictl's settings, or in PAICTL_MIRROR.`,
		Example: `  paictl bundle fetch
  paictl bundle fetch -o /srv/bundle --lock ./bundle.lock
  paictl bundle fetch --mirror https://mirror.example.org`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if opts.Dir, err = folder(f, opts.Dir, nil); err != nil {
				return err
			}
			if !cmd.Flags().Changed("mirror") {
				settings, err := f.Settings()
				if err != nil {
					return err
				}
				opts.Mirror = settings.GetString("mirror")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return fetchRun(cmd.Context(), opts)
		},
	}
	addDirFlag(cmd, &opts.Dir)
	cmd.Flags().StringVar(&opts.Lock, "lock", "", "lock file (default: "+fetch.LockName+" in the bundle's folder)")
	cmd.Flags().StringVar(&opts.Mirror, "mirror", "", "URL below which all upstream hosts are found")
	cmd.Flags().StringVar(&opts.Arch, "arch", runtime.GOARCH, "architecture of the machines: "+strings.Join(fetch.Architectures(), " or "))
	return cmd
}

func fetchRun(ctx context.Context, opts *fetchOptions) error {
	if !slices.Contains(fetch.Architectures(), opts.Arch) {
		return cmdutil.Usagef("--arch %s: the upstream projects publish %s", opts.Arch, strings.Join(fetch.Architectures(), " and "))
	}
	catalogue, err := fetch.Upstream(opts.Arch)
	if err != nil {
		return err
	}
	b, err := fetch.Run(ctx, fetch.Options{
		Dir: opts.Dir, Lock: opts.Lock, Mirror: opts.Mirror, Catalogue: catalogue, Progress: opts.IO.Err,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(opts.IO.Out, b.Dir())
	return err
}
