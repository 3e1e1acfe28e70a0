package node

import (
	"slices"

	"github.com/spf13/cobra"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/action"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// requested is the part of the help texts that cordon, uncordon, drain and restart share.
const requested = `

The command makes a request, an action, which the service alert-handler carries out: see "paictl action". Administrators
can make it after "paictl login", and operators with a kubeconfig. Affected people read the reason.

Exit codes with --wait: 0 if it is done, 1 if it failed, was refused, canceled, or has expired, 130 after Ctrl-C, which
leaves the request as it is.`

// NewCmdCordon returns "paictl node cordon".
func NewCmdCordon(f *cmdutil.Factory) *cobra.Command {
	return newCmdRequest(f, actionsv1.OperationCordon, &cobra.Command{
		Use:   "cordon NODE",
		Short: "Take a machine out of service: it gets no more jobs, and its jobs continue",
		Long:  `Cordons a machine: it gets no more pods, and those that it has continue.` + requested,
		Example: `  paictl node cordon gpu-1 --reason "a fan is loud"
  paictl node cordon gpu-1 --reason "new memory" --grace 2h`,
	})
}

// NewCmdUncordon returns "paictl node uncordon".
func NewCmdUncordon(f *cmdutil.Factory) *cobra.Command {
	return newCmdRequest(f, actionsv1.OperationUncordon, &cobra.Command{
		Use:     "uncordon NODE",
		Short:   "Return a machine to service",
		Long:    `Lets a cordoned machine get pods again.` + requested,
		Example: `  paictl node uncordon gpu-1 --reason "the fan is new" --wait`,
	})
}

// NewCmdDrain returns "paictl node drain".
func NewCmdDrain(f *cmdutil.Factory) *cobra.Command {
	return newCmdRequest(f, actionsv1.OperationDrain, &cobra.Command{
		Use:   "drain NODE",
		Short: "Take a machine out of service, and move its jobs elsewhere",
		Long: `Cordons a machine and evicts its pods: tasks of jobs run again elsewhere. Disruption budgets hold. Pods of DaemonSets
stay. The drain fails after alert-handler.drainTimeout, and the machine stays cordoned.` + requested,
		Example: `  paictl node drain gpu-1 --reason "new memory" --dry-run
  paictl node drain gpu-1 --reason "new memory" --grace 2h --wait`,
	})
}

// NewCmdRestart returns "paictl node restart".
func NewCmdRestart(f *cmdutil.Factory) *cobra.Command {
	return newCmdRequest(f, actionsv1.OperationRestartMachine, &cobra.Command{
		Use:   "restart NODE",
		Short: "Restart a drained machine with GPUs",
		Long: `Has the agent of a machine restart it, as "systemctl reboot" does. The machine has to be drained, and stays cordoned. The
request succeeds when the machine is ready again and its agent finds no fault of its GPUs. It fails after 30 minutes, and
says what to do. It is refused if the machine belongs to the control plane, and if it would have no GPU driver after its
start. Restarts are off by default: alert-handler.restartMachines and agent.restartMachines.` + requested,
		Example: `  paictl node drain gpu-1 --reason "XID 79" --wait
  paictl node restart gpu-1 --reason "XID 79" --dry-run
  paictl node restart gpu-1 --reason "XID 79" --wait
  paictl node uncordon gpu-1 --reason "it has restarted" --wait`,
	})
}

func newCmdRequest(f *cmdutil.Factory, do actionsv1.Operation, cmd *cobra.Command) *cobra.Command {
	opts := &action.Request{}
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.Check(); err != nil {
			return err
		}
		return opts.Run(cmd.Context(), do, args[0])
	}
	cmd.ValidArgsFunction = connection.Complete(f, &opts.Connection, 1, (*client.Server).GPUs, func(all *api.GPUs) []string { return slices.Clone(all.Nodes) })
	opts.AddFlags(f, cmd)
	return cmd
}
