package config

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ShowOptions are the options of "paictl config show".
type ShowOptions struct {
	IO     *iostreams.IOStreams
	Dir    string
	Output cmdutil.Output
}

// NewCmdShow returns "paictl config show".
func NewCmdShow(f *cmdutil.Factory) *cobra.Command {
	opts := &ShowOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the values that are in effect, and where each comes from",
		Long: `Prints the configuration with defaults filled in and secrets masked. Each value names the file and
line it comes from, or "default".`,
		Example: `  paictl config show -p ./cluster
  paictl config show -p ./cluster -o json | jq '.[] | select(.origin == "default")'`,
		Args: cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			return showRun(opts)
		},
	}
	addDirFlag(cmd, f, &opts.Dir)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "yaml", "json", "table", "wide", "name")
	return cmd
}

func showRun(opts *ShowOptions) error {
	c, err := config.Load(opts.Dir)
	if err != nil {
		return err
	}
	secrets := catalogue.SecretPaths(c)
	if opts.Output.Is("yaml") {
		b, err := c.Annotated(secrets...)
		if err != nil {
			return err
		}
		_, err = opts.IO.Out.Write(b)
		return err
	}
	values, err := c.Values(secrets...)
	if err != nil {
		return err
	}
	t := cmdutil.Table{Header: []string{"FIELD", "VALUE", "ORIGIN"}}
	for _, v := range values {
		t.Rows = append(t.Rows, []string{v.Field, fmt.Sprint(v.Value), v.Origin})
	}
	return opts.Output.Write(opts.IO.Out, values, t)
}
