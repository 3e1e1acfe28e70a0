// Package user contains the commands "paictl user ...", which manage the users of a cluster.
// In: flags, a kubeconfig, passwords from the terminal or stdin. Out: users, in tables and JSON; generated passwords, shown once.
package user

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// NewCmdUser returns "paictl user".
func NewCmdUser(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Add and remove the people who use the cluster",
		Long: `People sign in at the server of the cluster (the service rest-server). Their groups grant their permissions:
see "paictl group".

These commands are for administrators who signed in with "paictl login", and for operators with a kubeconfig of the cluster. With a
kubeconfig they work without the server, so you can use them to regain access if every password is lost.`,
		Example: `  paictl user add ann --administrator
  paictl user add bob --email bob@example.org --group vision
  paictl user import people.csv
  paictl user passwd bob
  paictl user remove bob`,
	}
	cmd.AddCommand(
		NewCmdAdd(f), NewCmdList(f), NewCmdShow(f), NewCmdSet(f), NewCmdPasswd(f), newCmdDisable(f, true), newCmdDisable(f, false),
		NewCmdRemove(f), NewCmdLink(f), NewCmdImport(f),
	)
	return cmd
}

// CompleteUsers completes up to most names of users. If most is 0, it completes any number of names; if most is cmdutil.FlagValue, it completes
// the value of a flag.
func CompleteUsers(f *cmdutil.Factory, o *connection.Flags, most int) cobra.CompletionFunc {
	return connection.Complete(f, o, most, (*client.Server).Users, func(all *api.Users) (out []string) {
		for i := range all.Items {
			out = append(out, all.Items[i].Name)
		}
		return out
	})
}

// CompleteGroups completes up to most names of groups. It treats most as CompleteUsers does.
func CompleteGroups(f *cmdutil.Factory, o *connection.Flags, most int) cobra.CompletionFunc {
	return connection.Complete(f, o, most, (*client.Server).Groups, func(all *api.Groups) (out []string) {
		for i := range all.Items {
			out = append(out, all.Items[i].Name)
		}
		return out
	})
}
