package notify

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// SetOptions are the options of "paictl notify set". Settings whose flags aren't given stay unchanged.
type SetOptions struct {
	Options
	Events, Add, Remove []string
	Wait                time.Duration
	Mail, WeeklyReport  bool
	// Webhook is the type of the new webhook. The address of the webhook is read from a prompt or from stdin.
	Webhook                     string
	Stdin, Signed, NoWebhook    bool
	changed                     func(flag string) bool
	events, addEvents, noEvents []peoplev1.NoticeEvent
}

var webhookTypes = []string{"generic", "slack", "teams", "feishu", "dingtalk"}

// NewCmdSet returns "paictl notify set".
func NewCmdSet(f *cmdutil.Factory) *cobra.Command {
	opts := &SetOptions{}
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Choose notices, and where they are sent",
		Long: `Changes only what you name. --events replaces the kinds of notices, --add and --remove change some of them.

Mails go to the e-mail address of your account. With --webhook, notices also go to your own chat or program, if the administrator
permits that; --mail=false then turns mails off. The address of a webhook is a secret: paictl asks for it on the terminal, or reads
it with --webhook-stdin, with the secret for signatures as the second line if --webhook-signed is set.

--weekly-report requests a report of your GPU hours each week; administrators get one of all virtual clusters and people.`,
		Example: `  paictl notify set --events finished,failed,preempted,stopping
  paictl notify set --add waiting --wait 30m
  paictl notify set --webhook slack --mail=false
  paictl notify set --webhook feishu --webhook-signed --webhook-stdin < secrets.txt
  paictl notify set --no-webhook --mail --weekly-report`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.changed = cmd.Flags().Changed
			if err := opts.check(cmd); err != nil {
				return err
			}
			return setRun(cmd.Context(), opts)
		},
	}
	var kinds []string
	for _, e := range peoplev1.NoticeEvents() {
		kinds = append(kinds, string(e))
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&opts.Events, "events", nil, "the notices that you get: "+strings.Join(kinds, ","))
	fl.StringSliceVar(&opts.Add, "add", nil, "notices that you also get")
	fl.StringSliceVar(&opts.Remove, "remove", nil, "notices that you no longer get")
	for _, name := range []string{"events", "add", "remove"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	}
	fl.DurationVar(&opts.Wait, "wait", time.Hour, "how long a job waits before the notice waiting")
	fl.BoolVar(&opts.Mail, "mail", true, "send mails")
	fl.BoolVar(&opts.WeeklyReport, "weekly-report", false, "send a report of GPU hours each week")
	fl.StringVar(&opts.Webhook, "webhook", "", "also send notices to your webhook, of this type: "+strings.Join(webhookTypes, ", "))
	_ = cmd.RegisterFlagCompletionFunc("webhook", cobra.FixedCompletions(webhookTypes, cobra.ShellCompDirectiveNoFileComp))
	fl.BoolVar(&opts.Stdin, "webhook-stdin", false, "read the address of the webhook from stdin")
	fl.BoolVar(&opts.Signed, "webhook-signed", false, "the robot of Feishu or DingTalk checks signatures: also read its secret")
	fl.BoolVar(&opts.NoWebhook, "no-webhook", false, "no longer send notices to your webhook")
	opts.addFlags(f, cmd)
	return cmd
}

