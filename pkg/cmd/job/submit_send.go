package job

import (
	"context"
	"fmt"

	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/job"
)

// sent is one line of "submit -o json".
type sent struct {
	File           string      `json:"file"`
	User           string      `json:"user"`
	Name           string      `json:"name"`
	Framework      string      `json:"framework"`
	VirtualCluster string      `json:"virtualCluster"`
	Tasks          int         `json:"tasks"`
	GPUs           int         `json:"gpus"`
	Outcome        job.Outcome `json:"outcome"`
}

// send submits all. What was submitted before one that is refused stays submitted, and is told.
func (opts *SubmitOptions) send(ctx context.Context, c *job.Client, all []submission) error {
	var done []sent
	var failed error
	for i := range all {
		s := &all[i]
		outcome, err := c.Submit(ctx, s.objects, opts.Submit)
		if err != nil {
			failed = err
			break
		}
		s.outcome = outcome
		done = append(done, sent{File: s.file, User: s.objects.Framework.Labels[v1.LabelUser], Name: s.job.Name, Framework: s.objects.Framework.Name,
			VirtualCluster: s.job.VirtualCluster, Tasks: s.job.Tasks(), GPUs: s.job.GPUs(), Outcome: outcome})
		if opts.Output.Is("text") {
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
		return &cmdutil.CodeError{Err: failed, Code: cmdutil.ExitPartial}
	}
	return failed
}

func (s *sent) text() string {
	size := fmt.Sprintf("%s in %s", counted(s.Tasks, "task"), s.VirtualCluster)
	if s.GPUs > 0 {
		size = fmt.Sprintf("%s with %s in %s", counted(s.Tasks, "task"), counted(s.GPUs, "GPU"), s.VirtualCluster)
	}
	switch s.Outcome {
	case job.Checked:
		return fmt.Sprintf("%s/%s could be submitted: %s", s.User, s.Name, size)
	case job.Completed:
		return fmt.Sprintf("%s/%s submitted: an earlier submission was cut off, and is complete now", s.User, s.Name)
	case job.Repeated:
		return fmt.Sprintf("%s/%s had been submitted already, the same", s.User, s.Name)
	}
	return fmt.Sprintf("%s/%s submitted: %s", s.User, s.Name, size)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
