package alert

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// ListOptions are the options of "paictl alert list".
type ListOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Severities []string
	Silenced   bool
	Watch      time.Duration
}

// NewCmdList returns "paictl alert list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the alerts that fire, the latest first",
		Long: `Lists the alerts that fire, the latest first, with the labels by which they can be silenced. Silenced alerts are left
out unless --silenced is given.`,
		Example: `  paictl alert list
  paictl alert list --severity critical,warning
  paictl alert list --silenced -o json
  paictl alert list --watch 10s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Watch < 0 || opts.Watch > 0 && opts.Watch < time.Second {
				return cmdutil.Usagef("--watch %s: give a second or more", opts.Watch)
			}
			return listRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&opts.Severities, "severity", nil, "only alerts of these severities, such as critical")
	fl.BoolVar(&opts.Silenced, "silenced", false, "also show alerts that are silenced")
	fl.DurationVarP(&opts.Watch, "watch", "w", 0, "repeat after this time, such as 10s")
	_ = cmd.RegisterFlagCompletionFunc("severity", cobra.FixedCompletions([]string{"critical", "warning", "info"}, cobra.ShellCompDirectiveNoFileComp))
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	w, err := opts.Connection.Open(opts.Factory)
	if err != nil {
		return err
	}
	return job.Repeat(ctx, opts.Watch, func(bool) error {
		all, err := w.Server.Alerts(ctx)
		if err != nil {
			return err
		}
		return opts.show(all, time.Now())
	})
}

func (opts *ListOptions) show(all *api.Alerts, now time.Time) error {
	shown := &api.Alerts{Items: []api.Alert{}}
	for i := range all.Items {
		a := &all.Items[i]
		if (opts.Silenced || len(a.Silences) == 0) && (len(opts.Severities) == 0 || slices.Contains(opts.Severities, a.Severity)) {
			shown.Items = append(shown.Items, *a)
		}
	}
	io := opts.Factory.IO
	if len(shown.Items) == 0 && opts.Output.IsTable() {
		io.Say("no alerts")
		return nil
	}
	t := cmdutil.Table{Header: []string{"NAME", "SEVERITY", "AGE", "STATE", "LABELS", "SUMMARY"}}
	for i := range shown.Items {
		a := &shown.Items[i]
		state := "firing"
		if len(a.Silences) > 0 {
			state = "silenced"
		}
		t.Rows = append(t.Rows, []string{a.Name, a.Severity, job.Duration(now.Sub(a.Since)), state, labels(a), a.Summary})
	}
	return opts.Output.Write(io.Out, shown, t)
}

// labels returns the labels of an alert, except for the labels that have separate columns.
func labels(a *api.Alert) string {
	var out []string
	for name, value := range a.Labels {
		if name != "alertname" && name != "severity" {
			out = append(out, name+"="+value)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
