package job

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
)

// Several holds the common options of commands that accept several jobs.
type Several struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Names   []string
}

// takes makes a command accept the names of one or more jobs, and complete them.
func (s *Several) takes(cmd *cobra.Command, run func(context.Context) error) {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = s.Flags.completeJobs(s.Factory, 0)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s.Names = args
		return run(cmd.Context())
	}
	s.Flags.add(s.Factory, cmd)
}

// each calls run for each job.
func (s *Several) each(ctx context.Context, run func(context.Context, *client.Jobs, *job.Job) error) error {
	return eachName(ctx, s.Factory, s.Names, func(name string) error {
		c, j, err := s.Flags.find(ctx, s.Factory, name)
		if err != nil {
			return err
		}
		return run(ctx, c, j)
	})
}

// atOnce is how many jobs are changed at the same time. One change takes a fraction of a second, because the changed job is read back and the
// change is recorded.
const atOnce = 8

// eachAtOnce calls change for several jobs at a time, and calls finish for each changed job, in the order of their names. If a name is invalid,
// it changes no job.
func (s *Several) eachAtOnce(ctx context.Context, change func(context.Context, *client.Jobs, *job.Job) (job.Phase, error), finish func(context.Context, *client.Jobs, *job.Job, job.Phase) error) error {
	for _, name := range s.Names {
		if _, _, err := protocol.SplitName(name); err != nil {
			return &cmdutil.UsageError{Err: err}
		}
	}
	c, err := s.Flags.open(s.Factory)
	if err != nil {
		return err
	}
	owner, err := s.Flags.user(ctx, s.Factory, c)
	if err != nil {
		return err
	}
	type result struct {
		job    *job.Job
		before job.Phase
		err    error
	}
	results, slots := make([]chan result, len(s.Names)), make(chan struct{}, atOnce)
	for i := range results {
		results[i] = make(chan result, 1)
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		for i, name := range s.Names {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				r := result{err: context.Cause(ctx)}
				if r.err == nil {
					r.job, r.err = c.Resolve(ctx, owner, name)
				}
				if r.err == nil {
					r.before, r.err = change(ctx, c, r.job)
				}
				results[i] <- r
			})
		}
	})
	next := 0
	return eachName(ctx, s.Factory, s.Names, func(string) error {
		r := <-results[next]
		next++
		if r.err != nil {
			return r.err
		}
		return finish(ctx, c, r.job, r.before)
	})
}

// eachName calls run for each name. If there are several names, it continues after an error.
func eachName(ctx context.Context, f *cmdutil.Factory, names []string, run func(string) error) error {
	failed, last := 0, error(nil)
	for _, name := range names {
		err := run(name)
		if err == nil {
			continue
		}
		// A mistake on the command line is the same for all names, so it is reported only once.
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
