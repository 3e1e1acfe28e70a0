// Package cluster is the commands "paictl cluster ...": from machines to a Kubernetes
// cluster, and back.
// In: flags and a configuration folder. Out: what pkg/cluster did or found, as progress on
// stderr and data on stdout.
package cluster

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdCluster returns "paictl cluster".
func NewCmdCluster(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Bring machines up as a cluster, look at it, take it down",
		Long: `Turns the machines of a configuration folder into a Kubernetes cluster, and back.

Every command reads the machines' own state first and changes only what differs from the
configuration, so that any of them can be run again after any failure.`,
		Example: `  paictl config generate -i quick-start.yaml -o ./cluster
  paictl cluster plan -p ./cluster
  paictl cluster up -p ./cluster
  paictl cluster kubeconfig -p ./cluster`,
	}
	cmd.AddCommand(NewCmdUp(f, nil), NewCmdPlan(f, nil), NewCmdPreflight(f, nil), NewCmdStatus(f, nil), NewCmdKubeconfig(f, nil), NewCmdRecreate(f, nil), NewCmdDown(f, nil))
	return cmd
}
