package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/job/protocol"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Job is a job that a caller may read. Each method checks a separate rule, so that a Job from one lookup can't be used for an operation that isn't
// allowed.
type Job struct {
	actions *Actions
	job     *job.Job
	thing   rules.Object
}

// NoJob returns OpenPAI's error for a job that doesn't exist. The server returns the same error for a job that is hidden from the caller.
func NoJob(user, name string) error {
	return &wire.Error{Status: http.StatusNotFound, Code: codeNoJob, Message: fmt.Sprintf("Job %s~%s is not found.", wire.Shown(user), wire.Shown(name)), Remedy: "see the names of jobs with: paictl job list"}
}

// Job returns the job with the given user and name. It checks the rule with the stored job, never with the names in the request.
func (d *Actions) Job(ctx context.Context, rule, user, name string) (*Job, error) {
	if err := rules.Class(rule, &d.caller.Subject); err != nil {
		return nil, err
	}
	// Callers who may read only their own jobs get the error without a lookup, so that the response time doesn't reveal whether the job exists.
	if v := rules.Visible(&d.caller.Subject); !v.All && len(v.VCs) == 0 && user != v.User {
		return nil, d.refused(ctx, rule, rules.Object{Kind: rules.KindJob, Owner: wire.Shown(user), Name: wire.Shown(name)}, NoJob(user, name))
	}
	find := d.app.Jobs.ResolveExact
	if d.caller.Operator {
		find = d.app.Jobs.Resolve // it also accepts names of Frameworks
	}
	found, err := find(ctx, user, name)
	if missing, ok := errors.AsType[*job.NotFoundError](err); ok && missing.Unsure != nil {
		return nil, &job.UnavailableError{Err: err} // it may have ended long ago
	} else if ok {
		return nil, NoJob(user, name)
	}
	if err != nil {
		return nil, err
	}
	j := &Job{d, found, thingOf(found)}
	if err := j.decide(rule); err != nil {
		return nil, d.refused(ctx, rule, j.thing, err)
	}
	return j, nil
}

// refused writes to the audit log that a rule doesn't allow the caller to change or enter a job, and returns err unchanged. It doesn't record reads.
func (d *Actions) refused(ctx context.Context, rule string, t rules.Object, err error) error {
	switch rule {
	case "job.read", "job.config", "job.logs":
		return err
	}
	return d.audited(ctx, rule, t, nil, err)
}

// decide checks a rule for the job. If the job is hidden from the caller, it returns the same error as for a missing job.
func (j *Job) decide(rule string) error {
	err := rules.Decide(rule, &j.actions.caller.Subject, j.thing)
	if err == rules.ErrHidden { //nolint:errorlint // it is returned as it is
		return NoJob(j.thing.Owner, j.thing.Name)
	}
	return err
}

// Allowed returns the operations on the job that the rules allow for the caller.
func (j *Job) Allowed() []string {
	out := []string{}
	for _, name := range []string{"stop", "retry", "scale", "tag", "delete", "config", "logs", "enter"} {
		if j.decide("job."+name) == nil {
			out = append(out, name)
		}
	}
	return out
}

// User returns the name of the job's owner.
func (j *Job) User() string { return j.thing.Owner }

// Name returns the name of the job.
func (j *Job) Name() string { return j.thing.Name }

// Object returns the name of the job's Framework.
func (j *Job) Object() string { return j.job.Object }

// Jobs lists the jobs that the caller may read.
func (d *Actions) Jobs(ctx context.Context, f listing.Filter) (*listing.Page, error) {
	if err := rules.Class("jobs.list", &d.caller.Subject); err != nil {
		return nil, err
	}
	f.Visible = d.visible()
	return d.app.Lister.List(ctx, f)
}

// Ordered lists the jobs that the caller may read, in the order of the filter.
func (d *Actions) Ordered(ctx context.Context, f listing.Filter) (*listing.OrderedPage, error) {
	if err := rules.Class("jobs.list", &d.caller.Subject); err != nil {
		return nil, err
	}
	f.Visible = d.visible()
	return d.app.Lister.Ordered(ctx, f)
}

// visible returns the Visibility of the caller for filters of lists. It is never nil, because a nil Visibility selects all jobs.
func (d *Actions) visible() *listing.Visibility { return visibleTo(&d.caller.Subject) }

