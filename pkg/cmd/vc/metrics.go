package vc

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/metrics"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// MetricsOptions are the options of "paictl vc metrics".
type MetricsOptions struct {
	Factory *cmdutil.Factory
	Flags   connection.Flags
	Range   metrics.Flags
	Name    string
}

// NewCmdMetrics returns "paictl vc metrics".
func NewCmdMetrics(f *cmdutil.Factory) *cobra.Command {
	opts := &MetricsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "metrics NAME",
		Short: "Show the GPUs and the queue of a virtual cluster over time",
		Long: `Shows how many GPUs of a virtual cluster were used over time, how busy those were that its tasks held, and how many jobs
waited. The figures come from the service prometheus. Use "job usage" for GPU hours.`,
		Example: `  paictl vc metrics vision
  paictl vc metrics vision --since 7d
  paictl vc metrics vision --since 1d -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(f, &opts.Flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return metricsRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddFlags(f, cmd)
	opts.Range.Add(cmd, "6h")
	return cmd
}

func metricsRun(ctx context.Context, opts *MetricsOptions) error {
	w, err := opts.Range.Window(time.Now())
	if err != nil {
		return err
	}
	c, err := opts.Flags.Open(opts.Factory)
	if err != nil {
		return err
	}
	r, err := c.Server.VirtualClusterMetrics(ctx, opts.Name, w)
	if err != nil {
		return err
	}
	return opts.Range.Write(opts.Factory, r)
}
