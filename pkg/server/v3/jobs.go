// Package v3 serves paictl's own API. Its responses contain the types of pkg/job, in the format of "-o json".
// In: requests of paictl. Out: routes.
package v3

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

const (
	// textBytes limits the size of a request with a job file and options. It allows the maximum job file even if each byte is escaped.
	textBytes = 6*protocol.MaxBytes + 64<<10
	// removeTime limits how long a request waits until a job is deleted.
	removeTime = 10 * time.Minute
	// waits is the maximum number of a person's simultaneous requests that wait for the removal of jobs. Each waiting request takes few resources,
	// because the index of jobs wakes it.
	waits = 16
	// submissions is the maximum number of a person's submissions that are checked at the same time.
	submissions = 2
)

// Routes returns the routes of /api/v3, including the routes for signing in.
func Routes(version string) []server.Route {
	all := slices.Concat(jobRoutes(), readRoutes(), templateRoutes(), codeRoutes(), fileRoutes(), peopleRoutes(), notificationRoutes(), reportRoutes(), auditRoutes(), actionRoutes(), alertRoutes())
	for i := range all {
		// The server's own pages send the cookie of their session. To enter a task, they send a ticket instead.
		all[i].Browser = all[i].Caller == nil
	}
	return slices.Concat(all, signInRoutes(version), browserRoutes())
}

const one = api.Prefix + "/jobs/{user}/{name}"

func jobRoutes() []server.Route {
	return []server.Route{
		server.JSON("GET", api.Prefix+"/jobs", "jobs.list", "Lists jobs, newest first", list),
		server.JSON("POST", api.Prefix+"/jobs", "job.submit", "Submits a job file; with ?check=true, only checks it; with &outlook=true, also returns whether it would start now, and what it costs", submit, server.Body(textBytes), server.Submits(), server.Each(submissions), server.Within(time.Minute),
			server.Errors("InvalidProtocolError", "ConflictJobError", "NoJobError", "NoCodeError", "NoEnoughQuotaError", wire.CodeKey)),
		{Method: "GET", Path: api.Prefix + "/jobs/watch", Rule: "jobs.watch", Summary: "Streams a list of jobs, and then its changes, as server-sent events", Serve: watch, In: reflect.TypeFor[watchIn](),
			Limit: server.Limit{Stream: true}, Media: server.MediaEvents},
		server.JSON("GET", one, "job.read", "Returns a job, with its attempts and tasks", get, server.Errors("NoJobError")),
		server.JSON("GET", one+"/why", "job.read", "Explains why a job waits, or how it ended", why, server.Errors("NoJobError")),
		server.JSON("GET", one+"/events", "job.read", "Lists the Kubernetes events of a job", events, server.Errors("NoJobError")),
		server.JSON("GET", one+"/allowed", "job.read", "Lists the operations on a job that you may use", allowed, server.Errors("NoJobError")),
		server.JSON("POST", one+"/stop", "job.stop", "Stops a job", stop, server.Errors("NoJobError")),
		server.JSON("POST", one+"/retry", "job.retry", "Runs a job again, as it was submitted", retry, server.Submits(), server.Within(removeTime), server.Each(waits), server.Errors("NoJobError", "ConflictJobError", "NoEnoughQuotaError")),
		server.JSON("POST", one+"/scale", "job.scale", "Changes the number of tasks of a role", scale, server.Errors("NoJobError", "ConflictJobError", "NoEnoughQuotaError")),
		server.JSON("PUT", one+"/tags", "job.tag", "Adds tags to a job", tag, server.Errors("NoJobError")),
		server.JSON("DELETE", one+"/tags", "job.tag", "Removes tags from a job", untag, server.Errors("NoJobError", "NoTagError")),
		{Method: "DELETE", Path: one, Rule: "job.delete", Summary: "Deletes a job; with ?history=true, removes its name from the history", Serve: remove, In: reflect.TypeFor[removeIn](), Out: reflect.TypeFor[api.Changed](), Or: []reflect.Type{reflect.TypeFor[api.Forgotten]()},
			Limit: server.Limit{Time: removeTime}, Errors: []string{"NoJobError"}},
	}
}

type listIn struct {
	User    string   `query:"user"`
	VC      string   `query:"vc"`
	Keyword string   `query:"keyword"`
	Name    string   `query:"name"`
	State   []string `query:"state"`
	Since   string   `query:"since"`
	Earlier bool     `query:"earlier"`
	Limit   int      `query:"limit"`
	Cursor  string   `query:"cursor"`
}

// maxRows limits the number of rows on a page.
const maxRows = 5000

// Rows returns the maximum number of rows in the list.
func (in *listIn) Rows() int {
	if in.Limit <= 0 || in.Limit > maxRows {
		return maxRows
	}
	return in.Limit
}

func list(ctx context.Context, d *app.Actions, in *listIn) (*job.Page, error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	return d.Jobs(ctx, f)
}

func (in *listIn) filter() (f listing.Filter, err error) {
	f = listing.Filter{User: in.User, VirtualCluster: in.VC, Keyword: in.Keyword, InName: in.Name, Limit: in.Rows(), Cursor: in.Cursor, Earlier: in.Earlier}
	if f.Phases, err = listing.ReadPhases(in.State); err != nil {
		return f, wire.Bad(err.Error())
	}
	if in.Since != "" {
		var ok bool
		if f.Since, ok = moment(in.Since); !ok {
			return f, wire.Bad(`"since" must be a time such as 2026-01-31T12:00:00Z`)
		}
	}
	if _, err := listing.ReadCursor(in.Cursor); err != nil {
		return f, wire.Bad("the cursor is invalid: use the one at the end of the previous page")
	}
	return f, nil
}

