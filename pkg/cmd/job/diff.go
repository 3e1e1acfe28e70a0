package job

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// DiffOptions are the options of "paictl job diff".
type DiffOptions struct {
	Factory     *cmdutil.Factory
	Flags       Flags
	Name, Other string
}

// NewCmdDiff returns "paictl job diff".
func NewCmdDiff(f *cmdutil.Factory) *cobra.Command {
	opts := &DiffOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "diff NAME [OTHER]",
		Short: "Compare the job files of two jobs",
		Long: `Compares the job file of a job with that of the job that it was cloned from, or with that of OTHER. Lines
that only NAME has begin with +. Secrets are masked in both, so jobs that differ only in secrets look the same.

A job is compared with the job that it was cloned from even if a later job has that name now.`,
		Example: `  paictl job diff train-2
  paictl job diff train-2 bob/train`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: opts.Flags.completeJobs(f, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if len(args) > 1 {
				opts.Other = args[1]
			}
			return diffRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	return cmd
}

func diffRun(ctx context.Context, opts *DiffOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	var other *job.Job
	if opts.Other == "" {
		other, err = c.Parent(ctx, j)
	} else {
		_, other, err = opts.Flags.find(ctx, opts.Factory, opts.Other)
	}
	if err != nil {
		return err
	}
	text, err := job.Diff(other, j)
	if err != nil {
		return err
	}
	console := opts.Factory.IO
	if text == "" {
		console.Say("%s and %s have the same job file", j.Title(), other.Title())
		return nil
	}
	if console.IsOutTTY() {
		text = terminal.Text(text)
	}
	_, err = io.WriteString(console.Out, text)
	return err
}
