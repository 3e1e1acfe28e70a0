package node

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/metrics"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdMetrics returns "paictl node metrics".
func NewCmdMetrics(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "metrics NODE",
		Short: "Show how much CPU, memory and GPU a machine has used over time",
		Long: `Shows how a machine used its GPUs, processors, memory, disks and network over time. It needs no configuration folder: after
"paictl login" everyone who may see the machine may use it. The names of file systems are shown to administrators only. The figures
come from the service prometheus.`,
		Example: `  paictl node metrics gpu-1
  paictl node metrics gpu-1 --since 7d
  paictl node metrics gpu-1 --since 1h -o json`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	metrics.Add(f, cmd, &connection.Flags{}, (*client.Server).MachineMetrics)
	return cmd
}
