package job

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// RetryOptions are the options of "paictl job retry".
type RetryOptions struct {
	Several
	Watch, Yes bool
}

// NewCmdRetry returns "paictl job retry".
func NewCmdRetry(f *cmdutil.Factory) *cobra.Command {
	opts := &RetryOptions{Several: Several{Factory: f}}
	cmd := &cobra.Command{
		Use:   "retry NAME...",
		Short: "Run jobs again, as they were submitted",
		Long: `A job that failed, was stopped or succeeded runs again under its name, with its secrets and code, as if it
had been submitted again; its earlier result stays in the history. Its checkpoints are not touched.

A job that waits for its next attempt starts it now. A job that has not
finished is stopped and starts its next attempt; that must be confirmed.

Jobs whose Framework is gone (the controller removes it some time after the job has finished) can't be
retried, because their secrets are gone as well: see "paictl job clone".`,
		Example: `  paictl job retry train
  paictl job list --state failed --since 1d -o name | xargs paictl job retry`,
	}
	opts.takes(cmd, func(ctx context.Context) error {
		if opts.Watch && len(opts.Names) > 1 {
			return cmdutil.Usagef("--watch is for one job")
		}
		return retryRun(ctx, opts)
	})
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask before a job that has not finished is stopped and started again")
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "print each state and follow the logs until the job has finished; the exit code is the job's")
	return cmd
}

func retryRun(ctx context.Context, opts *RetryOptions) error {
	return eachName(ctx, opts.Factory, opts.Names, func(name string) error {
		c, j, err := opts.Flags.find(ctx, opts.Factory, name)
		if err != nil && !job.IsNotFound(err) {
			return err
		}
		return opts.retry(ctx, c, j, err)
	})
}

// retry retries one job. missing is the error if no job with the name was found. The job may be missing only for the short time between the
// removal of its old Framework and the creation of its new Framework.
func (opts *RetryOptions) retry(ctx context.Context, c *client.Jobs, j *job.Job, missing error) error {
	if missing == nil && j.Live && !j.State.Done() && j.State != job.Retry {
		question := fmt.Sprintf("Retry %s, which %s? Its tasks are stopped, and start again from the beginning or their last checkpoint.", j.Title(), j.State.Verb())
		if err := prompt.Confirm(opts.Factory.IO, opts.Yes, "the retry of "+j.Title(), question); err != nil {
			return err
		}
	}
	before, err := c.Retry(ctx, j)
	if job.IsNotFound(err) {
		return missing
	}
	if err != nil {
		return err
	}
	io := opts.Factory.IO
	if before.Done() {
		io.Say("%s is submitted again", j.Title())
	} else {
		io.Say("%s starts its next attempt", j.Title())
	}
	if !opts.Watch {
		return nil
	}
	if j, err = c.Resolve(ctx, j.User, j.Name); err != nil {
		return err
	}
	return watch(ctx, opts.Factory, c, j, followOptions{until: job.Phase.Done}, false)
}

// ScaleOptions are the options of "paictl job scale".
type ScaleOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Name    string
	Role    string
	Tasks   int
}

// NewCmdScale returns "paictl job scale".
func NewCmdScale(f *cmdutil.Factory) *cobra.Command {
	opts := &ScaleOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "scale NAME --tasks N",
		Short: "Change how many tasks a role of a running job has",
		Long: `New tasks get the next indexes; to scale down, the tasks with the highest indexes are stopped, with
SIGTERM and their grace period. If all tasks of the role had to succeed, they still must.

Only jobs with "extras: {gangAllocation: false}" can be scaled: tasks of a gang start together and know
each other's addresses from the start.`,
		Example: `  paictl job scale sweep --tasks 16
  paictl job scale serve --role worker --tasks 4`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if !cmd.Flags().Changed("tasks") {
				return cmdutil.Usagef("say how many tasks with --tasks N (see %s --help)", cmd.CommandPath())
			}
			if opts.Tasks < 0 {
				return cmdutil.Usagef("--tasks %d: give a number from 0", opts.Tasks)
			}
			return scaleRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().StringVar(&opts.Role, "role", "", "the task role; optional if there is only one")
	cmd.Flags().IntVar(&opts.Tasks, "tasks", 0, "new number of tasks")
	_ = cmd.RegisterFlagCompletionFunc("role", opts.Flags.completeRoles(f))
	return cmd
}

func scaleRun(ctx context.Context, opts *ScaleOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	return opts.scale(ctx, c, j)
}

func (opts *ScaleOptions) scale(ctx context.Context, c *client.Jobs, j *job.Job) error {
	scaled, err := c.Scale(ctx, j, opts.Role, opts.Tasks)
	if err != nil {
		return err
	}
	io := opts.Factory.IO
	if scaled.Before == opts.Tasks {
		io.Say("%s already has %s", j.Title(), plural.Of(scaled.Before, "task"))
		return nil
	}
	for i := range scaled.Findings {
		f := &scaled.Findings[i]
		io.Say("warning: %s", f.Message)
		if f.Remedy != "" {
			io.Say("  -> %s", f.Remedy)
		}
	}
	io.Say("%s is scaled from %s to %d", j.Title(), plural.Of(scaled.Before, "task"), opts.Tasks)
	return nil
}
