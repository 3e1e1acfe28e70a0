package service

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// NewCmdValues returns "paictl service values".
func NewCmdValues(f *cmdutil.Factory) *cobra.Command {
	var output cmdutil.Output
	cmd := &cobra.Command{
		Use:   "values NAME",
		Short: "Show the values that a service's chart is rendered with",
		Long: `Prints all values of a service: the chart's own, overridden by its section of
services-configuration.yaml and by the values that paictl adds from the layout. Secrets are masked.

Without -p it asks the cluster for its configuration; with -p it reads a folder and needs no cluster.`,
		Example: `  paictl service values prometheus
  paictl service values prometheus -p ./cluster -o json | jq .retention`,
	}
	addRendered(f, cmd, func(_ *services.Desired, s *catalogue.Service) error {
		values, err := services.Values(s)
		if err != nil {
			return err
		}
		return output.Write(f.IO.Out, values, cmdutil.Table{})
	})
	cmdutil.AddOutputFlag(cmd, &output, "yaml", "json")
	return cmd
}
