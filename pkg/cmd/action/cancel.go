package action

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// CancelOptions are the options of "paictl action cancel".
type CancelOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Name       string
	Reason     string
}

// NewCmdCancel returns "paictl action cancel".
func NewCmdCancel(f *cmdutil.Factory) *cobra.Command {
	opts := &CancelOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "cancel NAME",
		Short: "Withdraw an action that hasn't begun, or stop a drain",
		Long: `Withdraws a request, of a policy as well, that hasn't begun. A drain that has begun stops: the machine stays
cordoned, and the pods that haven't moved stay. All other operations can't be canceled once they have begun.`,
		Example:           `  paictl action cancel drain-k2x7mq3v5a --reason "the fan is new"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(f, &opts.Connection, actionsv1.PhaseNew, actionsv1.PhasePending, actionsv1.PhaseNoticed, actionsv1.PhaseActing),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if strings.TrimSpace(opts.Reason) == "" {
				return cmdutil.Usagef("say why: --reason TEXT")
			}
			return cancelRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Reason, "reason", "", "reason, in one sentence (required)")
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func cancelRun(ctx context.Context, opts *CancelOptions) error {
	w, err := opts.Connection.Open(opts.Factory)
	if err != nil {
		return err
	}
	a, err := w.Server.CancelAction(ctx, opts.Name, opts.Reason)
	if err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, a, cmdutil.Table{})
	}
	_, err = fmt.Fprintf(opts.Factory.IO.Out, "%s is canceled: %s\n", a.Name, terminal.Line(a.Canceled))
	return err
}
