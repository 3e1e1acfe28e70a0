// Package cluster contains the commands "paictl cluster ...", which turn machines into a Kubernetes cluster, and back.
// In: flags and a configuration folder. Out: the results of pkg/cluster, as progress on stderr and data on stdout.
package cluster

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/cluster/backup"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdCluster returns "paictl cluster".
func NewCmdCluster(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Turn machines into a cluster, show its state, take it down",
		Long: `Turns the machines of a configuration folder into a Kubernetes cluster, and restores them.

Every command first reads the state of the machines and changes only what differs from the
configuration. After any failure, run it again.`,
		Example: `  paictl config generate -i quick-start.yaml -o ./cluster
  paictl cluster plan -p ./cluster
  paictl cluster up -p ./cluster
  paictl cluster kubeconfig -p ./cluster
  paictl cluster recover -p ./cluster --dead master-1 --new master-4=10.0.0.4`,
	}
	cmd.AddCommand(NewCmdUp(f), NewCmdPlan(f), NewCmdPreflight(f), NewCmdStatus(f, nil), NewCmdUpgrade(f, nil), NewCmdCerts(f), NewCmdSecrets(f), NewCmdKubeconfig(f), NewCmdRecover(f), NewCmdRecreate(f), NewCmdDown(f), backup.NewCmdBackup(f), backup.NewCmdRestore(f))
	return cmd
}
