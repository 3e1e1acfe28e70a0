// Package user is the commands "paictl user ...": the people of a cluster.
// In: flags, a kubeconfig, passwords from the terminal or stdin. Out: people, in tables and JSON; passwords that were made, once.
package user

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
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

// completionTimeout keeps the shell from waiting for a cluster that doesn't answer.
const completionTimeout = 3 * time.Second

// CompleteUsers completes names of people, each once.
func CompleteUsers(f *cmdutil.Factory, o *connection.Flags, many bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return complete(f, o, func(args []string) bool { return many || len(args) == 0 }, func(ctx context.Context, p *People) (out []string) {
		users, _ := p.Users(ctx)
		for i := range users {
			out = append(out, users[i].Name)
		}
		return out
	})
}

// CompleteGroups completes names of groups, as arguments or as the value of a flag.
func CompleteGroups(f *cmdutil.Factory, o *connection.Flags, wanted func(args []string) bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return complete(f, o, wanted, func(ctx context.Context, p *People) (out []string) {
		groups, _ := p.Groups(ctx)
		for i := range groups {
			out = append(out, groups[i].Name)
		}
		return out
	})
}

func complete(f *cmdutil.Factory, o *connection.Flags, wanted func([]string) bool, names func(context.Context, *People) []string,
) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if !wanted(args) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		p, err := Open(f, *o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(ctx, p), cobra.ShellCompDirectiveNoFileComp
	}
}
