package job

import (
	"context"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// sent is the output of "submit -o json" about one job.
type sent struct {
	File string `json:"file"`
	job.Summary
	Outcome job.Outcome `json:"outcome"`
	// Parameters are the values that distinguish this job from the other jobs of its sweep.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Outlook is the result of a dry run: whether the job would start now, and how much it would cost.
	Outlook *job.Outlook `json:"outlook,omitempty"`
}

// send submits all jobs. If the server rejects a job, the jobs that were already submitted keep running, and are reported.
func (opts *SubmitOptions) send(ctx context.Context, c *client.Jobs, all []submission) error {
	var done []sent
	var failed error
	for i := range all {
		s := &all[i]
		outcome, err := c.Submit(ctx, &s.Request, opts.Submit)
		if err != nil {
			failed = err
			break
		}
		s.outcome = outcome
		opts.made(ctx, outcome)
		opts.Submit.Planned = append(opts.Submit.Planned, s.job.Name)
		done = append(done, sent{File: s.File, Summary: s.summary, Outcome: outcome, Parameters: s.parameters, Outlook: s.outlook})
		switch {
		case opts.aside:
			opts.Factory.IO.Say("%s", done[i].text())
		case opts.Output.Is("text"):
			fmt.Fprintln(opts.Factory.IO.Out, done[i].text())
		}
	}
	if !opts.Output.Is("text") {
		var t cmdutil.Table
		for _, d := range done {
			t.Rows = append(t.Rows, []string{d.Name})
		}
		if err := opts.Output.Write(opts.Factory.IO.Out, done, t); err != nil {
			return err
		}
	}
	if failed != nil && len(done) > 0 {
		if len(opts.Sweep) > 0 {
			remedy := strings.TrimPrefix(hint.Of(failed)+"; then run the same command again, which skips those that exist", "; then ")
			failed = hint.Wrap(fmt.Errorf("the sweep ended after %d of %s: %w", len(done), plural.Of(len(all), "job"), failed), remedy)
		}
		return &cmdutil.CodeError{Err: failed, Code: cmdutil.ExitPartial}
	}
	return failed
}

func (s *sent) text() string {
	size := fmt.Sprintf("%s in %s", plural.Of(s.Tasks, "task"), s.VirtualCluster)
	if s.GPUs > 0 {
		size = fmt.Sprintf("%s with %s in %s", plural.Of(s.Tasks, "task"), plural.Of(s.GPUs, "GPU"), s.VirtualCluster)
	}
	switch s.Outcome {
	case job.Checked:
		return strings.Join(append([]string{fmt.Sprintf("%s/%s could be submitted: %s", s.User, s.Name, size)}, s.Outlook.Lines()...), "\n")
	case job.Completed:
		return fmt.Sprintf("%s/%s submitted: an earlier, interrupted submission is now complete", s.User, s.Name)
	case job.Ended:
		return fmt.Sprintf("%s/%s already exists, and has finished; --replace submits it again", s.User, s.Name)
	case job.Repeated:
		return fmt.Sprintf("%s/%s was submitted before, unchanged", s.User, s.Name)
	}
	return fmt.Sprintf("%s/%s submitted: %s", s.User, s.Name, size)
}