type oneIn struct {
	User string `path:"user"`
	Name string `path:"name"`
}

func get(ctx context.Context, d *app.Actions, in *oneIn) (*job.Detail, error) {
	j, err := d.Job(ctx, "job.read", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	return j.Detail(ctx)
}

func why(ctx context.Context, d *app.Actions, in *oneIn) (*job.Why, error) {
	j, err := d.Job(ctx, "job.read", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	return j.Why(ctx)
}

func events(ctx context.Context, d *app.Actions, in *oneIn) (*api.Events, error) {
	j, err := d.Job(ctx, "job.read", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	items, note, err := j.Events(ctx)
	if err != nil {
		return nil, err
	}
	out := &api.Events{Items: items}
	if note != nil {
		out.Note = note.Error()
	}
	return out, nil
}

func allowed(ctx context.Context, d *app.Actions, in *oneIn) (*api.Allowed, error) {
	j, err := d.Job(ctx, "job.read", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	return &api.Allowed{Operations: j.Allowed()}, nil
}

type submitIn struct {
	Check bool `query:"check"`
	// Outlook adds the prediction of the job's start to a check.
	Outlook bool           `query:"outlook"`
	Key     string         `header:"Idempotency-Key"`
	Body    api.Submission `body:"json"`
}

// submitOut is a Checked, or a Submitted if Outcome is set.
type submitOut struct {
	api.Checked
	Outcome job.Outcome `json:"outcome,omitempty"`
}

func submit(ctx context.Context, d *app.Actions, in *submitIn) (*submitOut, error) {
	r := app.Request{File: in.Body.File, Text: in.Body.Text, Group: in.Body.Group, Code: in.Body.Code, ClonedFrom: (*app.ClonedFrom)(in.Body.ClonedFrom), DryRun: in.Check || in.Body.DryRun}
	p, err := d.Prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &submitOut{Checked: api.Checked{Summary: p.Summary(), Findings: p.Findings, CodeURL: p.CodeURL}}
	if in.Check {
		if in.Outlook {
			out.Outlook = p.Outlook(ctx)
		}
		return out, nil
	}
	out.Outcome, err = p.Submit(ctx, app.SubmitOptions{DryRun: in.Body.DryRun, Replace: in.Body.Replace, SkipEnded: in.Body.SkipEnded, After: in.Body.After, Planned: in.Body.Planned, Key: in.Key})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func stop(ctx context.Context, d *app.Actions, in *oneIn) (*api.Changed, error) {
	j, err := d.Job(ctx, "job.stop", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	before, err := j.Stop(ctx)
	return &api.Changed{Before: before}, err
}

func retry(ctx context.Context, d *app.Actions, in *oneIn) (*api.Changed, error) {
	j, err := d.Job(ctx, "job.retry", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	before, err := j.Retry(ctx)
	return &api.Changed{Before: before}, err
}

type scaleIn struct {
	User string    `path:"user"`
	Name string    `path:"name"`
	Body api.Scale `body:"json"`
}

func scale(ctx context.Context, d *app.Actions, in *scaleIn) (*api.Scaled, error) {
	j, err := d.Job(ctx, "job.scale", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	out, err := j.Scale(ctx, in.Body.Role, in.Body.Tasks)
	return &api.Scaled{Before: out.Before, Findings: out.Findings}, err
}

type removeIn struct {
	User    string `path:"user"`
	Name    string `path:"name"`
	History bool   `query:"history"`
}

func remove(c *server.Call) error {
	in := removeIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	rule := "job.delete"
	if in.History {
		rule = "job.forget"
	}
	j, err := c.Actions.Job(c.Context(), rule, in.User, in.Name)
	if err != nil {
		return err
	}
	if in.History {
		n, err := j.Forget(c.Context())
		if err != nil {
			return err
		}
		return c.JSON(api.Forgotten{Jobs: n})
	}
	before, err := j.Remove(c.Context())
	if err != nil {
		return err
	}
	if err := c.Place("gone", waits); err != nil {
		return err
	}
	gone, err := j.WaitDeleted(c.Context())
	if err != nil {
		return err
	}
	if !gone {
		return errThere
	}
	return c.JSON(api.Changed{Before: before})
}

// errThere is the error if a job isn't removed in time.
var errThere = &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: "the job is still being deleted", RetryAfter: time.Minute,
	Remedy: "its tasks may take long to end, or the job controller doesn't run: an operator sees that with paictl service status -n job-controller"}

type tagsIn struct {
	User string   `path:"user"`
	Name string   `path:"name"`
	Body api.Tags `body:"json"`
}

func tag(ctx context.Context, d *app.Actions, in *tagsIn) (*api.Tags, error) {
	j, err := d.Job(ctx, "job.tag", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	tags, err := j.Tag(ctx, in.Body.Tags)
	return &api.Tags{Tags: append([]string{}, tags...)}, err
}

func untag(ctx context.Context, d *app.Actions, in *tagsIn) (*api.Tags, error) {
	j, err := d.Job(ctx, "job.tag", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	tags, err := j.Untag(ctx, in.Body.Tags)
	return &api.Tags{Tags: append([]string{}, tags...)}, err
}
