package image

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services/image"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// listOptions are the options of "paictl image list".
type listOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	From   string
	All    bool
	Remote bool

	Destination image.Destination
	Access      image.Access
}

// listed is the output of "list -o json" about one image.
type listed struct {
	Name   string `json:"name"`
	Image  string `json:"image"`
	Own    bool   `json:"own"`
	Bundle bool   `json:"bundle"` // whether the folder contains it
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"` // bytes, of the file
	// Target is the name of the image in the registry. Registry is the state of this name in the registry.
	Target   string      `json:"target,omitempty"`
	Registry image.State `json:"registry,omitempty"`
}

func newCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &listOptions{IO: f.IO}
	var where whereFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the images, and which of them a registry has",
		Long: `Shows paictl's own images, with --all also the others of the bundle. With --remote it asks the
registry for each: "present" means this image, "other" a different one with the same name.`,
		Example: `  paictl image list
  paictl image list --all -o json
  paictl image list --remote -p ./cluster`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if opts.From, err = from(f, opts.From); err != nil {
				return err
			}
			if fl := cmd.Flags(); !opts.Remote && (fl.Changed("registry") || fl.Changed("tag") || fl.Changed("mirror")) {
				return cmdutil.Usagef("--registry, --tag and --mirror say which registry --remote asks: add --remote, or remove them")
			}
			if opts.Remote {
				var named bool
				if opts.Destination, opts.Access, named, err = where.registry(f); err != nil {
					return err
				}
				if !named {
					return cmdutil.Usagef("--remote needs to know the registry: give -p DIR or --registry HOST/PROJECT")
				}
			}
			return listRun(cmd.Context(), opts)
		},
	}
	where.add(cmd)
	addFromFlag(cmd, &opts.From)
	cmd.Flags().BoolVar(&opts.All, "all", false, "also upstream images")
	cmd.Flags().BoolVar(&opts.Remote, "remote", false, "ask the registry which images it has")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *listOptions) error {
	b, err := bundle.Open(opts.From)
	if err != nil {
		// paictl's own images can be listed without a bundle.
		fmt.Fprintf(opts.IO.Err, "no images in %s: %v\n", opts.From, err)
	}
	list := images(b, opts.All)
	for i := range list {
		if opts.Remote {
			if err := ask(ctx, opts, &list[i]); err != nil {
				return err
			}
		}
	}
	return opts.Output.Write(opts.IO.Out, list, listTable(list, opts.Remote))
}

// images returns paictl's own images and, if all is set, the other images of the bundle. b may be nil.
func images(b *bundle.Bundle, all bool) []listed {
	var out []listed
	for _, o := range image.Owned() {
		out = append(out, listed{Name: o.Name, Image: o.Ref, Own: true})
	}
	if b == nil {
		return out
	}
	for _, a := range b.List(bundle.KindImage) {
		i := slices.IndexFunc(out, func(l listed) bool { return l.Name == a.Name })
		if i < 0 && !all {
			continue
		}
		if i < 0 {
			i, out = len(out), append(out, listed{Name: a.Name})
		}
		out[i].Image, out[i].Bundle, out[i].Digest, out[i].Size = a.Image, true, a.Digest, a.Size
	}
	return out
}

// ask reads the state of an image in the registry. It skips upstream images if no mirror is configured.
func ask(ctx context.Context, opts *listOptions, l *listed) error {
	a := bundle.Artifact{Name: l.Name, Image: l.Image, Digest: l.Digest}
	target, err := opts.Destination.Target(a, l.Own)
	if err != nil {
		return nil //nolint:nilerr // there is no registry to query, and the table shows that
	}
	r, err := opts.Access.Look(ctx, image.Item{Artifact: a, Own: l.Own, Target: target})
	if err != nil {
		return err
	}
	l.Target, l.Registry = target, r.State
	return nil
}

func listTable(list []listed, remote bool) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"NAME", "IMAGE", "DIGEST", "MB", "BUNDLE"}}
	if remote {
		t.Header = append(t.Header, "REGISTRY", "TARGET")
	}
	for _, l := range list {
		row := []string{l.Name, l.Image, "-", "-", "no"}
		if l.Bundle {
			row = []string{l.Name, l.Image, short(l.Digest), fmt.Sprintf("%.1f", float64(l.Size)/1e6), "yes"}
		}
		if remote {
			row = append(row, cmp.Or(string(l.Registry), "-"), cmp.Or(l.Target, "-"))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// short returns the beginning of a digest, which is long enough to distinguish images.
func short(digest string) string { return digest[:min(len(digest), len("sha256:")+12)] }
