package job

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// QueueOptions are those of "paictl job queue".
type QueueOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	VC      string
	Output  cmdutil.Output
}

// NewCmdQueue returns "paictl job queue". runF replaces the run in tests.
func NewCmdQueue(f *cmdutil.Factory, runF func(context.Context, *QueueOptions) error) *cobra.Command {
	opts := &QueueOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Show which jobs wait for GPUs, in their order",
		Long: `Shows the queue of every virtual cluster: who comes next, how many GPUs it asks for, and why it waits. The
order is that of priority, then of arrival; a smaller job may start before one that finds no place.`,
		Example: `  paictl job queue
  paictl job queue --vc vision -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return queueRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Flags.Kube)
	cmd.Flags().StringVar(&opts.VC, "vc", "", "only of this virtual cluster")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func queueRun(ctx context.Context, opts *QueueOptions) error {
	c, err := job.Open(opts.Flags.Kube)
	if err != nil {
		return err
	}
	waiting, err := c.Waiting(ctx, opts.VC)
	if errors.Is(err, vc.ErrNotRunning) {
		return hint.Wrap(err, "look at it with: paictl service status -n scheduler; start it with: paictl service start -n scheduler")
	}
	if err != nil {
		return c.Explain(err)
	}
	io := opts.Factory.IO
	if len(waiting.Items) == 0 && opts.Output.Is("table") {
		fmt.Fprintln(io.Err, "nothing waits for GPUs")
		return nil
	}
	t := cmdutil.Table{Header: []string{"JOB", "VC", "POSITION", "GPUS", "PODS", "PRIORITY", "WAITS", "REASON"}}
	for i := range waiting.Items {
		w := &waiting.Items[i]
		t.Rows = append(t.Rows, []string{w.Job, w.VC, strconv.Itoa(w.PositionInVC), strconv.Itoa(w.GPUs), strconv.Itoa(w.Pods), strconv.Itoa(w.Priority), waits(w.Since, c.Now()), dash(w.Reason)})
	}
	return opts.Output.Write(io.Out, waiting, t)
}

func waits(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return job.Duration(now.Sub(since))
}
