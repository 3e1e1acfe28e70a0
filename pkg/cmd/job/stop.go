package job

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
)

// StopOptions are those of "paictl job stop".
type StopOptions struct {
	Several
	Wait    bool
	Timeout time.Duration
}

// NewCmdStop returns "paictl job stop". runF replaces the run in tests.
func NewCmdStop(f *cmdutil.Factory, runF func(context.Context, *StopOptions) error) *cobra.Command {
	opts := &StopOptions{Several: Several{Factory: f}}
	cmd := &cobra.Command{
		Use:   "stop NAME...",
		Short: "Stop jobs: their programs get SIGTERM and time to save what they have",
		Long: `Ends jobs for good. Each task's program gets SIGTERM, and SIGKILL after its grace period (30 seconds, or
extras.gracePeriodSec of the job file). A job that waits stops at once. Its logs and its history stay;
"paictl job retry" runs it again.`,
		Example: `  paictl job stop train
  paictl job stop train-1 train-2 --wait`,
	}
	opts.takes(cmd, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return stopRun(ctx, opts)
	})
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "wait until nothing of them runs any more")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 0, "wait no longer than this; 0 is without end")
	return cmd
}

func stopRun(ctx context.Context, opts *StopOptions) error {
	return opts.each(ctx, func(ctx context.Context, c *job.Client, j *job.Job) error {
		before, err := c.Stop(ctx, j)
		if err != nil {
			return err
		}
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
