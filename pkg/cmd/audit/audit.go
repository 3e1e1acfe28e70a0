// Package audit contains the command "paictl audit", which lists the actions of users on the server.
// In: flags, a sign-in or a kubeconfig. Out: a table of records.
package audit

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// Options are the options of "paictl audit".
type Options struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Query      audit.Query
	Since      string
	Until      string
}

// NewCmdAudit returns "paictl audit".
func NewCmdAudit(f *cmdutil.Factory) *cobra.Command {
	opts := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who did what to what",
		Long: `Shows the changes that people made through the platform's server, the requests that it refused, and the sign-ins, the
latest first. Administrators see all records, other users only their own. Requests that only read are not recorded.

With a kubeconfig, the audit is read from the job controller's archive, even while the server doesn't run. Changes that
paictl makes with a kubeconfig are recorded, too: their actor is kubeconfig:USER.`,
		Example: `  paictl audit --since 1h
  paictl audit --outcome refused --since 7d
  paictl audit --kind job --verb stop --object train -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.check(time.Now()); err != nil {
				return err
			}
			return run(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.Query.Actor, "actor", "", "only the actions of this person")
	fl.StringVar(&opts.Query.Object, "object", "", "only actions on the object with this name")
	fl.StringVar(&opts.Query.Owner, "owner", "", "only actions on objects that this person owns")
	fl.StringVar(&opts.Query.Kind, "kind", "", "only actions on objects of this kind: job, user, group, token, action")
	fl.StringVar(&opts.Query.Verb, "verb", "", "only this action: submit, stop, enter, sign-in, manage, ...")
	fl.StringVar(&opts.Query.Outcome, "outcome", "", "only actions with this outcome: done, refused, failed")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions([]string{audit.Done, audit.Refused, audit.Failed}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"action", "group", "job", "silence", "token", "user"}, cobra.ShellCompDirectiveNoFileComp))
	fl.StringVar(&opts.Since, "since", "", "start: 12h, 30d, or a date like 2026-01-31")
	fl.StringVar(&opts.Until, "until", "", "end, as --since (default: now)")
	fl.IntVar(&opts.Query.Limit, "limit", audit.DefaultPage, "maximum number of records to show")
	fl.StringVar(&opts.Query.Cursor, "cursor", "", "continue after this record: the cursor at the end of the previous page")
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func (opts *Options) check(now time.Time) (err error) {
	if o := opts.Query.Outcome; o != "" && o != audit.Done && o != audit.Refused && o != audit.Failed {
		return cmdutil.Usagef("--outcome %s: there are %s, %s and %s", o, audit.Done, audit.Refused, audit.Failed)
	}
	if opts.Query.Limit < 1 || opts.Query.Limit > audit.MaxPage {
		return cmdutil.Usagef("--limit %d: take 1 to %d", opts.Query.Limit, audit.MaxPage)
	}
	if opts.Query.Since, err = cmdutil.ReadTime("--since", opts.Since, now, time.Local); err != nil {
		return err
	}
	opts.Query.Until, err = cmdutil.ReadTime("--until", opts.Until, now, time.Local)
	return err
}

func run(ctx context.Context, opts *Options) error {
	w, err := opts.Connection.Open(opts.Factory)
	if err != nil {
		return err
	}
	page, err := w.Server.Audit(ctx, opts.Query)
	if err != nil {
		return err
	}
	t := cmdutil.Table{Header: []string{"TIME", "ACTOR", "VERB", "KIND", "OBJECT", "OUTCOME", "ADDRESS", "REASON"}}
	for i := range page.Items {
		r := &page.Items[i]
		t.Rows = append(t.Rows, []string{r.Time.Local().Format(time.DateTime), cmp.Or(r.Actor, r.Detail["name"], "-"), r.Verb, r.Kind, cmp.Or(object(r), "-"), r.Outcome, cmp.Or(r.Address, "-"), cmp.Or(r.Reason, "-")})
	}
	if err := opts.Output.Write(opts.Factory.IO.Out, page, t); err != nil {
		return err
	}
	if page.Next != "" {
		opts.Factory.IO.Say("more: --cursor %s", page.Next)
	}
	return nil
}

// object formats the name of the object of a record, with its owner if the owner is known.
func object(r *audit.Record) string {
	if r.Owner != "" && r.Owner != r.Object && r.Object != "" {
		return r.Owner + "/" + r.Object
	}
	return cmp.Or(r.Object, r.Owner)
}
