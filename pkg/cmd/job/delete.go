package job

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
)

// DeleteOptions are the options of "paictl job delete".
type DeleteOptions struct {
	Several
	// History means that the job is also removed from the history.
	History bool
	Yes     bool
	Timeout time.Duration
}

// NewCmdDelete returns "paictl job delete".
func NewCmdDelete(f *cmdutil.Factory) *cobra.Command {
	opts := &DeleteOptions{Several: Several{Factory: f}}
	cmd := &cobra.Command{
		Use:     "delete NAME...",
		Aliases: []string{"rm"},
		Short:   "Stop jobs and remove them from Kubernetes; with --history, also from the history",
		Long: `Stops a job's tasks, as "paictl job stop" does, and removes its Framework, pods and secrets. The
history keeps its result and the end of its logs. Finished jobs are removed automatically after some time; use
this command when you need the name or the pods must go now.

With --history nothing is kept: all your jobs of that name are also removed from the history,
including their logs and jobs that Kubernetes no longer has. This can't be undone.`,
		Example: `  paictl job delete train
  paictl job delete train-1 train-2 --yes
  paictl job delete secret-experiment --history`,
	}
	opts.takes(cmd, func(ctx context.Context) error {
		return deleteRun(ctx, opts)
	})
	cmd.Flags().BoolVar(&opts.History, "history", false, "also remove the jobs of that name, and their logs, from the history")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 2*time.Minute, "wait this long until a job is gone; 0 waits forever")
	return cmd
}

func deleteRun(ctx context.Context, opts *DeleteOptions) error {
	return opts.each(ctx, func(ctx context.Context, c *client.Jobs, j *job.Job) error {
		if !j.Live && !opts.History {
			opts.Factory.IO.Say("%s is already gone; the history keeps it (--history removes it there)", j.Title())
			return nil
		}
		if err := prompt.Confirm(opts.Factory.IO, opts.Yes, "the removal of "+j.Title(), opts.question(j)); err != nil {
			return err
		}
		if opts.Timeout > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, opts.Timeout, fmt.Errorf("after %s", opts.Timeout))
			defer cancel()
			ctx = limited
		}
		if j.Live {
			if err := c.Remove(ctx, j); err != nil {
				return err
			}
			opts.Factory.IO.Say("%s is deleted", j.Title())
		}
		if !opts.History {
			return nil
		}
		return opts.forget(ctx, c, j)
	})
}

// question returns the question that the user must confirm. It describes the data that is lost.
func (opts *DeleteOptions) question(j *job.Job) string {
	past := "what the history has of jobs of that name, with their logs? This can't be undone."
	if !j.Live {
		return fmt.Sprintf("Delete %s: %s", j.Title(), past)
	}
	text := fmt.Sprintf("Delete %s, which %s?", j.Title(), j.State.Verb())
	if opts.History {
		text = fmt.Sprintf("Delete %s, which %s, and %s", j.Title(), j.State.Verb(), past)
	}
	if !j.State.Done() {
		text += " Its tasks are stopped."
	}
	return text
}

// forget removes a job from the history.
func (opts *DeleteOptions) forget(ctx context.Context, c *client.Jobs, j *job.Job) error {
	n, err := c.Forget(ctx, j)
	switch {
	case err != nil:
		return c.Explain(fmt.Errorf("remove %s from the history: %w", j.Title(), err))
	case n == 0:
		opts.Factory.IO.Say("the history has no entry for %s", j.Title())
		return nil
	case n > 1:
		opts.Factory.IO.Say("%d jobs named %s were removed from the history", n, j.Title())
		return nil
	}
	opts.Factory.IO.Say("%s was removed from the history", j.Title())
	return nil
}
