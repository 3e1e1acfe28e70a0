package bundle

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle/fetch"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/release"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/version"
)

// fetchOptions are the options of "paictl bundle fetch".
type fetchOptions struct {
	IO     *iostreams.IOStreams
	Dir    string
	Lock   string
	Mirror string
	Arch   string

	// From is the source: fromRelease or fromUpstream.
	From    string
	Address string
	Key     string
	DryRun  bool
	Release release.Key // the key that signs the release
}

// The sources that a bundle can be fetched from.
const (
	fromRelease  = "release"
	fromUpstream = "upstream"
)

func newCmdFetch(f *cmdutil.Factory, runF func(context.Context, *fetchOptions) error) *cobra.Command {
	opts := &fetchOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "fetch",
		Short: "Fetch the bundle from paictl's release, or from upstream releases and registries",
		Long: `Fetches the bundle that is published with this release of paictl (--from release), or every program from
its project's release and every image from its registry (--from upstream). A released paictl fetches from its release
unless you say otherwise; a paictl that you built yourself has no release, and fetches from upstream.

From a release, paictl downloads one archive. Its checksum must be in the list that the release's key signs, so that it
may come from any server: a mirror can only refuse to serve it. --address names the URL below which releases are
published; "release-address" in paictl's settings and PAICTL_RELEASE_ADDRESS do, too. --mirror is used only without them.

From upstream, it gets the versions that "paictl bundle build" builds. Each download is checked against the checksum
that the project publishes, and recorded in a lock file: a later fetch that would get a different file is refused.

Finished files are kept, and an interrupted download continues where it stopped.

--mirror replaces all hosts with one; its paths begin with the name of the upstream host:
  https://dl.k8s.io/release/…    comes from  https://mirror.example.org/dl.k8s.io/release/…
  registry.k8s.io/pause:3.10.2   comes from  mirror.example.org/registry.k8s.io/pause:3.10.2
It can also be set as "mirror" in paictl's settings, or in PAICTL_MIRROR.`,
		Example: `  paictl bundle fetch
  paictl bundle fetch --from release --address https://mirror.example.org/paictl/releases
  paictl bundle fetch --from release --dry-run
  paictl bundle fetch --from upstream -o /srv/bundle --lock ./bundle.lock
  paictl bundle fetch --from upstream --mirror https://mirror.example.org`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if opts.Dir, err = folder(f, opts.Dir, nil); err != nil {
				return err
			}
			if err := opts.complete(f, cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return fetchRun(cmd.Context(), opts)
		},
	}
	addDirFlag(cmd, &opts.Dir)
	fl := cmd.Flags()
	fl.StringVar(&opts.From, "from", "", "release or upstream (default: release in a released paictl, otherwise upstream)")
	fl.StringVar(&opts.Address, "address", "", "with --from release: URL below which releases are published (default: $PAICTL_RELEASE_ADDRESS, or "+release.Address+")")
	fl.StringVar(&opts.Key, "key", "", "with --from release: public key of releases, or a file with it (default: the key that this paictl was built with)")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "with --from release: check the signature, and show the archive that would be fetched")
	fl.StringVar(&opts.Lock, "lock", "", "with --from upstream: lock file (default: "+fetch.LockName+" in the bundle's folder)")
	fl.StringVar(&opts.Mirror, "mirror", "", "URL below which all upstream hosts are found")
	fl.StringVar(&opts.Arch, "arch", runtime.GOARCH, "architecture of the machines: "+strings.Join(fetch.Architectures(), " or "))
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions([]string{fromRelease, fromUpstream}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// complete reads the settings, chooses the source, and rejects flags that only apply to the other source.
func (o *fetchOptions) complete(f *cmdutil.Factory, cmd *cobra.Command) error {
	settings, err := f.Settings()
	if err != nil {
		return err
	}
	fl := cmd.Flags()
	if !fl.Changed("mirror") {
		o.Mirror = settings.GetString("mirror")
	}
	if o.From == "" {
		o.From = fromUpstream
		if release.PublicKey != "" {
			o.From = fromRelease
		}
	}
	var foreign []string
	switch o.From {
	case fromRelease:
		foreign = []string{"lock"}
		given := cmp.Or(o.Address, settings.GetString("release-address"))
		if given != "" { // the mirror's list
			if fl.Changed("mirror") {
				return cmdutil.Usagef("give the release's address, or --mirror")
			}
			o.Mirror = ""
		}
		o.Address = cmp.Or(given, release.Address)
		if o.Release, err = release.ReadKey(o.Key); err != nil {
			return err
		}
	case fromUpstream:
		foreign = []string{"address", "key", "dry-run"}
	default:
		return cmdutil.Usagef("--from %s: write %s or %s", o.From, fromRelease, fromUpstream)
	}
	for _, name := range foreign {
		if fl.Changed(name) {
			return cmdutil.Usagef("--%s has no effect with --from %s", name, o.From)
		}
	}
	return nil
}

func fetchRun(ctx context.Context, opts *fetchOptions) error {
	if !slices.Contains(fetch.Architectures(), opts.Arch) {
		return cmdutil.Usagef("--arch %s: the upstream projects publish %s", opts.Arch, strings.Join(fetch.Architectures(), " and "))
	}
	if opts.From == fromRelease {
		return releaseRun(ctx, opts)
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

// releaseRun fetches a bundle from a release of paictl.
func releaseRun(ctx context.Context, opts *fetchOptions) error {
	o := fetch.ReleaseOptions{
		Dir: opts.Dir, Address: opts.Address, Mirror: opts.Mirror, Version: version.Version, Arch: opts.Arch, Key: opts.Release, Progress: opts.IO.Err,
	}
	if opts.DryRun {
		a, err := fetch.FindRelease(ctx, o)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(opts.IO.Out, "would fetch %s\n  with sha256 %s\n  from %s\n  signed with the key %s\n", a.Name, a.SHA256, a.URL, a.Key)
		return err
	}
	b, err := fetch.FromRelease(ctx, o)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(opts.IO.Out, b.Dir())
	return err
}
