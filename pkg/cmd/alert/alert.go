// Package alert contains the commands "paictl alert ...", which show firing alerts and manage silences.
// In: flags, a sign-in or a kubeconfig. Out: tables, texts, and silences in Alertmanager.
package alert

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// NewCmdAlert returns "paictl alert".
func NewCmdAlert(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alert",
		Short: "Show the alerts that fire, and silence them",
		Long: `An alert fires while something is wrong with a machine, a service or a job. A silence keeps the notifications of
some alerts back for a time; the alerts still fire, and are marked as silenced. The alert handler gets no silenced
alerts either. Everyone sees the alerts about their jobs; administrators see all alerts, and make silences.`,
		Example: `  paictl alert list
  paictl alert silence NodeDown --match node=gpu-1 --for 4h --reason "its memory is replaced"
  paictl alert silences`,
	}
	cmd.AddCommand(NewCmdList(f), NewCmdSilences(f), NewCmdSilence(f), NewCmdUnsilence(f))
	return cmd
}

// completeAlerts completes the name of one firing alert.
func completeAlerts(f *cmdutil.Factory, fl *connection.Flags) cobra.CompletionFunc {
	return connection.Complete(f, fl, 1, (*client.Server).Alerts, func(all *api.Alerts) (out []string) {
		for i := range all.Items {
			out = append(out, all.Items[i].Name+"\t"+all.Items[i].Summary)
		}
		return out
	})
}

// completeSilences completes the ID of one silence.
func completeSilences(f *cmdutil.Factory, fl *connection.Flags) cobra.CompletionFunc {
	return connection.Complete(f, fl, 1, (*client.Server).Silences, func(all *api.Silences) (out []string) {
		for i := range all.Items {
			out = append(out, all.Items[i].ID+"\t"+matchers(all.Items[i].Matchers))
		}
		return out
	})
}

// matchers formats matchers for a person.
func matchers(all []api.Matcher) string {
	out := ""
	for i := range all {
		if i > 0 {
			out += ", "
		}
		out += all[i].Text()
	}
	return out
}
