package bundle

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// listOptions are the options of "paictl bundle list".
type listOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	Dir    string
	Kind   string
}

func newCmdList(f *cmdutil.Factory, runF func(context.Context, *listOptions) error) *cobra.Command {
	opts := &listOptions{IO: f.IO}
	kinds := bundle.Kinds()
	cmd := &cobra.Command{
		Use:   "list [DIR]",
		Short: "Show what is in a bundle",
		Long:  "Shows the artifacts of the bundle in " + dirHelp + ".",
		Example: `  paictl bundle list
  paictl bundle list /srv/bundle --kind image
  paictl bundle list -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opts.Dir, err = folder(f, opts.Dir, args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return listRun(opts)
		},
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	addBundleFlag(cmd, &opts.Dir)
	cmd.Flags().StringVar(&opts.Kind, "kind", "", "only artifacts of this kind: "+strings.Join(kinds, ", "))
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func listRun(opts *listOptions) error {
	b, err := bundle.Open(opts.Dir)
	if err != nil {
		return err
	}
	m := b.Manifest()
	m.Artifacts = b.List(opts.Kind)
	if len(m.Artifacts) == 0 {
		return cmdutil.Usagef("%s has no artifact of kind %q; see paictl bundle list --help", opts.Dir, opts.Kind)
	}
	return opts.Output.Write(opts.IO.Out, m, artifactTable(m.Artifacts))
}

func artifactTable(list []bundle.Artifact) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"NAME", "KIND", "VERSION", "MB", "SHA256", "NODES", "SOURCE"}}
	for _, a := range list {
		nodes := strings.Join(a.Roles, ",")
		switch {
		case a.Kind == bundle.KindTool || a.Kind == bundle.KindChart:
			nodes = "none"
		case a.Kind == bundle.KindDriver:
			nodes = a.System
		case nodes == "":
			nodes = "all"
		}
		t.Rows = append(t.Rows, []string{a.Name, a.Kind, a.Version, fmt.Sprintf("%.1f", float64(a.Size)/1e6), a.SHA256[:12], nodes, a.Source})
	}
	return t
}