func visibleTo(s *rules.Subject) *listing.Visibility {
	v := rules.Visible(s)
	return &listing.Visibility{All: v.All, User: v.User, VCs: v.VCs}
}

// Detail returns the details of the job, without the parts that the caller may not read.
func (j *Job) Detail(ctx context.Context) (*job.Detail, error) {
	if err := j.decide("job.read"); err != nil {
		return nil, err
	}
	d, err := j.actions.app.Jobs.Detail(ctx, j.job)
	if err != nil {
		return nil, err
	}
	j.told(d)
	return d, nil
}

// told removes from a job the parts that the caller may not read.
func (j *Job) told(d *job.Detail) {
	d.Message = job.NameOf(j.actions.nameOf).Redact(d.Message)
	for i := range d.After {
		a := &d.After[i]
		if owner, name, _ := protocol.SplitName(a.Job); j.actions.nameOf(owner, name) == "" {
			a.Job, a.Framework, a.UID = "", "", ""
		}
	}
	if d.ClonedFrom != nil && !j.actions.seesParent(d.ClonedFrom) {
		d.ClonedFrom = &fv1.ClonedFrom{}
	}
	if err := j.decide("job.config"); err != nil {
		d.Config = ""
	}
}

// Config returns the job file with masked secrets.
func (j *Job) Config(ctx context.Context) (string, error) {
	if err := j.decide("job.config"); err != nil {
		return "", err
	}
	d, err := j.actions.app.Jobs.Detail(ctx, j.job)
	if err != nil {
		return "", err
	}
	if d.Config == "" {
		return "", &wire.Error{Status: http.StatusNotFound, Code: codeNoJobConfig, Message: fmt.Sprintf("Config of job %s~%s is not found.", j.User(), j.Name())}
	}
	return d.Config, nil
}

// Why explains the state of the job. It omits the names of jobs that the caller may not read.
func (j *Job) Why(ctx context.Context) (*job.Why, error) {
	if err := j.decide("job.read"); err != nil {
		return nil, err
	}
	return j.actions.app.Jobs.WhyFor(ctx, j.job, j.actions.nameOf)
}

// nameOf returns USER/NAME of another job, or "" if the caller may not read the job.
func (d *Actions) nameOf(user, name string) string {
	return d.nameFor(rules.Visible(&d.caller.Subject), user, name)
}

// nameFor is like nameOf, but uses the given Visibility of the caller.
func (d *Actions) nameFor(visible rules.Visibility, user, name string) string {
	vc, known := d.app.Lister.Where(user, name)
	if !known && user != d.caller.Name && !visible.All || known && !visible.Allows(user, vc) {
		return ""
	}
	return user + "/" + name
}

// Events returns the job's events, the latest last. note explains why some events are missing. It is nil if all events could be read.
func (j *Job) Events(ctx context.Context) (list []fapi.Event, note, err error) {
	if err := j.decide("job.read"); err != nil {
		return nil, nil, err
	}
	list, note, err = j.actions.app.Jobs.Events(ctx, j.job)
	for i := range list {
		list[i].Message = job.NameOf(j.actions.nameOf).Redact(list[i].Message)
	}
	return list, note, err
}

// change makes a change if a rule allows the change, and writes the result to the audit log.
func (j *Job) change(ctx context.Context, rule string, detail map[string]string, act func(context.Context) error) error {
	return j.actions.did(ctx, rule, j.thing, detail, func(ctx context.Context) error {
		if err := j.decide(rule); err != nil {
			return err
		}
		return act(ctx)
	})
}

// Stop requests the stop of the job, and returns the job's phase before the request.
func (j *Job) Stop(ctx context.Context) (before job.Phase, err error) {
	err = j.changeIf(ctx, !j.job.Ended() && !j.job.Stopping(), "job.stop", func(ctx context.Context) (err error) {
		before, err = j.actions.app.Jobs.Stop(ctx, j.job)
		return err
	})
	return before, err
}

// changeIf is like change, but writes no audit record if an allowed change has no effect. Such records would displace other people's records.
func (j *Job) changeIf(ctx context.Context, changes bool, rule string, act func(context.Context) error) error {
	if !changes && j.decide(rule) == nil {
		return act(ctx)
	}
	return j.change(ctx, rule, nil, act)
}

