package service

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services"
)

// ValuesOptions are the options of "paictl service values".
type ValuesOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Output  cmdutil.Output
	Name    string
}

// NewCmdValues returns "paictl service values".
func NewCmdValues(f *cmdutil.Factory) *cobra.Command {
	opts := &ValuesOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "values NAME",
		Short: "Show the values that a service's chart is rendered with",
		Long: `Prints all values of a service: the chart's own, overridden by its section of
services-configuration.yaml and by the values that paictl adds from the layout. Secrets are masked.

Without -p it asks the cluster for its configuration; with -p it reads a folder and needs no cluster.`,
		Example: `  paictl service values prometheus
  paictl service values prometheus -p ./cluster -o json | jq .retention`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if opts.Name, err = opts.Flags.one(cmd); err != nil {
				return err
			}
			return valuesRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addNames(cmd, "the service", "")
	opts.Flags.addDir(cmd, f, "use the configuration of this folder instead of the cluster's")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "yaml", "json")
	return cmd
}

func valuesRun(ctx context.Context, opts *ValuesOptions) error {
	d, c, err := opts.Flags.load(ctx, opts.Factory)
	if err != nil {
		return c.explain(err)
	}
	s, err := d.Service(ctx, opts.Name, fetcher(opts.Factory))
	if err != nil {
		return err
	}
	values, err := services.Values(s)
	if err != nil {
		return err
	}
	return opts.Output.Write(opts.Factory.IO.Out, values, cmdutil.Table{})
}
