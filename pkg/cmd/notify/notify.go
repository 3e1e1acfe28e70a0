// Package notify contains the commands "paictl notify ...", which let users choose the notices that they get about their jobs.
// In: flags, a sign-in or a kubeconfig, the address of a webhook. Out: the settings, as text or JSON.
package notify

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// NewCmdNotify returns "paictl notify".
func NewCmdNotify(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "Choose the notices that you get about your jobs",
		Long: `The service alert-handler sends notices about jobs to their owners, by mail or to your own webhook. You choose which
ones. A job file can select others for its job: see --notify of "paictl job submit".

  started     the job has started
  finished    it succeeded
  failed      it failed, with the reason
  stopped     someone stopped it
  retried     another attempt began
  preempted   a job with a guarantee took its GPUs
  waiting     it has waited longer than --wait, an hour by default
  stopping    a policy or an administrator is about to stop it, or has stopped it

Without a choice you get "stopping". Administrators can require notices: those can't be turned off.`,
		Example: `  paictl notify show
  paictl notify set --events finished,failed,stopping
  paictl notify set --add waiting --wait 2h
  paictl notify test
  paictl notify off`,
	}
	cmd.AddCommand(NewCmdShow(f), NewCmdSet(f), NewCmdOff(f), NewCmdReset(f), NewCmdTest(f))
	return cmd
}

// Options are the options that all commands of this package have.
type Options struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	// User is the user whose settings are shown or changed. Administrators and operators may choose another user.
	User string
}

func (o *Options) addFlags(f *cmdutil.Factory, cmd *cobra.Command) {
	o.Factory = f
	cmd.Flags().StringVar(&o.User, "user", "", "another person, for administrators (default: you)")
	_ = cmd.RegisterFlagCompletionFunc("user", user.CompleteUsers(f, &o.Connection, cmdutil.FlagValue))
	o.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &o.Output, "text", "json", "yaml")
}

// open connects to the server, and returns the name of the user.
func (o *Options) open(ctx context.Context) (*client.Server, string, error) {
	w, err := o.Connection.Open(o.Factory)
	if err != nil || o.User != "" {
		if err != nil {
			return nil, "", err
		}
		return w.Server, o.User, nil
	}
	if w.Operator {
		return nil, "", cmdutil.Usagef("name a person with --user: with a kubeconfig you aren't a user of the cluster")
	}
	me, err := w.Server.WhoAmI(ctx)
	if err != nil {
		return nil, "", err
	}
	return w.Server, me.Name, nil
}

// show prints the settings in the format that the flags select.
func (o *Options) show(n *api.Notifications) error {
	if !o.Output.Is("text") {
		return o.Output.Write(o.Factory.IO.Out, n, cmdutil.Table{})
	}
	write(o.Factory.IO.Out, n)
	return nil
}

// write prints the settings as text for a person.
func write(out io.Writer, n *api.Notifications) {
	line := func(name, text string) { fmt.Fprintf(out, "%-15s %s\n", name+":", terminal.Line(text)) }
	line("Person", n.User)
	line("Notices", cmp.Or(listed(n.Events), "none"))
	if len(n.Required) > 0 {
		line("Required", listed(n.Required)+" (by the administrator: they can't be turned off, and always come by mail)")
	}
	if slices.Contains(n.Events, peoplev1.NoticeWaiting) {
		line("Waiting", "after "+(time.Duration(n.WaitMinutes)*time.Minute).String())
	}
	mail := "off"
	if n.Mail {
		mail = cmp.Or(n.Address, "on, but the account has no address")
	}
	line("Mail", mail)
	line("Webhook", cmp.Or(n.Webhook, "none"))
	line("Weekly report", map[bool]string{true: "on", false: "off"}[n.WeeklyReport])
	if !n.Chosen {
		line("Chosen", "no, these are the defaults")
	}
	for _, p := range n.Problems {
		line("Problem", p)
	}
}

func listed(events []peoplev1.NoticeEvent) string {
	var out []string
	for _, e := range events {
		out = append(out, string(e))
	}
	return strings.Join(out, ", ")
}

// NewCmdShow returns "paictl notify show".
func NewCmdShow(f *cmdutil.Factory) *cobra.Command {
	opts := &Options{}
	cmd := &cobra.Command{
		Use:     "show",
		Aliases: []string{"get"},
		Short:   "Show the notices that you get, and where",
		Long: `Shows the kinds of notices that you get about your jobs, where they are sent, and why they can't reach you, if that is so. The
address of a webhook is never shown.`,
		Example: `  paictl notify show
  paictl notify show --user ann -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.run(cmd.Context(), (*client.Server).Notifications)
		},
	}
	opts.addFlags(f, cmd)
	return cmd
}

// run sends one request about the user's settings, and prints the resulting settings.
func (o *Options) run(ctx context.Context, ask func(*client.Server, context.Context, string) (*api.Notifications, error)) error {
	s, name, err := o.open(ctx)
	if err != nil {
		return err
	}
	n, err := ask(s, ctx, name)
	if err != nil {
		return err
	}
	return o.show(n)
}

// NewCmdOff returns "paictl notify off".
func NewCmdOff(f *cmdutil.Factory) *cobra.Command {
	opts := &Options{}
	cmd := &cobra.Command{
		Use:   "off",
		Short: "Turn notices off",
		Long: `Turns all notices off, the weekly report as well, and forgets the address of your webhook. Notices that the administrator requires
stay, and the command says so. Selections in job files count as before.`,
		Example: `  paictl notify off`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.run(cmd.Context(), func(s *client.Server, ctx context.Context, name string) (*api.Notifications, error) {
				return s.PutNotifications(ctx, name, &api.NotificationsChange{Events: []peoplev1.NoticeEvent{}, Mail: true})
			})
		},
	}
	opts.addFlags(f, cmd)
	return cmd
}

// NewCmdReset returns "paictl notify reset".
func NewCmdReset(f *cmdutil.Factory) *cobra.Command {
	opts := &Options{}
	cmd := &cobra.Command{
		Use:     "reset",
		Short:   "Restore the default notices",
		Long:    `Forgets your choices: you get the default notices by mail, and the address of your webhook is removed.`,
		Example: `  paictl notify reset`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.run(cmd.Context(), (*client.Server).DefaultNotifications)
		},
	}
	opts.addFlags(f, cmd)
	return cmd
}

// errNotSent returns an error about a test message that was not sent or did not arrive.
func errNotSent(channel, why string) error {
	return hint.Errorf("an operator looks with: paictl service logs -n alert-handler", "the test message by %s %s", channel, why)
}
