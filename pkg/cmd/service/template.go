package service

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// TemplateOptions are the options of "paictl service template".
type TemplateOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Name    string
}

// NewCmdTemplate returns "paictl service template".
func NewCmdTemplate(f *cmdutil.Factory) *cobra.Command {
	opts := &TemplateOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "template NAME",
		Short: "Print the manifests that the first start of a service would send",
		Long: `Renders the service's chart with the values of the configuration and prints the manifests. Secrets are
masked. "paictl service start --dry-run" shows what they would change.

Without -p it asks the cluster for its configuration; with -p it reads a folder and needs no cluster.`,
		Example: `  paictl service template prometheus
  paictl service template prometheus -p ./cluster | kubectl apply --dry-run=server -f -`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if opts.Name, err = opts.Flags.one(cmd); err != nil {
				return err
			}
			return templateRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addNames(cmd, "the service", "")
	opts.Flags.addDir(cmd, f, "use the configuration of this folder instead of the cluster's")
	return cmd
}

func templateRun(ctx context.Context, opts *TemplateOptions) error {
	d, c, err := opts.Flags.load(ctx, opts.Factory)
	if err != nil {
		return c.explain(err)
	}
	s, err := d.Service(ctx, opts.Name, fetcher(opts.Factory))
	if err != nil {
		return err
	}
	manifest, err := d.Template(s)
	if err != nil {
		return err
	}
	_, err = io.WriteString(opts.Factory.IO.Out, manifest)
	return err
}
