package service

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// NewCmdTemplate returns "paictl service template".
func NewCmdTemplate(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "template NAME",
		Short: "Print the manifests that the first start of a service would send",
		Long: `Renders the service's chart with the values of the configuration and prints the manifests. Secrets are
masked. "paictl service start --dry-run" shows what they would change.

Without -p it asks the cluster for its configuration; with -p it reads a folder and needs no cluster.`,
		Example: `  paictl service template prometheus
  paictl service template prometheus -p ./cluster | kubectl apply --dry-run=server -f -`,
	}
	addRendered(f, cmd, func(d *services.Desired, s *catalogue.Service) error {
		manifest, err := d.Template(s)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f.IO.Out, manifest)
		return err
	})
	return cmd
}

// addRendered makes a command read the configuration, and call run with the service that the command names.
func addRendered(f *cmdutil.Factory, cmd *cobra.Command, run func(*services.Desired, *catalogue.Service) error) {
	fl := &Flags{}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		name, err := fl.one(cmd)
		if err != nil {
			return err
		}
		d, c, err := fl.load(cmd.Context(), f)
		if err != nil {
			return c.explain(err)
		}
		s, err := d.Service(cmd.Context(), name, fetcher(f))
		if err != nil {
			return err
		}
		return run(d, s)
	}
	fl.add(cmd)
	fl.addNames(cmd, "the service", "")
	fl.addDir(cmd, f, "use the configuration of this folder instead of the cluster's")
}
