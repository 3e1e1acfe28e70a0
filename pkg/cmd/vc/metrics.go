package vc

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/metrics"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdMetrics returns "paictl vc metrics".
func NewCmdMetrics(f *cmdutil.Factory) *cobra.Command {
	fl := &connection.Flags{}
	cmd := &cobra.Command{
		Use:   "metrics NAME",
		Short: "Show the GPUs and the queue of a virtual cluster over time",
		Long: `Shows how many GPUs of a virtual cluster were used over time, how busy those were that its tasks held, and how many jobs
waited. The figures come from the service prometheus. Use "job usage" for GPU hours.`,
		Example: `  paictl vc metrics vision
  paictl vc metrics vision --since 7d
  paictl vc metrics vision --since 1d -o json`,
		ValidArgsFunction: completeNames(f, fl, 1),
	}
	metrics.Add(f, cmd, fl, (*client.Server).VirtualClusterMetrics)
	return cmd
}
