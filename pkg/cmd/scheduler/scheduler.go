// Package scheduler contains the commands "paictl scheduler ...", which show the effect of dividing a cluster into virtual clusters before it is
// applied.
// In: a scheduler configuration, steps or a trace of jobs. Out: findings, the scheduler's response to each step, and the waiting times of the
// jobs. Only "check --cluster" contacts a cluster.
package scheduler

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdScheduler returns "paictl scheduler".
func NewCmdScheduler(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scheduler",
		Short: "Check and simulate how virtual clusters share the GPUs",
		Long: `Works on a scheduler configuration without a cluster: a file in HiveD's format, or the
configuration made from layout.yaml and services-configuration.yaml of a folder. It uses the same
scheduler code that runs in a cluster.

"check" finds mistakes and shows the division, "replay" runs single steps, "simulate" runs a trace of
jobs in virtual time and reports how long they would have waited.`,
		Example: `  paictl scheduler check -p ./cluster
  paictl scheduler replay --config hivedscheduler.yaml steps.yaml
  paictl scheduler trace --gpus 512 -d ./trace
  paictl scheduler simulate --config ./trace/hived-512.yaml --trace ./trace/trace-512.csv`,
	}
	cmd.AddCommand(NewCmdCheck(f), NewCmdReplay(f), NewCmdSimulate(f), NewCmdTrace(f))
	return cmd
}
