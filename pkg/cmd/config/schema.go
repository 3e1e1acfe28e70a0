package config

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// SchemaOptions are the options of "paictl config schema".
type SchemaOptions struct {
	IO     *iostreams.IOStreams
	File   string
	OutDir string
}

// NewCmdSchema returns "paictl config schema".
func NewCmdSchema(f *cmdutil.Factory) *cobra.Command {
	opts := &SchemaOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "schema [FILE]",
		Short: "Print the JSON schema of a configuration file, for editors",
		Long: `Prints the JSON schema (draft 2020-12) of one file, or writes those of all files into a folder.
Without FILE and -o it lists the files that have a schema.

Editors with a YAML language server find it by a comment at the top of a file:

  # yaml-language-server: $schema=./schema/layout.schema.json`,
		Example: `  paictl config schema layout.yaml
  paictl config schema -o ./schema`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(config.SchemaNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				opts.File = args[0]
			}
			if opts.File != "" && !config.HasSchema(opts.File) {
				return cmdutil.Usagef("there is no schema of %q (see %s without arguments)", opts.File, cmd.CommandPath())
			}
			return schemaRun(opts)
		},
	}
	cmd.Flags().StringVarP(&opts.OutDir, "output", "o", "", "folder to write the schemas into")
	_ = cmd.MarkFlagDirname("output")
	return cmd
}

func schemaRun(opts *SchemaOptions) error {
	names := config.SchemaNames()
	if opts.File != "" {
		names = []string{opts.File}
	}
	files := map[string][]byte{}
	for _, name := range names {
		b, err := config.Schema(name, catalogue.Schemas())
		if err != nil {
			return err
		}
		files[config.SchemaFile(name)] = b
	}
	switch {
	case opts.OutDir != "":
		return config.WriteFolder(opts.OutDir, files, func(string) bool { return false }, true)
	case opts.File != "":
		_, err := opts.IO.Out.Write(files[config.SchemaFile(opts.File)])
		return err
	}
	for _, name := range names {
		fmt.Fprintln(opts.IO.Out, name)
	}
	return nil
}
