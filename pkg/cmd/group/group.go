// Package group contains the commands "paictl group ...", which grant rights to groups of users.
// In: flags, a kubeconfig. Out: groups with their grants and members, in tables and JSON.
package group

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdGroup returns "paictl group".
func NewCmdGroup(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Grant virtual clusters, storages and pages to groups of people",
		Long: `A group grants its members virtual clusters to submit jobs to, storages, web pages, or administration. A member of several
groups has the grants of all of them. A change takes effect at once, also for people who are signed in.

People who are added without a group are in the group default; members of the group administrators may do everything.

These commands are for administrators who signed in with "paictl login", and for operators with a kubeconfig of the cluster.`,
		Example: `  paictl group add vision --vc vision=see-jobs --vc default --storage datasets
  paictl group add-member vision ann bob
  paictl group set vision --add-vc nlp=crit,host-network
  paictl group show vision`,
	}
	cmd.AddCommand(newCmdPut(f, true), newCmdPut(f, false), NewCmdList(f), NewCmdShow(f), NewCmdDelete(f), newCmdMember(f, true), newCmdMember(f, false))
	return cmd
}
