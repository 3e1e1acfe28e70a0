package job

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
)

// StopOptions are the options of "paictl job stop".
type StopOptions struct {
	Several
	// All stops all jobs that match Filter. If Filter selects no states, it stops the jobs that have not finished.
	All     bool
	Filter  job.Filter
	Yes     bool
	Wait    bool
	Timeout time.Duration
}

// NewCmdStop returns "paictl job stop".
func NewCmdStop(f *cmdutil.Factory) *cobra.Command {
	opts := &StopOptions{Several: Several{Factory: f}}
	cmd := &cobra.Command{
		Use:        "stop NAME... | --all",
		SuggestFor: []string{"cancel", "kill", "scancel", "qdel", "bkill"},
		Short:      "Stop jobs: their programs get SIGTERM and time to save their state",
		Long: `Stops jobs without a retry. Each task's program gets SIGTERM, and SIGKILL after its grace period (30
seconds, or extras.gracePeriodSec of the job file). A waiting job stops at once. Logs and history stay; "paictl
job retry" runs a job again.

--all stops all of your unfinished jobs; --state, --vc and --keyword restrict it to some of them.`,
		Example: `  paictl job stop train
  paictl job stop train-1 train-2 --wait
  paictl job stop --all --state queued,waiting`,
	}
	var states []string
	opts.takes(cmd, func(ctx context.Context) error {
		if err := opts.check(cmd, states); err != nil {
			return err
		}
		return stopRun(ctx, opts)
	})
	cmd.Args = cobra.ArbitraryArgs
	fl := cmd.Flags()
	fl.BoolVar(&opts.All, "all", false, "all of your unfinished jobs")
	fl.StringSliceVar(&states, "state", nil, "with --all: only those in these states")
	fl.StringVar(&opts.Filter.VirtualCluster, "vc", "", "with --all: only those of this virtual cluster")
	fl.StringVar(&opts.Filter.InName, "keyword", "", "with --all: only jobs with this text in their name")
	fl.BoolVarP(&opts.Yes, "yes", "y", false, "with --all: don't ask")
	_ = cmd.RegisterFlagCompletionFunc("vc", opts.Flags.completeVC(opts.Factory))
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(job.PhaseNames(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "wait until all their tasks have stopped")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 0, "wait no longer than this; 0 waits forever")
	return cmd
}

func (opts *StopOptions) check(cmd *cobra.Command, states []string) (err error) {
	filtered := len(states) > 0 || opts.Filter.VirtualCluster != "" || opts.Filter.InName != ""
	switch {
	case opts.All && len(opts.Names) > 0:
		return cmdutil.Usagef("give names or --all, not both (see %s --help)", cmd.CommandPath())
	case !opts.All && len(opts.Names) == 0:
		return cmdutil.Usagef("name the jobs to stop, or stop all of yours with --all (see %s --help)", cmd.CommandPath())
	case !opts.All && filtered:
		return cmdutil.Usagef("--state, --vc and --keyword are for --all (see %s --help)", cmd.CommandPath())
	}
	if opts.Filter.Phases, err = job.ReadPhases(states); err != nil {
		return cmdutil.Usagef("--state: %w", err)
	}
	return nil
}

// chosen finds the jobs that --all selects, and asks the user whether to stop them.
func (opts *StopOptions) chosen(ctx context.Context) (err error) {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	if opts.Filter.User, err = opts.Flags.user(ctx, opts.Factory, c); err != nil {
		return err
	}
	page, err := c.List(ctx, opts.Filter)
	if err != nil {
		return err
	}
	for i := range page.Items {
		if r := &page.Items[i]; r.Live && !job.Phase(r.State).Done() {
			opts.Names = append(opts.Names, r.User+"/"+r.Name)
		}
	}
	if len(opts.Names) == 0 {
		return nil
	}
	question := fmt.Sprintf("Stop %d jobs of %s: %s?", len(opts.Names), opts.Filter.User, strings.Join(opts.Names, ", "))
	if len(opts.Names) == 1 {
		question = fmt.Sprintf("Stop %s?", opts.Names[0])
	}
	return prompt.Confirm(opts.Factory.IO, opts.Yes, "job stop --all", question)
}

func stopRun(ctx context.Context, opts *StopOptions) error {
	if opts.All {
		if err := opts.chosen(ctx); err != nil {
			return err
		}
		if len(opts.Names) == 0 {
			opts.Factory.IO.Say("you have no jobs to stop")
			return nil
		}
	}
	stop := func(ctx context.Context, c *client.Jobs, j *job.Job) (job.Phase, error) { return c.Stop(ctx, j) }
	return opts.eachAtOnce(ctx, stop, func(ctx context.Context, c *client.Jobs, j *job.Job, before job.Phase) error {
		io := opts.Factory.IO
		switch {
		case before.Done():
			io.Say("%s %s already", j.Title(), before.Verb())
			return nil
		case !opts.Wait:
			io.Say("%s is stopping", j.Title())
			return nil
		}
		last, err := follow(ctx, opts.Factory, c, j, followOptions{until: job.Phase.Done, timeout: opts.Timeout, quiet: true})
		if err != nil {
			return err
		}
		io.Say("%s %s", j.Title(), job.Phase(last.State).Verb())
		return nil
	})
}
