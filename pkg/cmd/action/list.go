package action

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// ListOptions are the options of "paictl action list".
type ListOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Query      client.ActionQuery
	Watch      time.Duration
}

// maxActions is the maximum number of actions that the server returns at once.
const maxActions = 1000

// NewCmdList returns "paictl action list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List actions, the latest first",
		Long: `Lists the requests to stop or requeue jobs, or to change machines, the latest first, with the state of each.
Finished actions are kept for a week, unless alert-handler.keep says otherwise.

Phases: New, Pending (it waits for a limit), Noticed (it waits for the end of its grace), Acting, and the final
ones: Succeeded, Failed, Refused, Expired, Canceled.`,
		Example: `  paictl action list
  paictl action list --phase new,pending,noticed,acting
  paictl action list --machine gpu-1 -o json
  paictl action list --watch 5s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			return listRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&opts.Query.Phases, "phase", nil, "only actions in these phases")
	fl.StringVar(&opts.Query.Machine, "machine", "", "only actions on this machine")
	fl.StringVar(&opts.Query.Job, "job", "", "only actions on this job: OWNER/NAME")
	fl.IntVar(&opts.Query.Limit, "limit", 100, "maximum number of actions to show")
	fl.StringVar(&opts.Query.Cursor, "cursor", "", "continue after the previous page: the cursor at its end")
	fl.DurationVarP(&opts.Watch, "watch", "w", 0, "repeat after this time, such as 5s")
	_ = cmd.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(phaseNames(), cobra.ShellCompDirectiveNoFileComp))
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func phaseNames() (out []string) {
	for _, p := range actionsv1.Phases() {
		out = append(out, strings.ToLower(p.String()))
	}
	return out
}

func (opts *ListOptions) check() error {
	for _, p := range opts.Query.Phases {
		if !slices.Contains(phaseNames(), strings.ToLower(p)) {
			return cmdutil.Usagef("--phase %s: there are %s", p, strings.Join(phaseNames(), ", "))
		}
	}
	if opts.Query.Limit < 1 || opts.Query.Limit > maxActions {
		return cmdutil.Usagef("--limit %d: take 1 to %d", opts.Query.Limit, maxActions)
	}
	if opts.Watch < 0 || opts.Watch > 0 && opts.Watch < time.Second {
		return cmdutil.Usagef("--watch %s: give a second or more", opts.Watch)
	}
	return nil
}

func listRun(ctx context.Context, opts *ListOptions) error {
	w, err := opts.Connection.Open(opts.Factory)
	if err != nil {
		return err
	}
	return job.Repeat(ctx, opts.Watch, func(bool) error {
		page, err := w.Server.Actions(ctx, opts.Query)
		if err != nil {
			return err
		}
		return opts.show(page, time.Now())
	})
}

func (opts *ListOptions) show(page *api.Actions, now time.Time) error {
	io := opts.Factory.IO
	if len(page.Items) == 0 && opts.Output.IsTable() {
		io.Say("no actions")
		return nil
	}
	t := cmdutil.Table{Header: []string{"NAME", "DO", "TARGET", "BY", "PHASE", "AGE", "MESSAGE"}}
	for i := range page.Items {
		a := &page.Items[i]
		phase := a.Phase
		if a.DryRun {
			phase += " (dry run)"
		}
		t.Rows = append(t.Rows, []string{a.Name, string(a.Operation), a.Target(), a.By.Text(), phase, job.Duration(now.Sub(a.Created)), cmp.Or(a.Message, a.Reason)})
	}
	if err := opts.Output.Write(io.Out, page, t); err != nil {
		return err
	}
	if page.Next != "" && opts.Output.IsTable() {
		io.Say("more: --cursor %s", page.Next)
	}
	return nil
}
