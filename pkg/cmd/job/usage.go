package job

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
)

// UsageOptions are the options of "paictl job usage".
type UsageOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Query   api.UsageQuery
	Output  cmdutil.Output

	since, until string
}

// NewCmdUsage returns "paictl job usage".
func NewCmdUsage(f *cmdutil.Factory) *cobra.Command {
	opts := &UsageOptions{Factory: f}
	cmd := &cobra.Command{
		Use:        "usage",
		SuggestFor: []string{"accounting", "hours", "sacct", "sreport"},
		Short:      "Show GPU hours: who held GPUs, for how long, and how much was lost",
		Long: `Sums up how long tasks held GPUs, from the placement of their pods until they finished, whether they
used them or not. All times are UTC and whole hours; the hour of --until is not included.

GUARANTEED counts jobs with a guarantee, OPPORTUNISTIC jobs of the priority oppo. PREEMPTED and FAILED are the
part of both that was spent on attempts which ended that way. SHARE is the part of the virtual cluster's
present GPUs that guaranteed jobs held; it is shown with --by vc, if the scheduler answers. Running jobs are
counted up to the last five minutes. GPU hours are kept longer than the jobs themselves: for 400 days or more.`,
		Example: `  paictl job usage
  paictl job usage --by user --since 7d
  paictl job usage --by month,vc --since 2026-01-01
  paictl job usage --by hour --vc vision --user ann --since 24h
  paictl job usage --by month,vc,user --since 2026-01-01 --until 2026-02-01 -o csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(time.Now()); err != nil {
				return err
			}
			return usageRun(cmd.Context(), opts)
		},
	}
	opts.Flags.addConnection(f, cmd)
	fl := cmd.Flags()
	fl.StringSliceVar(&opts.Query.By, "by", []string{api.ByVC}, "one row for each: "+strings.Join(api.Dimensions(), ",")+"; several separated by commas")
	fl.StringVar(&opts.since, "since", "30d", "start: 12h, 30d, or a date like 2026-01-31")
	fl.StringVar(&opts.until, "until", "", "end, in the same form (default: now)")
	fl.StringVar(&opts.Query.VirtualCluster, "vc", "", "only jobs of this virtual cluster")
	fl.StringVarP(&opts.Query.User, "user", "u", "", "only of this user")
	fl.StringVar(&opts.Query.Type, "type", "", "only GPUs of this model")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(api.Dimensions(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("vc", opts.Flags.completeVC(f))
	_ = cmd.RegisterFlagCompletionFunc("user", opts.Flags.completeOwners(f))
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.NoFileCompletions)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml", "csv")
	return cmd
}

// periods maps the dimensions that are times to their formats.
var periods = map[string]string{api.ByHour: "2006-01-02T15:04Z", api.ByDay: time.DateOnly, api.ByMonth: "2006-01"}

func (opts *UsageOptions) complete(now time.Time) error {
	var period []string
	for _, by := range opts.Query.By {
		if !slices.Contains(api.Dimensions(), by) {
			return cmdutil.Usagef("--by: there is no %q; there are: %s", by, strings.Join(api.Dimensions(), ", "))
		}
		if periods[by] != "" {
			period = append(period, by)
		}
	}
	if len(period) > 1 {
		return cmdutil.Usagef("--by has %s; use one of them", strings.Join(period, " and "))
	}
	var err error
	if opts.Query.Since, err = cmdutil.ReadTime("--since", opts.since, now, time.UTC); err != nil {
		return err
	}
	if opts.Query.Until, err = cmdutil.ReadTime("--until", opts.until, now, time.UTC); err != nil {
		return err
	}
	if opts.Query.Until.IsZero() {
		opts.Query.Until = now
	}
	if !opts.Query.Since.Before(opts.Query.Until) {
		return cmdutil.Usagef("--since %s isn't before --until %s", opts.Query.Since.Format(time.RFC3339), opts.Query.Until.Format(time.RFC3339))
	}
	return nil
}

func usageRun(ctx context.Context, opts *UsageOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	u, err := c.Usage(ctx, opts.Query)
	if apierrors.IsNotFound(err) {
		return hint.Errorf("update it: paictl service start -n job-controller", "the job controller records no GPU hours: it is older than this paictl")
	}
	if err != nil {
		return c.Explain(err)
	}
	io := opts.Factory.IO
	if len(u.Items) == 0 && opts.Output.IsTable() {
		io.Say("no GPUs were held from %s to %s", u.Since.Format(time.RFC3339), u.Until.Format(time.RFC3339))
		return nil
	}
	if opts.Output.Is("csv") {
		return opts.writeCSV(io.Out, u)
	}
	return opts.Output.Write(io.Out, u, opts.table(u))
}

// dimension returns the value of the dimension by in a row of the result.
func dimension(by string, i *job.UsageItem) string {
	switch by {
	case api.ByVC:
		return i.VirtualCluster
	case api.ByUser:
		return i.User
	case api.ByType:
		return i.Type
	}
	if i.Period == nil {
		return ""
	}
	return i.Period.UTC().Format(periods[by])
}

func (opts *UsageOptions) table(u *job.Usage) cmdutil.Table {
	t := cmdutil.Table{}
	for _, by := range opts.Query.By {
		t.Header = append(t.Header, strings.ToUpper(by))
	}
	t.Header = append(t.Header, "GPU HOURS", "GUARANTEED", "OPPORTUNISTIC", "PREEMPTED", "FAILED")
	shares := slices.ContainsFunc(u.Items, func(i job.UsageItem) bool { return i.Share != nil })
	if shares {
		t.Header = append(t.Header, "SHARE")
	}
	add := func(who []string, g api.GPUTime, share *float64) {
		row := append(slices.Clone(who), hours(g.Held()), hours(g.Guaranteed), hours(g.Opportunistic), hours(g.Preempted), hours(g.Failed))
		if shares {
			row = append(row, shareText(share))
		}
		t.Rows = append(t.Rows, row)
	}
	for i := range u.Items {
		var who []string
		for _, by := range opts.Query.By {
			who = append(who, cmp.Or(dimension(by, &u.Items[i]), "-"))
		}
		add(who, u.Items[i].GPUTime, u.Items[i].Share)
	}
	if len(u.Items) > 1 {
		add(append([]string{"TOTAL"}, make([]string, len(opts.Query.By)-1)...), u.Total, nil)
	}
	return t
}

// writeCSV writes the rows as CSV. It writes no row with a total, so that the sum of a column is correct.
func (opts *UsageOptions) writeCSV(out io.Writer, u *job.Usage) error {
	w := csv.NewWriter(out)
	head := append(slices.Clone(opts.Query.By), "gpu_hours", "guaranteed_hours", "opportunistic_hours", "preempted_hours", "failed_hours", "share")
	err := w.Write(head)
	for k := range u.Items {
		i := &u.Items[k]
		var row []string
		for _, by := range opts.Query.By {
			row = append(row, dimension(by, i))
		}
		for _, n := range []int64{i.Held(), i.Guaranteed, i.Opportunistic, i.Preempted, i.Failed} {
			row = append(row, strconv.FormatFloat(float64(n)/3600, 'f', 4, 64))
		}
		share := ""
		if i.Share != nil {
			share = strconv.FormatFloat(*i.Share, 'f', 4, 64)
		}
		err = errors.Join(err, w.Write(append(row, share)))
	}
	w.Flush()
	return errors.Join(err, w.Error())
}

// hours converts GPU seconds to GPU hours.
func hours(seconds int64) string { return fmt.Sprintf("%.1f", float64(seconds)/3600) }

func shareText(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100**share)
}
