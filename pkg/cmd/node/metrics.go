package node

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/metrics"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// MetricsOptions are the options of "paictl node metrics".
type MetricsOptions struct {
	Factory *cmdutil.Factory
	Flags   connection.Flags
	Range   metrics.Flags
	Node    string
}

// NewCmdMetrics returns "paictl node metrics".
func NewCmdMetrics(f *cmdutil.Factory) *cobra.Command {
	opts := &MetricsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "metrics NODE",
		Short: "Show how much CPU, memory and GPU a machine has used over time",
		Long: `Shows how a machine used its GPUs, processors, memory, disks and network over time. It needs no configuration folder: after
"paictl login" everyone who may see the machine may use it. The names of file systems are shown to administrators only. The figures
come from the service prometheus.`,
		Example: `  paictl node metrics gpu-1
  paictl node metrics gpu-1 --since 7d
  paictl node metrics gpu-1 --since 1h -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Node = args[0]
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
	r, err := c.Server.MachineMetrics(ctx, opts.Node, w)
	if err != nil {
		return err
	}
	return opts.Range.Write(opts.Factory, r)
}
