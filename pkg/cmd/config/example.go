package config

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/examples"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ExampleOptions are the options of "paictl config example".
type ExampleOptions struct {
	IO   *iostreams.IOStreams
	Name string
}

// NewCmdExample returns "paictl config example".
func NewCmdExample(f *cmdutil.Factory) *cobra.Command {
	opts := &ExampleOptions{IO: f.IO, Name: examples.Full}
	cmd := &cobra.Command{
		Use:   "example [NAME]",
		Short: "Print an example of a quick-start file",
		Long: `Prints a quick-start file. Without a name it prints ` + examples.Full + `, which shows and explains every field.
NAME is one of: ` + strings.Join(examples.Names(), ", ") + `.

"ha" has three masters; "original" is a file of the original OpenPAI.`,
		Example: `  paictl config example minimal > quick-start.yaml
  paictl config example | less`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(examples.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				opts.Name = args[0]
			}
			return exampleRun(opts)
		},
	}
	return cmd
}

func exampleRun(opts *ExampleOptions) error {
	b, err := examples.Text(opts.Name)
	if err != nil {
		return &cmdutil.UsageError{Err: err}
	}
	_, err = opts.IO.Out.Write(b)
	return err
}
