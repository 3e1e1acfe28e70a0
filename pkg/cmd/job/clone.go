package job

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
)

// CloneOptions are the options of "paictl job clone".
type CloneOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Name    string
	As      string
	File    string
	Force   bool
}

// NewCmdClone returns "paictl job clone".
func NewCmdClone(f *cmdutil.Factory) *cobra.Command {
	opts := &CloneOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "clone NAME",
		Short: "Write a job file from a running or finished job",
		Long: `Writes the file that a job was submitted with, under a new job name, for you to edit and submit. Its
secrets were masked when it was stored: write them into the file again.

"paictl job submit --cloned-from NAME" records which job it comes from.`,
		Example: `  paictl job clone train -o train-2.yaml
  paictl job clone bob/train --as my-train > my-train.yaml
  paictl job submit my-train.yaml --cloned-from bob/train`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return cloneRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().StringVar(&opts.As, "as", "", "name of the new job (default: the old name with a number)")
	cmd.Flags().StringVarP(&opts.File, "output", "o", "", "write to this file instead of stdout")
	cmd.Flags().BoolVar(&opts.Force, "force", false, "overwrite the file")
	return cmd
}

func cloneRun(ctx context.Context, opts *CloneOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	as := opts.As
	if as == "" {
		if as, err = c.FreeName(ctx, j); err != nil {
			return err
		}
	}
	text, secrets, err := job.Clone(j, as)
	if err != nil {
		return err
	}
	io := opts.Factory.IO
	if opts.File == "" {
		if _, err := io.Out.Write(text); err != nil {
			return err
		}
	} else if err := writeNew(opts.File, text, opts.Force, 0o600); err != nil { // it will contain secrets
		return err
	} else {
		io.Say("wrote %s, the job %s", opts.File, as)
	}
	if secrets {
		io.Say("its secrets are masked: write them into the file again before it is submitted")
	}
	return nil
}
