package image

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services/image"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/version"
)

// pushOptions are the options of "paictl image push".
type pushOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	From   string
	Names  []string
	All    bool
	DryRun bool

	Destination image.Destination
	Access      image.Access
}

// pushed is the output of "push -o json" about one image.
type pushed struct {
	Name   string      `json:"name"`
	Image  string      `json:"image"`
	Target string      `json:"target"`
	Digest string      `json:"digest"`
	State  image.State `json:"state"`
	// Found is the digest of another image that already has the name in the registry.
	Found string `json:"found,omitempty"`
}

func newCmdPush(f *cmdutil.Factory, runF func(context.Context, *pushOptions) error) *cobra.Command {
	opts := &pushOptions{IO: f.IO}
	var where whereFlags
	cmd := &cobra.Command{
		Use:   "push [NAME...]",
		Short: "Push images to the registry that the configuration names",
		Long: `Pushes paictl's own images to cluster.docker-registry of the configuration, as
DOMAIN/NAMESPACE/NAME:DOCKER-TAG. With --all it pushes the upstream images of the bundle to
cluster.docker-registry.mirror, where they keep their names after the mirror's:
quay.io/prometheus/prometheus:v3.15.0 becomes MIRROR/prometheus/prometheus:v3.15.0.

Images that the registry already has, by digest, are not sent again. paictl logs in with username and
password of cluster.docker-registry, or with the login that docker or podman stores for the registry.
It verifies certificates; plain HTTP is only used for a registry on this machine.`,
		Example: `  paictl image push -p ./cluster
  paictl image push -p ./cluster --all
  paictl image push pai-watchdog --registry registry.example.org/openpai --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Names = append(opts.Names, args...)
			var err error
			if opts.From, err = from(f, opts.From); err != nil {
				return err
			}
			var named bool
			if opts.Destination, opts.Access, named, err = where.registry(f); err != nil {
				return err
			}
			if !named {
				return cmdutil.Usagef("name the registry: -p DIR or --registry HOST/PROJECT (see %s --help)", cmd.CommandPath())
			}
			if opts.All && len(opts.Names) > 0 {
				return cmdutil.Usagef("give names or --all, not both")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return pushRun(cmd.Context(), opts)
		},
	}
	where.add(cmd)
	addFromFlag(cmd, &opts.From)
	cmd.Flags().BoolVar(&opts.All, "all", false, "also upstream images, to the mirror")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "ask the registry which images it has, and send none")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	addNamesFlag(cmd, &opts.Names)
	cmd.ValidArgsFunction = cobra.FixedCompletions(image.Names(), cobra.ShellCompDirectiveNoFileComp)
	return cmd
}

func pushRun(ctx context.Context, opts *pushOptions) error {
	b, err := bundle.Open(opts.From)
	if err != nil {
		return err
	}
	items, err := image.Plan(b, opts.Destination, opts.Names, opts.All)
	if err != nil {
		return err
	}
	noteVersion(opts, items)
	p := image.Pusher{Access: opts.Access, DryRun: opts.DryRun, Progress: progress(opts.IO)}
	results, err := p.Push(ctx, b, items)
	list := make([]pushed, 0, len(results))
	for _, r := range results {
		list = append(list, report(r))
	}
	if err != nil && len(list) == 0 {
		return err
	}
	if werr := opts.Output.Write(opts.IO.Out, list, pushTable(list)); werr != nil && err == nil {
		err = werr
	}
	return err
}

// noteVersion prints a note if the tag of the images isn't paictl's version. This can occur because the tag comes from the configuration, and
// the programs come from the bundle.
func noteVersion(opts *pushOptions, items []image.Item) {
	for _, i := range items {
		if i.Own && opts.Destination.Tag != version.Tag() {
			fmt.Fprintf(opts.IO.Err, "note: programs of %s are tagged %s, as the configuration says\n", i.Version, opts.Destination.Tag)
			return
		}
	}
}

func report(r image.Result) pushed {
	p := pushed{Name: r.Name, Image: r.Image, Target: r.Target, Digest: r.Digest, State: r.State}
	if r.State == image.Other {
		p.Found = r.Found
	}
	return p
}

// progress returns a function that prints a line per image. On a terminal, it also updates a line with the progress while an image is sent.
func progress(io *iostreams.IOStreams) func(image.Event) {
	return func(e image.Event) {
		line := fmt.Sprintf("[%d/%d] %s", e.N, e.Total, e.Item.Target)
		if e.State == "" {
			if io.CanRedraw() {
				line = fmt.Sprintf("%s  %.1f of %.1f MB", line, float64(e.Sent)/1e6, float64(e.Bytes)/1e6)
				// Limit the line to the width of the terminal: if the line wrapped, a part of it would remain on the screen.
				fmt.Fprint(io.Err, "\r\x1b[K", line[max(0, len(line)-io.Width()+1):])
			}
			return
		}
		if io.CanRedraw() {
			line = "\r\x1b[K" + line
		}
		fmt.Fprintf(io.Err, "%s  %s\n", line, e.State)
	}
}

func pushTable(list []pushed) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"NAME", "TARGET", "DIGEST", "STATE"}}
	for _, p := range list {
		t.Rows = append(t.Rows, []string{p.Name, p.Target, short(p.Digest), string(p.State)})
	}
	return t
}
