package job

import (
	"context"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people/template"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// submitTemplate submits the job file in a template, and counts this use of the template.
func submitTemplate(ctx context.Context, opts *SubmitOptions) error {
	c, me, err := opts.Flags.openTemplates(ctx, opts.Factory)
	if err != nil {
		return err
	}
	t, err := resolveTemplate(ctx, c, me, opts.Template)
	if err != nil {
		return err
	}
	if template.Masked(t.Job) {
		return hint.Errorf("write the job file: "+showConfig(t)+" > job.yaml, put the secrets into it, and submit that", "the secrets of the template %s are masked", titled(t))
	}
	text, err := opts.Source.change(titled(t), []byte(t.Job))
	if err != nil {
		return err
	}
	all, err := parse(opts.Factory, unparsed(titled(t), text))
	if err != nil {
		return err
	}
	opts.submitted = func(ctx context.Context) { opts.count(ctx, c, t) }
	return opts.submitAll(ctx, all)
}

// count increases the number of jobs that were made from the template. An error is only logged, because the job exists already.
func (opts *SubmitOptions) count(ctx context.Context, c *client.Server, t *api.Template) {
	if err := c.UseTemplate(ctx, t.ID); err != nil {
		opts.Factory.Log.DebugContext(ctx, "count a job that was submitted from a template", "error", err)
	}
}

// made calls opts.submitted if the outcome is a new job.
func (opts *SubmitOptions) made(ctx context.Context, outcome job.Outcome) {
	if opts.submitted != nil && outcome == job.Submitted {
		opts.submitted(ctx)
	}
}