func (o *SetOptions) check(cmd *cobra.Command) error {
	if !slices.ContainsFunc([]string{"events", "add", "remove", "wait", "mail", "weekly-report", "webhook", "no-webhook"}, o.changed) {
		return cmdutil.Usagef("nothing to change (see %s --help)", cmd.CommandPath())
	}
	if o.changed("events") && (o.changed("add") || o.changed("remove")) {
		return cmdutil.Usagef("give --events, or --add and --remove")
	}
	if o.changed("wait") && (o.Wait < time.Minute || o.Wait > peoplev1.MaxWaitMinutes*time.Minute) {
		return cmdutil.Usagef("--wait %s: give a time from 1m to %s", o.Wait, peoplev1.MaxWaitMinutes*time.Minute)
	}
	if o.NoWebhook && o.changed("webhook") {
		return cmdutil.Usagef("give --webhook or --no-webhook")
	}
	if (o.Stdin || o.Signed) && o.Webhook == "" {
		return cmdutil.Usagef("--webhook-stdin and --webhook-signed need --webhook TYPE")
	}
	if o.changed("webhook") && !slices.Contains(webhookTypes, o.Webhook) {
		return cmdutil.Usagef("--webhook %s: write %s", o.Webhook, strings.Join(webhookTypes, ", "))
	}
	for into, words := range map[*[]peoplev1.NoticeEvent][]string{&o.events: o.Events, &o.addEvents: o.Add, &o.noEvents: o.Remove} {
		for _, word := range words {
			e := peoplev1.NoticeEvent(word)
			if !slices.Contains(peoplev1.NoticeEvents(), e) {
				return cmdutil.Usagef("%q is not a kind of notice (see paictl notify --help)", word)
			}
			*into = append(*into, e)
		}
	}
	return nil
}

func setRun(ctx context.Context, o *SetOptions) error {
	s, name, err := o.open(ctx)
	if err != nil {
		return err
	}
	was, err := s.Notifications(ctx, name)
	if err != nil {
		return err
	}
	for _, e := range o.noEvents {
		if slices.Contains(was.Required, e) {
			return cmdutil.Usagef("--remove %s: the administrator requires this notice, so it can't be turned off", e)
		}
	}
	c, err := o.change(was)
	if err != nil {
		return err
	}
	n, err := s.PutNotifications(ctx, name, c)
	if err != nil {
		return err
	}
	for _, e := range n.Required {
		if o.changed("events") && !slices.Contains(o.events, e) {
			o.Factory.IO.Say("%s stays: the administrator requires this notice", e)
		}
	}
	return o.show(n)
}

// change returns the current settings with the changes that the flags request.
func (o *SetOptions) change(was *api.Notifications) (*api.NotificationsChange, error) {
	c := &api.NotificationsChange{Events: was.Events, WaitMinutes: was.WaitMinutes, Mail: was.Mail, WeeklyReport: was.WeeklyReport}
	if o.changed("events") {
		c.Events = o.events
	}
	c.Events = slices.DeleteFunc(slices.Concat(c.Events, o.addEvents), func(e peoplev1.NoticeEvent) bool { return slices.Contains(o.noEvents, e) })
	if o.changed("wait") {
		c.WaitMinutes = int32(o.Wait / time.Minute)
	}
	if o.changed("mail") {
		c.Mail = o.Mail
	}
	if o.changed("weekly-report") {
		c.WeeklyReport = o.WeeklyReport
	}
	switch {
	case o.Webhook != "":
		address, signing, err := o.webhook()
		if err != nil {
			return nil, err
		}
		c.Webhook = &api.OwnWebhook{Type: o.Webhook, URL: address.Reveal(), SigningSecret: signing.Reveal()}
	case !o.NoWebhook && was.Webhook != "":
		c.Webhook = &api.OwnWebhook{}
	}
	return c, nil
}

// webhook reads the address of a webhook, and the secret for its signatures. Neither is a command-line argument, because other users can see
// arguments.
func (o *SetOptions) webhook() (address, signing secret.String, err error) {
	streams := o.Factory.IO
	read := func(question string) (secret.String, error) {
		if o.Stdin {
			text, err := prompt.Line(streams.In)
			return secret.String(text), err
		}
		return (&prompt.Person{IO: streams}).AskSecret(question)
	}
	if !o.Stdin && !streams.CanPrompt() {
		return "", "", cmdutil.Usagef("no terminal to ask for the address of the webhook on: add --webhook-stdin")
	}
	if address, err = read("The address of the webhook"); err == nil && o.Signed {
		signing, err = read("The secret for its signatures")
	}
	return address, signing, err
}
