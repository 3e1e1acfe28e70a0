package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
)

// Several are the common options of verbs on several jobs.
type Several struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Names   []string
}

// takes makes a command one on jobs by name.
func (s *Several) takes(cmd *cobra.Command, run func(context.Context) error) {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = s.Flags.completeJobs(s.Factory, 0)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s.Names = args
		return run(cmd.Context())
	}
	s.Flags.add(s.Factory, cmd)
}

// each runs a verb on all jobs.
func (s *Several) each(ctx context.Context, run func(context.Context, Jobs, *job.Job) error) error {
	return eachName(ctx, s.Factory, s.Names, func(name string) error {
		c, j, err := s.Flags.find(ctx, s.Factory, name)
		if err != nil {
			return err
		}
		return run(ctx, c, j)
	})
}

// eachName runs a verb on names. If there are several, it continues after an error.
func eachName(ctx context.Context, f *cmdutil.Factory, names []string, run func(string) error) error {
	failed, last := 0, error(nil)
	for _, name := range names {
		err := run(name)
		if err == nil {
			continue
		}
		// A mistake on the command line affects all of them.
		if _, usage := errors.AsType[*cmdutil.UsageError](err); usage || len(names) == 1 || ctx.Err() != nil {
			return err
		}
		cmdutil.PrintError(f.IO.Err, err)
		failed, last = failed+1, err
	}
	switch {
	case failed == 0:
		return nil
	case failed == len(names):
		return &cmdutil.CodeError{Err: last, Code: cmdutil.ExitFailure, Silent: true}
	}
	return &cmdutil.CodeError{Err: fmt.Errorf("%d of %d jobs: %w", failed, len(names), last), Code: cmdutil.ExitPartial, Silent: true}
}
