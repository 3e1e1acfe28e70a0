package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// ClonedFrom identifies the source of a cloned job, as the caller specified it.
type ClonedFrom struct {
	// Job is the name of the job, or USER/NAME.
	Job string
	// UID distinguishes the job from other jobs with the same name. "" selects the latest job.
	UID string
}

// jobUID matches the UIDs of jobs from Kubernetes or from an imported history.
var jobUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// parent returns the job from which a job was cloned. The caller must be allowed to read the parent's job file, because the clone shows the parent's
// name to other people. If the parent doesn't exist or is hidden from the caller, parent returns a warning and no job. It returns no error, because
// the reference is only informational.
func (d *Actions) parent(ctx context.Context, file string, from *ClonedFrom) (*fv1.ClonedFrom, strictyaml.Findings, error) {
	if from == nil {
		return nil, nil, nil
	}
	owner, name, err := protocol.SplitName(from.Job)
	if err == nil {
		err = protocol.CheckName(name)
	}
	if err != nil {
		return nil, nil, wire.Bad(fmt.Sprintf("clonedFrom.job: %q isn't the name of a job: write USER/NAME", wire.Shown(from.Job)))
	}
	if from.UID != "" && !jobUID.MatchString(from.UID) {
		return nil, nil, wire.Bad("clonedFrom.uid isn't the UID of a job: leave it out, or take the field uid of GET /api/v3/jobs/{user}/{name}")
	}
	owner = cmp.Or(owner, d.caller.Name)
	j, err := d.seenParent(ctx, owner, name, types.UID(from.UID))
	missing, unseen := errors.AsType[*job.NotFoundError](err)
	switch {
	case unseen && missing.Unsure != nil && !d.caller.Operator:
		return nil, nil, &job.UnavailableError{Err: err} // a later request may find it
	case unseen:
		return nil, strictyaml.Findings{{File: file, Rule: "job/cloned-from", Severity: strictyaml.Warning,
			Message: fmt.Sprintf("the job %s/%s that this one was cloned from is not found: this job won't show where it comes from", wire.Shown(owner), name),
			Remedy:  "see the names of jobs with: paictl job list"}}, nil
	case err != nil:
		return nil, nil, err
	}
	return j.AsParent(), nil, nil
}

// seenParent returns a job if the caller may read its job file. Otherwise the error is the same as for a missing job.
func (d *Actions) seenParent(ctx context.Context, owner, name string, uid types.UID) (*job.Job, error) {
	s := &d.caller.Subject
	// As in Job, the response time must not reveal whether other people's jobs exist. So callers who may read only their own jobs get the error
	// without a lookup.
	if v := rules.Visible(s); !v.All && len(v.VCs) == 0 && owner != v.User || rules.Class("job.config", s) != nil {
		return nil, job.NotFound(owner, name)
	}
	j, err := d.app.Jobs.ResolveUID(ctx, owner, name, uid)
	if err != nil {
		return nil, err
	}
	if rules.Decide("job.config", s, thingOf(j)) != nil {
		return nil, job.NotFound(owner, name)
	}
	return j, nil
}

func thingOf(j *job.Job) rules.Object {
	return rules.Object{Kind: rules.KindJob, Owner: j.User, VC: j.VirtualCluster(), Name: j.Name}
}

// Parent returns the job from which the job was cloned, even if a later job has the same name.
func (j *Job) Parent(ctx context.Context) (*job.Job, error) {
	if err := j.decide("job.read"); err != nil {
		return nil, err
	}
	from := j.job.ClonedFrom()
	if from == nil {
		return nil, &wire.Error{Status: http.StatusNotFound, Code: codeNoJob, Message: fmt.Sprintf("Job %s~%s wasn't cloned from another job.", j.User(), j.Name()),
			Remedy: "compare it with a job that you name: paictl job diff " + j.job.Title() + " OTHER"}
	}
	gone := &wire.Error{Status: http.StatusNotFound, Code: codeNoJob, Message: fmt.Sprintf("The job that %s~%s was cloned from is not found.", j.User(), j.Name())}
	if !j.actions.seesParent(from) {
		return nil, gone
	}
	found, err := j.actions.app.Jobs.ResolveUID(ctx, from.User, from.Name, from.UID)
	if missing, ok := errors.AsType[*job.NotFoundError](err); ok && missing.Unsure != nil {
		return nil, &job.UnavailableError{Err: err}
	} else if ok {
		return nil, gone
	}
	if err != nil {
		return nil, err
	}
	parent := &Job{j.actions, found, thingOf(found)}
	return parent.Brief()
}

// seesParent reports whether the caller may read the parent of a cloned job.
func (d *Actions) seesParent(from *fv1.ClonedFrom) bool {
	return rules.Decide("job.read", &d.caller.Subject, rules.Object{Kind: rules.KindJob, Owner: from.User, VC: from.VirtualCluster, Name: from.Name}) == nil
}
