package job

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/code"
)

// TopOptions are the options of "paictl job top".
type TopOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Output  cmdutil.Output
	Name    string
	Watch   time.Duration
}

// NewCmdTop returns "paictl job top".
func NewCmdTop(f *cmdutil.Factory) *cobra.Command {
	opts := &TopOptions{Factory: f}
	cmd := &cobra.Command{
		Use:        "top NAME",
		SuggestFor: []string{"sstat", "nvidia-smi"},
		Short:      "Show how much CPU, memory and GPU the tasks of a job use",
		Long: `Shows for each running task how much it uses of the CPU and the memory that it requested, as measured by
log-manager on its machine, or else by the kubelet, and which GPUs the scheduler allocated to it. Their utilization (the mean of all),
memory and power (the sums) come from the machine's agent, or from NVIDIA's dcgm-exporter; "?" stands for values
that are not measured.`,
		Example: `  paictl job top train
  paictl job top train --watch 5s
  paictl job top train -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if opts.Watch < 0 || opts.Watch > 0 && opts.Watch < time.Second {
				return cmdutil.Usagef("--watch %s: give a second or more", opts.Watch)
			}
			return topRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().DurationVarP(&opts.Watch, "watch", "w", 0, "repeat after this time, such as 5s")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml")
	return cmd
}

func topRun(ctx context.Context, opts *TopOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	return job.Repeat(ctx, opts.Watch, func(first bool) error {
		if !first {
			if j, err = c.Get(ctx, j); err != nil {
				return err
			}
		}
		return topOnce(ctx, opts, c, j)
	})
}

func topOnce(ctx context.Context, opts *TopOptions, c *client.Jobs, j *job.Job) error {
	list, problems, err := c.Top(ctx, j)
	if err != nil {
		return err
	}
	io := opts.Factory.IO
	for _, p := range problems {
		io.Say("warning: %v", p)
	}
	if len(list) == 0 && opts.Output.IsTable() {
		io.Say("no task of %s runs; see: paictl job why %[1]s", j.Title())
		return nil
	}
	t := cmdutil.Table{Header: []string{"TASK", "NODE", "CPU", "OF", "MEMORY", "OF", "GPUS", "GPU INDICES"}}
	gpus, measured := false, true
	for _, u := range list {
		gpus = gpus || u.GPUs > 0
		measured = measured && (u.GPUs == 0 || u.GPUUtilization != nil)
	}
	if gpus {
		t.Header = append(t.Header, "BUSY", "GPU MEMORY", "OF", "POWER")
	}
	for _, u := range list {
		indices := "-"
		if len(u.GPUIndices) > 0 {
			indices = strings.Join(u.GPUIndices, ",")
		}
		row := []string{u.Task, u.Node, cores(u.CPU), limit(u.CPULimit > 0, cores(&u.CPULimit)), bytesText(u.Memory),
			limit(u.MemoryLimit > 0, code.Size(u.MemoryLimit)), fmt.Sprint(u.GPUs), indices}
		switch {
		case u.GPUs > 0:
			row = append(row, text(u.GPUUtilization, "%.0f %%"), bytesText(u.GPUMemory), bytesText(u.GPUMemorySize), text(u.GPUPower, "%.0f W"))
		case gpus:
			row = append(row, "-", "-", "-", "-")
		}
		t.Rows = append(t.Rows, row)
	}
	if err := opts.Output.Write(io.Out, list, t); err != nil {
		return err
	}
	if gpus && !measured && opts.Output.IsTable() {
		io.Say("how busy the GPUs are: paictl job exec %s -- nvidia-smi", opts.Name)
	}
	return nil
}

func cores(n *float64) string { return text(n, "%.2f") }

// text formats a number, or returns "?" if the number is unknown.
func text(n *float64, format string) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprintf(format, *n)
}

func bytesText(n *int64) string {
	if n == nil {
		return "?"
	}
	return code.Size(*n)
}

func limit(there bool, text string) string {
	if !there {
		return "-"
	}
	return text
}
