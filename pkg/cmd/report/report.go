// Package report contains the command "paictl report", which summarizes how GPUs were allocated, used and lost.
// In: flags, a sign-in or a kubeconfig. Out: tables, JSON, CSV.
package report

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job/report"
)

// Options are the options of "paictl report".
type Options struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Query      report.Query

	since, until string
}

// NewCmdReport returns "paictl report".
func NewCmdReport(f *cmdutil.Factory) *cobra.Command {
	opts := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Show how GPUs were given, used and lost, by virtual cluster and person",
		Long: `Sums up a week, or the time from --since to --until, which is at most 31 days. You see the figures of your jobs;
administrators see those of everyone. All times are UTC and whole hours.

  GPU HOURS     how long jobs held GPUs, whether they used them or not
  USED          the measured use in that time: an hour at 50 % is half an hour; in brackets the part of the measured time
  IDLE          the time in which the use was below 5 %
  LOST          the part of the GPU hours of attempts that failed or were preempted
  WAITED        how long jobs waited for their first start, times the GPUs that they requested
  LONGEST WAIT  the longest wait of a job
  JOBS          the jobs that were submitted in this time; the three columns about waiting are about these

USED and IDLE come from the service prometheus, which keeps figures for a month or less. Figures that aren't known are shown as "-",
and notes say why. Use "paictl job usage" for GPU hours of any time.`,
		Example: `  paictl report
  paictl report --since 30d --vc vision
  paictl report --since 2026-11-01 --until 2026-12-01 -o csv > november.csv
  paictl report --user ann -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(time.Now()); err != nil {
				return err
			}
			return opts.run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.since, "since", "7d", "start: 12h, 30d, or a date like 2026-01-31")
	fl.StringVar(&opts.until, "until", "", "end, in the same form (default: now)")
	fl.StringVar(&opts.Query.VirtualCluster, "vc", "", "only jobs of this virtual cluster")
	fl.StringVarP(&opts.Query.User, "user", "u", "", "only jobs of this person")
	_ = cmd.RegisterFlagCompletionFunc("user", user.CompleteUsers(f, &opts.Connection, cmdutil.FlagValue))
	_ = cmd.RegisterFlagCompletionFunc("vc", cobra.NoFileCompletions)
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml", "csv")
	return cmd
}

func (o *Options) complete(now time.Time) (err error) {
	if o.Query.Since, err = cmdutil.ReadTime("--since", o.since, now, time.UTC); err != nil {
		return err
	}
	if o.Query.Until, err = cmdutil.ReadTime("--until", o.until, now, time.UTC); err != nil {
		return err
	}
	if o.Query.Since.IsZero() {
		return cmdutil.Usagef("--since is empty: write 7d, or a date like 2026-01-31")
	}
	if !o.Query.Since.Before(cmp.Or(o.Query.Until, now)) {
		return cmdutil.Usagef("--since %s isn't before --until", o.since)
	}
	return nil
}

func (o *Options) run(ctx context.Context) error {
	w, err := o.Connection.Open(o.Factory)
	if err != nil {
		return err
	}
	r, err := w.Server.Report(ctx, o.Query)
	if err != nil {
		return err
	}
	out := o.Factory.IO.Out
	switch {
	case o.Output.Is("csv"):
		err = writeCSV(out, r)
	case !o.Output.IsTable():
		return o.Output.Write(out, r, cmdutil.Table{}) // it has the notes
	default:
		err = o.tables(out, r)
	}
	for _, n := range r.Notes {
		o.Factory.IO.Say("note: %s", n)
	}
	return err
}

// tables prints a table of virtual clusters and a table of users, each with a row for the total.
func (o *Options) tables(out io.Writer, r *report.Report) error {
	if len(r.VirtualClusters) == 0 {
		o.Factory.IO.Say("no GPUs were held and no jobs were submitted from %s to %s", r.Since.Format(time.RFC3339), r.Until.Format(time.RFC3339))
		return nil
	}
	for i, part := range []struct {
		title string
		rows  []report.Row
	}{{"VIRTUAL CLUSTER", r.VirtualClusters}, {"PERSON", r.People}} {
		t := cmdutil.Table{Header: append([]string{part.title}, report.Header()...)}
		for k := range part.rows {
			t.Rows = append(t.Rows, append([]string{cmp.Or(part.rows[k].Name, "-")}, part.rows[k].Cells()...))
		}
		if len(part.rows) > 1 {
			t.Rows = append(t.Rows, append([]string{"TOTAL"}, r.Total.Cells()...))
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := o.Output.Write(out, nil, t); err != nil {
			return err
		}
	}
	return nil
}

// writeCSV prints the report as CSV. It prints no totals, so that the sum of a column for one kind is correct. Unknown figures are empty.
func writeCSV(out io.Writer, r *report.Report) error {
	w := csv.NewWriter(out)
	err := w.Write([]string{"kind", "name", "gpu_hours", "guaranteed_hours", "opportunistic_hours", "preempted_hours", "failed_hours", "measured_hours", "used_hours", "idle_hours", "waited_gpu_hours", "longest_wait_hours", "jobs"})
	hours := func(seconds int64) string { return strconv.FormatFloat(float64(seconds)/3600, 'f', 4, 64) }
	write := func(kind string, rows []report.Row) {
		for i := range rows {
			one := &rows[i]
			line := []string{kind, one.Name, hours(one.Held()), hours(one.Guaranteed), hours(one.Opportunistic), hours(one.Preempted), hours(one.Failed)}
			if u := one.Use; u != nil {
				line = append(line, hours(u.Measured), hours(u.Used), hours(u.Idle))
			} else {
				line = append(line, "", "", "")
			}
			if v := one.Waits; v != nil {
				line = append(line, hours(v.GPUs), hours(v.Longest), strconv.Itoa(v.Jobs))
			} else {
				line = append(line, "", "", "")
			}
			err = errors.Join(err, w.Write(line))
		}
	}
	write("vc", r.VirtualClusters)
	write("person", r.People)
	w.Flush()
	return errors.Join(err, w.Error())
}
