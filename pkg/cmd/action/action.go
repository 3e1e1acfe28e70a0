// Package action contains the commands "paictl action ...", which show and cancel requests to stop or requeue jobs or to change machines.
// In: flags, a sign-in or a kubeconfig. Out: tables, texts and requests; a command can wait for the result of its request. Commands in other
// packages use Request to make requests.
package action

import (
	"context"

	"github.com/spf13/cobra"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// NewCmdAction returns "paictl action".
func NewCmdAction(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "action",
		Short: "Show and cancel requests to stop or requeue jobs, or to change machines",
		Long: `An action is a request of an administrator or of a policy of the alert handler: to stop or requeue a
job, to cordon, uncordon, drain or restart a machine, or to reset a GPU. It keeps its reason and its result. The service
alert-handler carries it out, and checks again that its author is an administrator. "paictl node drain" and its like
make such requests. Only administrators can see them.`,
		Example: `  paictl action list
  paictl action get drain-k2x7mq3v5a
  paictl action cancel drain-k2x7mq3v5a --reason "the fan is new"`,
	}
	cmd.AddCommand(NewCmdList(f), NewCmdGet(f), NewCmdCancel(f))
	return cmd
}

// completeNames completes the name of one action. If phases are given, it offers only actions in these phases.
func completeNames(f *cmdutil.Factory, fl *connection.Flags, phases ...actionsv1.Phase) cobra.CompletionFunc {
	q := client.ActionQuery{}
	for _, p := range phases {
		q.Phases = append(q.Phases, p.String())
	}
	read := func(s *client.Server, ctx context.Context) (*api.Actions, error) { return s.Actions(ctx, q) }
	return connection.Complete(f, fl, 1, read, func(page *api.Actions) (out []string) {
		for i := range page.Items {
			out = append(out, page.Items[i].Name+"\t"+operation(&page.Items[i]))
		}
		return out
	})
}

// operation returns the operation of an action with its target, for example a machine.
func operation(a *api.Action) string { return a.Operation.Verb() + " " + a.Target() }
