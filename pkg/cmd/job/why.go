package job

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// WhyOptions are the options of "paictl job why".
type WhyOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Name    string
	Output  cmdutil.Output
}

// NewCmdWhy returns "paictl job why".
func NewCmdWhy(f *cmdutil.Factory) *cobra.Command {
	opts := &WhyOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Say in one sentence why a job waits or failed, and what to do",
		Long: `Asks every component that knows about the job: the scheduler (queue, missing GPUs, who has them),
Kubernetes (machines, images, volumes, quotas), the job controller (retries), the failure rules and the
end of the program's logs. The first line is the reason, lines with -> say what to do, the rest are facts.`,
		Example: `  paictl job why train
  paictl job why train -o json | jq -r .sentence`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return whyRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func whyRun(ctx context.Context, opts *WhyOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	w, err := c.Why(ctx, j)
	if err != nil {
		return err
	}
	if opts.Output.Is("text") {
		writeWhy(opts.Factory.IO.Out, w)
		return nil
	}
	return opts.Output.Write(opts.Factory.IO.Out, w, cmdutil.Table{})
}

// writeWhy prints why a job waits or failed, the remedies, the facts, and the last lines of the program's output.
func writeWhy(out io.Writer, w *job.Why) {
	fmt.Fprintln(out, terminal.Line(fmt.Sprintf("%s (%s): %s", w.Job, w.State, w.Sentence)))
	for _, r := range w.Remedy {
		fmt.Fprintf(out, "  -> %s\n", terminal.Line(r))
	}
	if len(w.Facts) > 0 {
		fmt.Fprintln(out)
		rows := cmdutil.NewRows(out)
		for _, f := range w.Facts {
			rows.Add(f.What, f.Text)
		}
		_ = rows.Flush() // the same writer returns its error below
	}
	if len(w.Log) > 0 {
		log := terminal.Lines(strings.Join(w.Log, "\n"))
		fmt.Fprintf(out, "\nits log:\n  %s\n", strings.Join(log, "\n  "))
	}
}
