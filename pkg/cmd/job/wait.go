package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
)

// WaitOptions are the options of "paictl job wait".
type WaitOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Name    string
	// For is one of the values that waitFor returns.
	For     string
	Timeout time.Duration
	Quiet   bool
}

const forRunning = "running"

// waitFor returns the allowed values of --for. The first value is the default.
func waitFor() []string { return []string{"done", forRunning} }

// NewCmdWait returns "paictl job wait".
func NewCmdWait(f *cmdutil.Factory) *cobra.Command {
	opts := &WaitOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a job has finished, and exit with its exit code",
		Long: `Waits until a job has finished, or with --for running until all its tasks run. Each state is printed on
stderr. If the connection is lost, it connects again. Ctrl-C ends the waiting; the job keeps running.

Exit codes: 0 if the job succeeded (or runs, with --for running), the job's own code if it failed, 1 if
it was stopped or its code is negative, 124 after --timeout, 130 after Ctrl-C.`,
		Example: `  paictl job wait train && paictl job submit evaluate.yaml
  paictl job wait train --for running --timeout 10m`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if !slices.Contains(waitFor(), opts.For) {
				return cmdutil.Usagef("--for %s: write %s", opts.For, strings.Join(waitFor(), " or "))
			}
			if opts.Timeout < 0 {
				return cmdutil.Usagef("--timeout %s: give a duration, or 0 to wait forever", opts.Timeout)
			}
			return waitRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	fl := cmd.Flags()
	fl.StringVar(&opts.For, "for", waitFor()[0], "what to wait for: "+strings.Join(waitFor(), " or "))
	fl.DurationVar(&opts.Timeout, "timeout", 0, "wait no longer than this; 0 waits forever")
	fl.BoolVarP(&opts.Quiet, "quiet", "q", false, "don't print the states")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(waitFor(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func waitRun(ctx context.Context, opts *WaitOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	until := job.Phase.Done
	if opts.For == forRunning {
		until = func(p job.Phase) bool { return p == job.Running }
	}
	d, err := follow(ctx, opts.Factory, c, j, followOptions{until: until, timeout: opts.Timeout, quiet: opts.Quiet})
	if err != nil {
		return err
	}
	if opts.For == forRunning && job.Phase(d.State) == job.Running {
		return nil
	}
	return tellEnd(ctx, opts.Factory, c, j, d, opts.Quiet)
}

// tellEnd prints why a job failed, unless quiet is set. It returns an error with the job's exit code, which becomes the exit code of the
// command.
func tellEnd(ctx context.Context, f *cmdutil.Factory, c *client.Jobs, j *job.Job, d *job.Detail, quiet bool) error {
	if quiet || job.Phase(d.State) == job.Succeeded {
		return exitOf(d)
	}
	now, err := c.Get(ctx, j)
	if err != nil {
		return exitOf(d)
	}
	if w, err := c.Why(ctx, now); err == nil {
		fmt.Fprintln(f.IO.Err)
		writeWhy(f.IO.Err, w)
	}
	return exitOf(d)
}
