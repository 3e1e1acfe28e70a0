// Package alert has the commands "paictl alert ...": the alerts that fire, and silences.
// In: flags, a sign-in or a kubeconfig. Out: tables, texts, and silences in Alertmanager.
package alert

import (
	"context"
	"time"

	"github.com/spf13/cobra"

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

// completionTimeout keeps the shell from waiting for a cluster that doesn't answer.
const completionTimeout = 2 * time.Second

// completeAlerts completes the name of one alert that fires.
func completeAlerts(f *cmdutil.Factory, fl *connection.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (out []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		if w, err := fl.Open(f); err == nil {
			if all, err := w.Server.Alerts(ctx); err == nil {
				for i := range all.Items {
					out = append(out, all.Items[i].Name+"\t"+all.Items[i].Summary)
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSilences completes the id of one silence.
func completeSilences(f *cmdutil.Factory, fl *connection.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (out []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		if w, err := fl.Open(f); err == nil {
			if all, err := w.Server.Silences(ctx); err == nil {
				for i := range all.Items {
					out = append(out, all.Items[i].ID+"\t"+matchers(all.Items[i].Matchers))
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// matchers is a list of matchers for people.
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
