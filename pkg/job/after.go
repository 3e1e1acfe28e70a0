package job

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// after finds the jobs that a job waits for, and stores their UIDs, so that a later job of the same name doesn't count.
func (c *Client) after(ctx context.Context, o *render.Objects, opts SubmitOptions) error {
	user := o.Framework.Labels[v1.LabelUser]
	var found []v1.After
	for _, a := range slices.Concat(o.After, opts.After) {
		if opts.DryRun && slices.Contains(opts.Planned, a.Job) {
			continue
		}
		one, err := c.afterOne(ctx, user, a, opts.MaySee)
		if err != nil {
			return err
		}
		if one.Framework == o.Framework.Name && !opts.Replace {
			return hint.Errorf("leave it out", "the job %s would wait for itself", one.Job)
		}
		found = append(found, one)
	}
	if len(found) == 0 {
		return nil
	}
	if len(found) > v1.MaxAfter {
		return hint.Errorf("let it wait for one job that waits for the others", "%d jobs, but a job can wait for at most %d", len(found), v1.MaxAfter)
	}
	text, err := json.Marshal(found)
	if err != nil {
		return fmt.Errorf("record which jobs must end first: %w", err)
	}
	metav1.SetMetaDataAnnotation(&o.Framework.ObjectMeta, v1.AnnotationAfter, string(text))
	return nil
}

func (c *Client) afterOne(ctx context.Context, user string, a protocol.After, maySee func(*Job) error) (v1.After, error) {
	j, err := c.Resolve(ctx, user, a.Job)
	if err != nil {
		return v1.After{}, fmt.Errorf("find the job to start after: %w", err)
	}
	if maySee != nil && maySee(j) != nil {
		owner, name, _ := protocol.SplitName(a.Job) // it could be read above
		return v1.After{}, fmt.Errorf("find the job to start after: %w", notFound(cmp.Or(owner, user), name, nil))
	}
	out := v1.After{Framework: j.Object, Job: j.Title(), Ended: a.Ended}
	var state string
	if j.Live {
		out.UID, state = j.framework.UID, api.StateOf(j.framework)
	} else {
		out.UID, state = types.UID(j.archived.UID), j.archived.State
	}
	if p := Phase(state); p.Done() && state != api.Succeeded && !a.Ended {
		return out, hint.Errorf("see why: paictl job why "+a.Job+"; to start after any end, write {job: "+a.Job+", when: ended}",
			"the job %s must succeed before this one, but it is %s", j.Title(), state)
	}
	return out, nil
}

// sameAfter reports whether two submissions wait for jobs with the same names.
func sameAfter(a, b *v1.Framework) bool {
	names := func(f *v1.Framework) (out []string) {
		all, _ := f.After()
		for _, one := range all {
			out = append(out, fmt.Sprint(one.Job, " ", one.Ended))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(names(a), names(b))
}

// renewAfter updates the UIDs of the jobs that a recreated job waits for, because these jobs may have been recreated, too.
func (c *Client) renewAfter(ctx context.Context, f *v1.Framework, maySee func(*Job) error) error {
	all, err := f.After()
	if err != nil || len(all) == 0 {
		return err
	}
	o := &render.Objects{Framework: f}
	for _, a := range all {
		o.After = append(o.After, protocol.After{Job: a.Job, Ended: a.Ended})
	}
	return c.after(ctx, o, SubmitOptions{Replace: true, MaySee: maySee})
}
