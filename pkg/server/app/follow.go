package app

import (
	"context"
	"slices"

	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/job/usage"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Brief returns the job without its attempts. It omits the job file if the caller may not read the file.
func (j *Job) Brief() (*job.Job, error) {
	if err := j.decide("job.read"); err != nil {
		return nil, err
	}
	out := *j.job
	if err := j.decide("job.config"); err != nil {
		out.Config = ""
	}
	return &out, nil
}

// Follow calls seen with the state of the job, now and after each possible change. It ends when seen returns false, or when the caller may no longer
// read the job.
func (j *Job) Follow(ctx context.Context, seen func(*job.Detail) (more bool), problem func(error)) error {
	var refused error
	err := j.decide("job.read")
	if err != nil {
		return err
	}
	err = j.actions.app.Jobs.Follow(ctx, j.job, func(d *job.Detail) bool {
		if refused = j.Still(); refused != nil {
			return false
		}
		j.told(d)
		return seen(d)
	}, problem)
	if refused != nil {
		return refused
	}
	return err
}

// Still checks again whether the caller may read the job. Streams call it, because they can outlast grants.
func (j *Job) Still() error { return j.still("job.read") }

func (j *Job) still(rule string) error {
	if j.actions.caller.Operator {
		return nil
	}
	if err := j.actions.app.People.Fresh(); err != nil {
		return nil //nolint:nilerr // the stream continues if the grants can't be read
	}
	subject, err := j.actions.now()
	if err != nil {
		return err
	}
	if err := rules.Decide(rule, subject, j.thing); err != nil {
		return NoJob(j.thing.Owner, j.thing.Name)
	}
	return nil
}

// now returns the caller with their current grants, or ErrToken if the person was removed, replaced or disabled.
func (d *Actions) now() (*rules.Subject, error) {
	p, err := d.app.People.Person(d.caller.Name)
	if err != nil || p.Disabled || d.caller.person != nil && p.UID != d.caller.person.UID {
		return nil, ErrToken
	}
	subject := p.Subject(d.caller.Token)
	return &subject, nil
}

// Logs calls give with each selected line of the job's logs.
func (j *Job) Logs(ctx context.Context, o logs.Options, give func(logs.Line) error) error {
	if err := j.decide("job.logs"); err != nil {
		return err
	}
	o.Memory = j.actions.app.LogMemory
	return logs.Lines(ctx, j.actions.app.Jobs, j.job, o, give)
}

// Top measures the resource usage of the tasks. problems holds the errors of machines that don't respond.
func (j *Job) Top(ctx context.Context) (list []usage.Task, problems []error, err error) {
	if err := j.decide("job.read"); err != nil {
		return nil, nil, err
	}
	return usage.Of(ctx, j.actions.app.Jobs, j.job)
}

// Pods returns the pods of the job's tasks.
func (j *Job) Pods(ctx context.Context) ([]job.TaskPod, error) {
	if err := j.decide("job.read"); err != nil {
		return nil, err
	}
	return j.actions.app.Jobs.TaskPods(ctx, j.job)
}

// RoleName returns the name in the job file for a role of the Framework. If the job has no such role, it returns the given name.
func (j *Job) RoleName(object string) string {
	for i := range j.job.Roles {
		if j.job.Roles[i].Object == object {
			return j.job.Roles[i].Name
		}
	}
	return object
}

// FreeName returns an unused name for a copy of the job. The owner of the copy is the caller. For the operator, it is the job's owner.
func (j *Job) FreeName(ctx context.Context) (string, error) {
	if err := j.decide("job.read"); err != nil {
		return "", err
	}
	maker := j.actions.caller.Name
	if j.actions.caller.Operator {
		maker = j.job.User
	}
	return j.actions.app.Jobs.FreeName(ctx, j.job, maker)
}

// Waiting returns the queue of a virtual cluster that is granted to the caller. It omits the names of jobs that the caller may not read. If vc is "",
// it returns the queues of all virtual clusters to administrators.
func (d *Actions) Waiting(ctx context.Context, vc string, limit int) (*job.WaitingList, error) {
	if vc == "" && !d.caller.Grants.Administrator {
		return nil, wire.Bad("name the virtual cluster: only an administrator sees the queues of all")
	}
	if vc == "" {
		if err := rules.Class("queue.read", &d.caller.Subject); err != nil {
			return nil, err
		}
	} else if err := rules.Decide("queue.read", &d.caller.Subject, rules.Object{Kind: rules.KindQueue, VC: vc}); err != nil {
		return nil, err
	}
	return d.app.Jobs.Waiting(ctx, vc, limit, d.nameOf)
}

// Usage returns the total GPU time of the caller, or of a virtual cluster without the names of its users. Administrators may query any usage.
func (d *Actions) Usage(ctx context.Context, q fapi.UsageQuery) (*job.Usage, error) {
	if !d.caller.Grants.Administrator {
		if q.User == "" && q.VirtualCluster == "" {
			q.User = d.caller.Name
		}
		if q.User == "" && slices.Contains(q.By, fapi.ByUser) {
			return nil, &rules.ForbiddenError{Why: "only an administrator sees who used a virtual cluster: leave out --by user, or name yourself with --user"}
		}
		if err := rules.Decide("usage.read", &d.caller.Subject, rules.Object{Kind: rules.KindUsage, Owner: q.User, VC: q.VirtualCluster}); err != nil {
			return nil, err
		}
	} else if err := rules.Class("usage.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	return d.app.Jobs.Usage(ctx, q)
}

// Images returns the container images that are stored on all machines for jobs.
func (d *Actions) Images(ctx context.Context) ([]string, error) {
	if err := rules.Class("job.submit", &d.caller.Subject); err != nil {
		return nil, err
	}
	return d.app.Jobs.Images(ctx)
}

// Offer returns the SKUs of the cluster, and reports whether jobs may include code.
func (d *Actions) Offer(ctx context.Context) (*job.Offer, error) {
	if err := rules.Class("job.submit", &d.caller.Subject); err != nil {
		return nil, err
	}
	f, err := d.app.Jobs.Facts(ctx)
	if err != nil {
		return nil, err
	}
	return &job.Offer{TakesCode: f.AcceptsCode(), SKUs: f.Cluster.SKUs}, nil
}
