package job

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// SchemaOptions are the options of "paictl job schema".
type SchemaOptions struct {
	IO *iostreams.IOStreams
}

// NewCmdSchema returns "paictl job schema".
func NewCmdSchema(f *cmdutil.Factory) *cobra.Command {
	opts := &SchemaOptions{IO: f.IO}
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of job files, for editors",
		Long: `Prints the JSON schema (draft 2020-12) of job files. Editors with a YAML language server find it by a
comment at the top of a file:

  # yaml-language-server: $schema=./job.schema.json`,
		Example: `  paictl job schema > job.schema.json`,
		Args:    cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			_, err := opts.IO.Out.Write(protocol.Schema())
			return err
		},
	}
}
