// Package node contains the commands "paictl node ...", which manage the machines of a cluster.
// In: flags, host names, and a configuration folder. Out: a changed layout.yaml, and a cluster that matches the layout; pkg/config and
// pkg/cluster do the work. Requests to drain a machine are sent to the server.
package node

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdNode returns "paictl node".
func NewCmdNode(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "List, add, remove and drain machines of a cluster; manage their drivers and GPUs",
		Long: `Shows and changes the machines of a cluster. add and remove change layout.yaml and the cluster together, in one
command that you can repeat after any failure; comments and order of layout.yaml are kept. cordon, drain, restart and uncordon
request a change that the service alert-handler makes; administrators who signed in can use them, too.`,
		Example: `  paictl node list -p ./cluster
  paictl node add 10.0.0.14 -p ./cluster
  paictl node remove worker-4 -p ./cluster
  paictl node drain gpu-1 --reason "new memory" --wait
  paictl node driver upgrade -p ./cluster --dry-run`,
	}
	cmd.AddCommand(NewCmdList(f), NewCmdAdd(f), NewCmdRemove(f), NewCmdDriver(f), NewCmdGPU(f), NewCmdMetrics(f),
		NewCmdCordon(f), NewCmdUncordon(f), NewCmdDrain(f), NewCmdRestart(f))
	return cmd
}

// converge adapts all machines to the new layout. For example, it updates names in /etc/hosts and labels of nodes.
func converge(ctx context.Context, s *session.Session, fix bool) error {
	o := s.Options
	o.Limit = nil
	o.Command = s.UpCommand()
	_, err := cluster.Up(ctx, s.Spec, o, cluster.UpOptions{Fix: fix})
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	return err
}