// Retry runs the job again, exactly as submitted. The owner's current grants must still allow the job.
func (j *Job) Retry(ctx context.Context) (before job.Phase, err error) {
	err = j.change(ctx, "job.retry", nil, func(ctx context.Context) (err error) {
		if j.actions.caller.Operator {
			before, err = j.actions.app.Jobs.Retry(ctx, j.job, job.RetryOptions{})
			return err
		}
		person, owner, err := j.actions.app.ownerOf(j.thing.Owner)
		if err != nil {
			return err
		}
		var more added
		defer more.done()
		before, err = j.actions.app.Jobs.Retry(ctx, j.job, job.RetryOptions{
			Allow: allow(owner), MaySee: func(other *job.Job) error { return maySee(owner, other) },
			CheckLimit: func(tasks int) error { return more.add(j.actions.app, j.thing.Owner, Most{1, tasks}) },
		})
		if err != nil {
			return err
		}
		j.actions.app.await(ctx, j.job.Object, unfinished)
		return j.actions.app.keep(ctx, person, j.thing.Name)
	})
	return before, err
}

// allow returns a function that checks the resources of a job against the owner's current grants.
func allow(owner *rules.Subject) func(job.Use) error {
	return func(u job.Use) error { return rules.Submit(owner, submission(u, u.VirtualCluster)) }
}

// Scale changes the number of tasks of a role. For a larger number, the owner's current grants must still allow the job's resources, and the cluster
// must be large enough.
func (j *Job) Scale(ctx context.Context, role string, tasks int) (out job.Scaled, err error) {
	err = j.change(ctx, "job.scale", map[string]string{"tasks": strconv.Itoa(tasks)}, func(ctx context.Context) (err error) {
		if j.actions.caller.Operator {
			out, err = j.actions.app.Jobs.Scale(ctx, j.job, role, tasks, job.ScaleOptions{Facts: j.actions.app.Jobs.Facts})
			return err
		}
		_, owner, err := j.actions.app.ownerOf(j.thing.Owner)
		none := err // even if the owner no longer exists, the job may become smaller
		var more added
		defer more.done()
		out, err = j.actions.app.Jobs.Scale(ctx, j.job, role, tasks, job.ScaleOptions{Allow: func(u job.Use) error {
			if none != nil {
				return none
			}
			return allow(owner)(u)
		}, CheckLimit: func(n int) error { return more.add(j.actions.app, j.thing.Owner, Most{Tasks: n}) },
			Facts: func(ctx context.Context) (*job.Facts, error) { return j.actions.app.factsFor(ctx, owner) }})
		if err == nil && more.app != nil {
			have := more.more.Tasks
			for _, r := range j.job.Roles {
				have += r.Tasks
			}
			j.actions.app.await(ctx, j.job.Object, func(r listing.Row) bool { return r.Tasks >= have })
		}
		return err
	})
	return out, err
}

// Remove requests the removal of the job's Framework. The history keeps the job. Remove does nothing if the Framework is already deleted. The audit
// log contains the request even if the caller doesn't wait for the removal, because a removal can't be undone.
func (j *Job) Remove(ctx context.Context) (before job.Phase, err error) {
	before = j.job.State
	err = j.changeIf(ctx, j.job.Live, "job.delete", func(ctx context.Context) error {
		if !j.job.Live {
			return nil
		}
		return j.actions.app.Jobs.Delete(ctx, j.job)
	})
	return before, err
}

// WaitDeleted waits until the Framework of a removed job is deleted, so that the job's name is free. It returns false if the context ends first.
func (j *Job) WaitDeleted(ctx context.Context) (bool, error) {
	if !j.job.Live {
		return true, nil
	}
	return j.actions.app.Lister.WaitDeleted(ctx, j.job)
}

// Forget removes all finished jobs with this job's name from the history, and returns their number.
func (j *Job) Forget(ctx context.Context) (jobs int, err error) {
	err = j.change(ctx, "job.forget", nil, func(ctx context.Context) (err error) {
		jobs, err = j.actions.app.Jobs.History.Delete(ctx, j.job.Object)
		if apierrors.IsNotFound(err) {
			return nil // the history has no finished job of that name
		}
		return err
	})
	return jobs, err
}
