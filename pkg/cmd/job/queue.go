package job

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
)

// QueueOptions are the options of "paictl job queue".
type QueueOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	VC      string
	Limit   int
	Output  cmdutil.Output
}

// NewCmdQueue returns "paictl job queue".
func NewCmdQueue(f *cmdutil.Factory) *cobra.Command {
	opts := &QueueOptions{Factory: f}
	cmd := &cobra.Command{
		Use:        "queue",
		SuggestFor: []string{"sprio"},
		Short:      "Show which jobs wait for GPUs or CPU cells, in the order of the queue",
		Long: `Shows the queue of every virtual cluster: which job is next, how many GPUs it requests, and why it waits.
Jobs with a guarantee come first, then jobs are ordered by priority, then by arrival. A smaller job may
start before one that does not fit, until that one has waited so long that GPUs are reserved for it
(REASON says so). Virtual clusters take turns: the one that holds the fewest GPUs is next. GPUS is the
total number that the job requests, PODS the number of its tasks that have no place yet. If jobs without
GPUs wait, CPUS and MEMORY are shown as well. "paictl job why" says more about one job.`,
		Example: `  paictl job queue
  paictl job queue --limit 10
  paictl job queue --vc vision --limit 0 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Limit < 0 {
				return cmdutil.Usagef("--limit %d: give a number from 0", opts.Limit)
			}
			return queueRun(cmd.Context(), opts)
		},
	}
	opts.Flags.addConnection(f, cmd)
	cmd.Flags().StringVar(&opts.VC, "vc", "", "only jobs of this virtual cluster")
	cmd.Flags().IntVar(&opts.Limit, "limit", defaultLimit, "at most this many jobs, those that start next; 0 shows all")
	_ = cmd.RegisterFlagCompletionFunc("vc", opts.Flags.completeVC(f))
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func queueRun(ctx context.Context, opts *QueueOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	waiting, err := c.Waiting(ctx, opts.VC, opts.Limit)
	if err != nil {
		return c.Explain(err)
	}
	io := opts.Factory.IO
	if len(waiting.Items) == 0 && opts.Output.IsTable() {
		if opts.VC != "" {
			io.Say("no jobs are waiting in %s", opts.VC)
			return nil
		}
		io.Say("no jobs are waiting")
		return nil
	}
	if opts.Output.Is("name") {
		return opts.Output.Write(io.Out, waiting, queueNames(waiting))
	}
	if err := opts.Output.Write(io.Out, waiting, queueTable(waiting, time.Now())); err != nil {
		return err
	}
	if more := waiting.Total - len(waiting.Items); more > 0 && opts.Output.IsTable() {
		io.Say("there are %d more: --limit 0 shows all", more)
	}
	return nil
}

// queueNames returns each waiting job once, in the order of the list.
func queueNames(waiting *job.WaitingList) (t cmdutil.Table) {
	seen := map[string]bool{}
	for i := range waiting.Items {
		if name := waiting.Items[i].Job; !seen[name] {
			seen[name] = true
			t.Rows = append(t.Rows, []string{name})
		}
	}
	return t
}

// queueTable returns the waiting jobs grouped by virtual cluster, because each virtual cluster has a separate queue with its positions.
func queueTable(waiting *job.WaitingList, now time.Time) cmdutil.Table {
	gangs, host := map[string]int{}, false
	for i := range waiting.Items {
		gangs[waiting.Items[i].Job]++
		host = host || waiting.Items[i].GPUs == 0
	}
	t := cmdutil.Table{Header: []string{"JOB", "VC", "POSITION", "PRIORITY", "GPUS"}}
	if host {
		t.Header = append(t.Header, "CPUS", "MEMORY")
	}
	t.Header = append(t.Header, "PODS", "WAITS", "REASON")
	items := slices.Clone(waiting.Items)
	slices.SortStableFunc(items, func(a, b job.WaitingGang) int { return strings.Compare(a.VC, b.VC) })
	for i := range items {
		w := &items[i]
		name := w.Job
		if _, gang, ok := strings.Cut(w.Group, "/"); ok && gangs[w.Job] > 1 {
			name += " (" + gang + ")"
		}
		priority := strconv.Itoa(w.Priority)
		if class, ok := protocol.PriorityClass(w.Priority); ok {
			priority = class
		}
		row := []string{name, w.VC, strconv.Itoa(w.PositionInVC), priority, strconv.Itoa(w.GPUs)}
		if host {
			row = append(row, amount(w.MilliCPU, job.CPUText), amount(w.MemoryMB, job.MemoryText))
		}
		reason := cmp.Or(w.Reason, "not checked yet")
		if share := job.ShareText(w.Request); share != "" {
			reason += "; it takes " + share
		}
		t.Rows = append(t.Rows, append(row, strconv.Itoa(w.Pods), waits(w.Since, now), reason))
	}
	return t
}

func waits(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return job.Duration(now.Sub(since))
}
