package alert

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// UnsilenceOptions are the options of "paictl alert unsilence".
type UnsilenceOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	ID         string
}

// NewCmdUnsilence returns "paictl alert unsilence".
func NewCmdUnsilence(f *cmdutil.Factory) *cobra.Command {
	opts := &UnsilenceOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "unsilence ID",
		Short: "End a silence",
		Long: `Ends a silence now: the notifications of its alerts are sent again. One that has ended stays as it is. "paictl alert
silences" shows the ids.`,
		Example:           `  paictl alert unsilence 5e1a5c52-6c23-4a0f-9a6c-1f3f1f9c3c11`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSilences(f, &opts.Connection),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ID = args[0]
			return unsilenceRun(cmd.Context(), opts)
		},
	}
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func unsilenceRun(ctx context.Context, opts *UnsilenceOptions) error {
	w, err := opts.Connection.Open(opts.Factory)
	if err != nil {
		return err
	}
	s, err := w.Server.EndSilence(ctx, opts.ID)
	if err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, s, cmdutil.Table{})
	}
	_, err = fmt.Fprintf(opts.Factory.IO.Out, "%s has ended: %s\n", s.ID, terminal.Line(matchers(s.Matchers)))
	return err
}
