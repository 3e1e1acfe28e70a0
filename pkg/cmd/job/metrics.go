package job

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/metrics"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
)

// MetricsOptions are the options of "paictl job metrics".
type MetricsOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Range   metrics.Flags
	Name    string
	Task    string
}

// NewCmdMetrics returns "paictl job metrics".
func NewCmdMetrics(f *cmdutil.Factory) *cobra.Command {
	opts := &MetricsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "metrics NAME",
		Short: "Show how much CPU, memory and GPU a job has used over time",
		Long: `Shows how the tasks of a job used their GPUs, processors, memory, network and disks over time, also after the job has
finished: the lowest, the mean and the highest value, and a line that is drawn. If the figures explain why a job is slow, for
example that its GPUs wait for data, a sentence says so.

If there are more than 8 GPUs or 5 tasks, the lines are the lowest, the mean and the highest of all; --task selects one task.
Use "job top" for the current use. The figures come from the service prometheus, which keeps them for 31 days by default.`,
		Example: `  paictl job metrics train
  paictl job metrics train --since 1h
  paictl job metrics train --task worker[0]
  paictl job metrics train --since 7d -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return metricsRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().StringVar(&opts.Task, "task", "", "only this task: its index, or ROLE[INDEX]")
	opts.Range.Add(cmd, "the start of the job")
	return cmd
}

func metricsRun(ctx context.Context, opts *MetricsOptions) error {
	w, err := opts.Range.Window(time.Now())
	if err != nil {
		return err
	}
	role, index, err := parseTask("", opts.Task)
	if err != nil {
		return err
	}
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	task := ""
	if index >= 0 {
		if role == "" && len(j.Roles) != 1 {
			return cmdutil.Usagef("--task %s: the job has %d roles; give ROLE[INDEX]", opts.Task, len(j.Roles))
		}
		if role == "" {
			role = j.Roles[0].Name
		}
		task = job.TaskName(role, index)
	}
	r, err := c.Metrics(ctx, j, task, w)
	if err != nil {
		return err
	}
	return opts.Range.Write(opts.Factory, r)
}
