package job

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
)

// DeleteOptions are those of "paictl job delete".
type DeleteOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Names   []string
	Yes     bool
	Timeout time.Duration
}

// NewCmdDelete returns "paictl job delete". runF replaces the run in tests.
func NewCmdDelete(f *cmdutil.Factory, runF func(context.Context, *DeleteOptions) error) *cobra.Command {
	opts := &DeleteOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "delete NAME...",
		Aliases: []string{"rm"},
		Short:   "End jobs and remove them from Kubernetes; the history keeps them",
		Long: `Ends a job's tasks, as "paictl job stop" does, and removes its Framework, pods and secrets. The history
keeps what became of it, and the end of its logs. Jobs that have ended are removed by themselves after
some time; this is for those whose name or pods are in the way.`,
		Example: `  paictl job delete train
  paictl job delete train-1 train-2 --yes`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Names = args
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return deleteRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 2*time.Minute, "wait so long until a job is gone; 0 is without end")
	return cmd
}

func deleteRun(ctx context.Context, opts *DeleteOptions) error {
	return each(ctx, opts.Factory, &opts.Flags, opts.Names, func(c *job.Client, j *job.Job) error {
		io := opts.Factory.IO
		if !j.Live() {
			fmt.Fprintf(io.Err, "%s is gone already; the history keeps it\n", j.Title())
			return nil
		}
		state := job.StateOf(j.Framework, nil, nil)
		question := fmt.Sprintf("Delete %s, which %s?", j.Title(), state.Phase.Verb())
		if !state.Phase.Done() {
			question = fmt.Sprintf("Delete %s, which %s? Its tasks are ended.", j.Title(), state.Phase.Verb())
		}
		if err := prompt.Confirm(io, opts.Yes, "the removal of "+j.Title(), question); err != nil {
			return err
		}
		if opts.Timeout > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, opts.Timeout, fmt.Errorf("after %s", opts.Timeout))
			defer cancel()
			ctx = limited
		}
		if err := c.Remove(ctx, j); err != nil {
			return err
		}
		fmt.Fprintf(io.Err, "%s is deleted\n", j.Title())
		return nil
	})
}
