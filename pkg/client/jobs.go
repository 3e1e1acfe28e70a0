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

// Jobs provides the jobs that the signed-in user may see and change. It has the methods of pkg/job, and sends each call to the server.
type Jobs struct {
	*Server
	// Name is the name of the signed-in user. If it is "", Me asks the server.
	Name string
}

// maxRows is the maximum number of jobs in one request for a list.
const maxRows = 1000

// Me returns the name of the signed-in user, or "" with a kubeconfig.
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

// Explain adds a remedy to an error that the server returned.
func (*Jobs) Explain(err error) error { return explained(err) }

// one returns the API path of a job, followed by more. If the job's name is invalid because paictl didn't create the job, the path contains the
// name of the Framework object instead.
func one(j *job.Job, more string) string {
	name := j.Name
	if protocol.CheckName(name) != nil && j.Object != "" {
		name = j.Object
	}
	return api.Prefix + "/jobs/" + url.PathEscape(j.User) + "/" + url.PathEscape(name) + more
}

// about replaces the server's error for a missing job with the error of pkg/job. To other errors it adds a remedy.
func about(j *job.Job, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusNotFound && e.Body.Code == codeNoJob {
		return job.NotFound(j.User, j.Name)
	}
	return explained(err)
}

// Resolve finds a job by NAME, USER~NAME or USER/NAME. If the job doesn't exist, Resolve also returns a job with the parsed user and name.
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

// Get reads the current state of a job.
func (c *Jobs) Get(ctx context.Context, j *job.Job) (*job.Job, error) {
	out := &job.Job{}
	if err := c.ask(ctx, get(one(j, "/brief"), nil), out); err != nil {
		return nil, about(j, err)
	}
	return out, nil
}

// Parent reads the original of a cloned job.
func (c *Jobs) Parent(ctx context.Context, j *job.Job) (*job.Job, error) {
	out := &job.Job{}
	return out, explained(c.ask(ctx, get(one(j, "/parent"), nil), out))
}

// Detail reads a job with all its details, such as its tasks.
func (c *Jobs) Detail(ctx context.Context, j *job.Job) (*job.Detail, error) {
	out := &job.Detail{}
	if err := c.ask(ctx, get(one(j, ""), nil), out); err != nil {
		return nil, about(j, err)
	}
	return out, nil
}

// List returns the jobs that match a filter, starting with the newest job.
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

// Known returns the names of the live jobs among the newest maxRows jobs. These are the jobs of one user, or all jobs that the signed-in user
// sees if user is "".
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

// Why returns an explanation of the job's state, such as why it waits or failed.
func (c *Jobs) Why(ctx context.Context, j *job.Job) (*job.Why, error) {
	out := &job.Why{}
	if err := c.ask(ctx, get(one(j, "/why"), nil), out); err != nil {
		return nil, about(j, err)
	}
	return out, nil
}

// Events returns the events of a job and its pods, ending with the latest event. note names the sources that could not be read.
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

// change sends a request that changes a job, with in as its body, and decodes the response into out.
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

// Retry runs a job again exactly as it was submitted. It returns the job's phase before the retry.
func (c *Jobs) Retry(ctx context.Context, j *job.Job) (before job.Phase, err error) {
	out := api.Changed{}
	err = c.change(ctx, j, "retry", nil, &out)
	return out.Before, err
}

// Scale changes the number of tasks of a role.
func (c *Jobs) Scale(ctx context.Context, j *job.Job, role string, tasks int) (job.Scaled, error) {
	out := api.Scaled{}
	err := c.change(ctx, j, "scale", api.Scale{Role: role, Tasks: tasks}, &out)
	return job.Scaled{Before: out.Before, Findings: out.Findings}, err
}

// Remove deletes a job and waits until its name is free.
func (c *Jobs) Remove(ctx context.Context, j *job.Job) error {
	return about(j, c.ask(ctx, question{method: http.MethodDelete, path: one(j, "")}, nil))
}

// Forget removes all finished jobs with the job's name from the history, and returns how many it removed.
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
