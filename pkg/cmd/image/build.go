package image

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services/image"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// buildOptions are the options of "paictl image build".
type buildOptions struct {
	IO    *iostreams.IOStreams
	Dir   string
	Names []string
}

func newCmdBuild(f *cmdutil.Factory, runF func(context.Context, *buildOptions) error) *cobra.Command {
	opts := &buildOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "build [NAME...]",
		Short: "Build the images of paictl's own programs",
		Long: `Builds the images of paictl's own programs, all of them or those named, into a folder. paictl
contains their source; the build needs Go, but not Docker. Each image contains one static program and
nothing else, runs as an unprivileged user, and has the same digest in every build from this source.

"paictl bundle build" makes the same images as part of a bundle.`,
		Example: `  paictl image build
  paictl image build pai-watchdog -o /srv/images`,
		ValidArgsFunction: cobra.FixedCompletions(image.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Names = append(opts.Names, args...)
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return buildRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.Dir, "output", "o", image.DefaultDir, "folder of the images")
	_ = cmd.MarkFlagDirname("output")
	addNamesFlag(cmd, &opts.Names)
	return cmd
}

func buildRun(ctx context.Context, opts *buildOptions) error {
	b, err := image.Build(ctx, opts.Dir, opts.Names, opts.IO.Err)
	if err != nil {
		return err
	}
	t := cmdutil.Table{Header: []string{"NAME", "IMAGE", "DIGEST", "FILE"}}
	for _, a := range b.List(bundle.KindImage) {
		t.Rows = append(t.Rows, []string{a.Name, a.Image, a.Digest, b.File(a)})
	}
	var table cmdutil.Output
	return table.Write(opts.IO.Out, nil, t)
}
