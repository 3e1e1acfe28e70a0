package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// Jobs are the jobs that the signed-in user may see and change. It has the methods of pkg/job, and sends each call to the server.
type Jobs struct {
	*Server
	// Name is the user who has signed in; if it is "", the server is queried.
	Name string
}

// maxRows is how many rows are requested at once.
const maxRows = 1000

// Me returns the user who has signed in; "" with a kubeconfig.
func (c *Jobs) Me(ctx context.Context) (string, error) {
	if c.inside != nil {
		return "", nil
	}
	if c.Name == "" {
		me, err := c.WhoAmI(ctx)
		if err != nil {
			return "", err
		}
		c.Name = me.Name
	}
	return c.Name, nil
}

// Explain adds a remedy to an error.
func (*Jobs) Explain(err error) error { return explained(err) }

// one returns the path of a job. If the job's own name is invalid, because paictl didn't create it, it uses the name of the Framework.
func one(j *job.Job, more string) string {
	name := j.Name
	if protocol.CheckName(name) != nil && j.Object != "" {
		name = j.Object
	}
	return api.Prefix + "/jobs/" + url.PathEscape(j.User) + "/" + url.PathEscape(name) + more
}

// about replaces the server's error for a missing job with the error of pkg/job.
func about(j *job.Job, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusNotFound && e.Body.Code == codeNoJob {
		return job.NotFound(j.User, j.Name)
	}
	return explained(err)
}

// Resolve finds a job by its name, by USER~NAME or USER/NAME. If the job doesn't exist, it returns the parsed name, too.
func (c *Jobs) Resolve(ctx context.Context, user, name string) (*job.Job, error) {
	owner, short, err := protocol.SplitName(name)
	if err != nil {
		return nil, hint.Wrap(err, hint.Of(err)+"; see the names with: paictl job list")
	}
	if owner == "" {
		owner = user
	}
	j := &job.Job{User: owner, Name: short}
	if protocol.CheckName(short) != nil {
		if c.inside != nil {
			j.Object = fv1.ObjectName(owner, short) // any Framework's name has this form
			if out, err := c.Get(ctx, j); err == nil {
				return out, nil
			}
		}
		return j, job.NotFound(owner, short)
	}
	out, err := c.Get(ctx, j)
	if err != nil {
		return j, err
	}
	return out, nil
}

// Get reads a job again.
func (c *Jobs) Get(ctx context.Context, j *job.Job) (*job.Job, error) {
	out := &job.Job{}
	if err := c.ask(ctx, get(one(j, "/brief"), nil), out); err != nil {
		return nil, about(j, err)
	}
	return out, nil
}

// Parent reads the job that j was cloned from.
func (c *Jobs) Parent(ctx context.Context, j *job.Job) (*job.Job, error) {
	out := &job.Job{}
	return out, explained(c.ask(ctx, get(one(j, "/parent"), nil), out))
}

// Detail reads all about a job.
func (c *Jobs) Detail(ctx context.Context, j *job.Job) (*job.Detail, error) {
	out := &job.Detail{}
	if err := c.ask(ctx, get(one(j, ""), nil), out); err != nil {
		return nil, about(j, err)
	}
	return out, nil
}

// List lists jobs, newest first.
func (c *Jobs) List(ctx context.Context, f job.Filter) (*job.Page, error) {
	q := listQuery(f)
	out := &job.Page{Items: []job.Row{}}
	for {
		most := maxRows
		if f.Limit > 0 {
			most = min(most, f.Limit-len(out.Items))
		}
		q.Set("limit", strconv.Itoa(most))
		page := &job.Page{}
		if err := c.ask(ctx, get(api.Prefix+"/jobs", q), page); err != nil {
			return nil, explained(err)
		}
		out.Items = append(out.Items, page.Items...)
		if page.Note != "" {
			out.Note = page.Note
		}
		out.Next = page.Next
		if page.Next == "" || f.Limit > 0 && len(out.Items) >= f.Limit {
			return out, nil
		}
		if page.Next == q.Get("cursor") {
			return nil, c.garbled(errors.New("the next page of the list has the same cursor"))
		}
		q.Set("cursor", page.Next)
	}
}

// Known returns the names of live jobs among the newest maxRows, of a user or of all that the user sees.
func (c *Jobs) Known(ctx context.Context, user string) ([]job.Name, error) {
	page, err := c.List(ctx, job.Filter{User: user, Limit: maxRows})
	if err != nil {
		return nil, err
	}
	var out []job.Name
	for i := range page.Items {
		if r := &page.Items[i]; r.Live {
			out = append(out, job.Name{User: r.User, Name: r.Name})
		}
	}
	return out, nil
}

// Why explains a job.
func (c *Jobs) Why(ctx context.Context, j *job.Job) (*job.Why, error) {
	out := &job.Why{}
	if err := c.ask(ctx, get(one(j, "/why"), nil), out); err != nil {
		return nil, about(j, err)
	}
	return out, nil
}

// Events returns the events of a job and its pods, the latest last. note names sources that could not be read.
func (c *Jobs) Events(ctx context.Context, j *job.Job) (list []fapi.Event, note, err error) {
	out := &api.Events{}
	if err := c.ask(ctx, get(one(j, "/events"), nil), out); err != nil {
		return nil, nil, about(j, err)
	}
	if out.Note != "" {
		note = errors.New(out.Note)
	}
	return out.Items, note, nil
}

// change sends a question that changes a job.
func (c *Jobs) change(ctx context.Context, j *job.Job, what string, in, out any) error {
	q, err := post(one(j, "/"+what), nil, in)
	if err != nil {
		return err
	}
	return about(j, c.ask(ctx, q, out))
}

// Stop stops a job, and returns the job's phase before the stop.
func (c *Jobs) Stop(ctx context.Context, j *job.Job) (before job.Phase, err error) {
	out := api.Changed{}
	err = c.change(ctx, j, "stop", nil, &out)
	return out.Before, err
}

// Retry runs a job again, exactly as submitted.
func (c *Jobs) Retry(ctx context.Context, j *job.Job) (before job.Phase, err error) {
	out := api.Changed{}
	err = c.change(ctx, j, "retry", nil, &out)
	return out.Before, err
}

// Scale changes how many tasks a role has.
func (c *Jobs) Scale(ctx context.Context, j *job.Job, role string, tasks int) (job.Scaled, error) {
	out := api.Scaled{}
	err := c.change(ctx, j, "scale", api.Scale{Role: role, Tasks: tasks}, &out)
	return job.Scaled{Before: out.Before, Findings: out.Findings}, err
}

// Remove deletes a job and waits until its name is free.
func (c *Jobs) Remove(ctx context.Context, j *job.Job) error {
	return about(j, c.ask(ctx, question{method: http.MethodDelete, path: one(j, "")}, nil))
}

// Forget removes all jobs of a name that have ended from the history, and returns their number.
func (c *Jobs) Forget(ctx context.Context, j *job.Job) (jobs int, err error) {
	out := api.Forgotten{}
	err = c.ask(ctx, question{method: http.MethodDelete, path: one(j, ""), query: url.Values{"history": {"true"}}}, &out)
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusNotFound {
		return 0, nil
	}
	return out.Jobs, explained(err)
}

// FreeName returns a name similar to the job's name that the user hasn't used yet.
func (c *Jobs) FreeName(ctx context.Context, j *job.Job) (string, error) {
	out := api.FreeName{}
	if err := c.ask(ctx, get(one(j, "/freename"), nil), &out); err != nil {
		return "", about(j, err)
	}
	return out.Name, nil
}
