package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// ListOptions are the options of "paictl job list".
type ListOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Filter  job.Filter
	// AllUsers lists the jobs of all users.
	AllUsers bool
	Columns  []string
	Watch    time.Duration
	Output   cmdutil.Output
}

// defaultLimit is how many jobs are shown without --limit.
const defaultLimit = 50

func explainedPhases() (out [][2]string) {
	for _, p := range job.Phases() {
		out = append(out, [2]string{string(p), p.Means()})
	}
	return out
}

// NewCmdList returns "paictl job list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	var states []string
	var since string
	cmd := &cobra.Command{
		Use:        "list",
		Aliases:    []string{"ls"},
		SuggestFor: []string{"ps", "squeue", "qstat", "jobs", "sacct", "bjobs"},
		Short:      "List jobs, newest first: unfinished and finished",
		Long: `Lists your jobs, newest submission first. Jobs that finished long ago come from the history that the
job controller keeps; without the history, only jobs that Kubernetes still has are shown.

States:
` + cmdutil.Explained(explainedPhases()),
		Example: `  paictl job list
  paictl job list --all-users --vc vision --state queued,running
  paictl job list --since 7d --state failed -o wide
  paictl job list --keyword bert --columns name,state,submitted
  paictl job list --watch 5s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(cmd, states, since); err != nil {
				return err
			}
			return listRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	fl := cmd.Flags()
	fl.BoolVarP(&opts.AllUsers, "all-users", "A", false, "jobs of all users")
	fl.StringVar(&opts.Filter.VirtualCluster, "vc", "", "only jobs of this virtual cluster")
	fl.StringSliceVar(&states, "state", nil, "only jobs in these states")
	fl.BoolVar(&opts.Filter.Earlier, "earlier", false, "also earlier jobs whose name a later job has")
	fl.StringVar(&opts.Filter.Keyword, "keyword", "", "only jobs with this text in the name of job, user or virtual cluster")
	fl.StringVar(&since, "since", "", "only jobs submitted since: 30m, 12h, 7d, or a date like 2026-01-31")
	fl.IntVar(&opts.Filter.Limit, "limit", defaultLimit, "show at most this many jobs; 0 shows all")
	fl.StringVar(&opts.Filter.Cursor, "cursor", "", "continue where an earlier list ended")
	fl.DurationVarP(&opts.Watch, "watch", "w", 0, "repeat after this time, such as 5s")
	fl.StringSliceVar(&opts.Columns, "columns", nil, "these columns: "+strings.Join(columnNames(), ","))
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(job.PhaseNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("vc", opts.Flags.completeVC(f))
	_ = cmd.RegisterFlagCompletionFunc("columns", cobra.FixedCompletions(columnNames(), cobra.ShellCompDirectiveNoFileComp))
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml", "name")
	return cmd
}

func (opts *ListOptions) complete(cmd *cobra.Command, states []string, since string) (err error) {
	if opts.Filter.Phases, err = job.ReadPhases(states); err != nil {
		return cmdutil.Usagef("--state: %w", err)
	}
	if opts.Filter.Since, err = readSince(since, time.Now()); err != nil {
		return err
	}
	if opts.AllUsers && opts.Flags.User != "" {
		return cmdutil.Usagef("give --user or --all-users, not both (see %s --help)", cmd.CommandPath())
	}
	if opts.Watch < 0 || opts.Watch > 0 && opts.Watch < time.Second {
		return cmdutil.Usagef("--watch %s: give a second or more", opts.Watch)
	}
	if opts.Filter.Limit < 0 {
		return cmdutil.Usagef("--limit %d: give a number from 0", opts.Filter.Limit)
	}
	for _, c := range opts.Columns {
		if !slices.Contains(columnNames(), c) {
			return cmdutil.Usagef("--columns: there is no column %q; there are: %s", c, strings.Join(columnNames(), ", "))
		}
	}
	return nil
}

// readSince parses the value of --since: 30m, 12h, 7d, or a date.
func readSince(text string, now time.Time) (time.Time, error) {
	return cmdutil.ReadTime("--since", text, now, time.Local)
}

func listRun(ctx context.Context, opts *ListOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	if !opts.AllUsers {
		if opts.Filter.User, err = opts.Flags.user(ctx, opts.Factory, c); err != nil {
			return err
		}
	}
	if opts.Watch > 0 {
		return c.Watch(ctx, opts.Filter, opts.Watch, opts.show)
	}
	page, err := c.List(ctx, opts.Filter)
	if err != nil {
		return err
	}
	return opts.show(page)
}

func (opts *ListOptions) show(page *job.Page) error {
	io := opts.Factory.IO
	if page.Note != "" {
		io.Say("%s", page.Note)
	}
	person := opts.Output.IsTable()
	if len(page.Items) == 0 && person {
		io.Say("%s", opts.nothing())
		return nil
	}
	if err := opts.Output.Write(io.Out, page, opts.table(page, time.Now())); err != nil {
		return err
	}
	if page.Next != "" && person {
		io.Say("there are more: --limit 0 shows all, --cursor %s continues", page.Next)
	}
	return nil
}

// nothing returns the text that explains why a list is empty.
func (opts *ListOptions) nothing() string {
	o := &opts.Filter
	if o.Keyword != "" || o.VirtualCluster != "" || len(o.Phases) > 0 || !o.Since.IsZero() {
		return "no jobs match"
	}
	if opts.AllUsers {
		return "there are no jobs"
	}
	return fmt.Sprintf("user %s has no jobs; jobs of all users: paictl job list --all-users", o.User)
}

// column is one column that the list can show.
type column struct {
	name string
	wide bool // only with -o wide
	of   func(r *job.Row, now time.Time) string
}

func columns() []column {
	return []column{
		{"name", false, func(r *job.Row, _ time.Time) string { return r.Name }},
		{"user", false, func(r *job.Row, _ time.Time) string { return r.User }},
		{"state", false, func(r *job.Row, now time.Time) string { return r.At().Text(now) }},
		{"vc", false, func(r *job.Row, _ time.Time) string { return cmp.Or(r.VirtualCluster, "-") }},
		{"priority", true, func(r *job.Row, _ time.Time) string { return cmp.Or(r.Priority, "-") }},
		{"gpus", false, func(r *job.Row, _ time.Time) string { return gpusText(r.Taken()) }},
		{"cpus", true, func(r *job.Row, _ time.Time) string { return amount(r.MilliCPU, job.CPUText) }},
		{"memory", true, func(r *job.Row, _ time.Time) string { return amount(r.MemoryMB, job.MemoryText) }},
		{"tasks", false, func(r *job.Row, _ time.Time) string { return strconv.Itoa(r.Tasks) }},
		{"retries", true, func(r *job.Row, _ time.Time) string { return strconv.Itoa(int(r.Retries)) }},
		{"submitted", false, func(r *job.Row, now time.Time) string { return job.Duration(now.Sub(r.Submitted)) + " ago" }},
		{"duration", false, duration},
		{"exit", true, func(r *job.Row, _ time.Time) string { return exitText(r.Code, r.Phrase) }},
		{"object", true, func(r *job.Row, _ time.Time) string { return r.Framework }},
	}
}

func columnNames() []string {
	var out []string
	for _, c := range columns() {
		out = append(out, c.name)
	}
	return out
}

// table returns the requested columns. Without a request, it includes the user only if the list can contain jobs of several users.
func (opts *ListOptions) table(page *job.Page, now time.Time) cmdutil.Table {
	var chosen []column
	switch {
	case opts.Output.Is("name"):
		return opts.names(page)
	case len(opts.Columns) > 0:
		for _, name := range opts.Columns {
			chosen = append(chosen, columns()[slices.Index(columnNames(), name)])
		}
	default:
		for _, c := range columns() {
			if c.name == "user" && !opts.AllUsers || c.wide && !opts.Output.Is("wide") {
				continue
			}
			chosen = append(chosen, c)
		}
	}
	var t cmdutil.Table
	for _, c := range chosen {
		t.Header = append(t.Header, strings.ToUpper(c.name))
	}
	for i := range page.Items {
		var row []string
		for _, c := range chosen {
			row = append(row, c.of(&page.Items[i], now))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// names returns the names of the jobs in the form that other commands accept.
func (opts *ListOptions) names(page *job.Page) (t cmdutil.Table) {
	for i := range page.Items {
		name := page.Items[i].Name
		if opts.AllUsers {
			name = page.Items[i].User + "/" + name
		}
		t.Rows = append(t.Rows, []string{name})
	}
	return t
}

// duration returns how long a job has run, including the time between its attempts. It returns "-" if the duration isn't known.
func duration(r *job.Row, now time.Time) string {
	if r.Started == nil || job.Phase(r.State) == job.Deleted { // when it ended isn't known
		return "-"
	}
	end := now
	if r.Completed != nil {
		end = *r.Completed
	}
	return job.Duration(end.Sub(*r.Started))
}

// amount formats a number with text. It returns "-" for 0, which means that the number is unknown or unlimited.
func amount(n int64, text func(int64) string) string {
	if n == 0 {
		return "-"
	}
	return text(n)
}

// gpusText formats a number of GPUs. It returns "?" for a negative number, which means that the number is unknown.
func gpusText(n int) string {
	if n < 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

func exitText(code *int32, phrase string) string {
	if code == nil {
		return cmp.Or(rules.Words(phrase), "-")
	}
	return strings.TrimSpace(strconv.Itoa(int(*code)) + " " + rules.Words(phrase))
}
