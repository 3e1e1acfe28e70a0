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

// ClonedFrom names the job that a job was cloned from, according to the caller.
type ClonedFrom struct {
	// Job is its name, or USER/NAME.
	Job string
	// UID distinguishes it from other jobs of that name; "" is the latest one.
	UID string
}

// jobUID is the format of UIDs of jobs: UIDs of Kubernetes, and UIDs of imported histories.
var jobUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// parent finds the job that a job was cloned from. The caller must have the right to read the parent's job file, because other people learn the
// parent's name from the clone. For a parent that doesn't exist, or that the caller may not see, it returns a warning and no job: the reference is
// only information for people.
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

// seenParent finds a job whose job file the caller may read. All other errors are returned as not found.
func (d *Actions) seenParent(ctx context.Context, owner, name string, uid types.UID) (*job.Job, error) {
	s := &d.caller.Subject
	// As in Job, callers who see only their own jobs can't detect by the duration whether others exist.
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

// thingOf converts a job to a thing of the rules.
func thingOf(j *job.Job) rules.Thing {
	return rules.Thing{Kind: rules.KindJob, Owner: j.User, VC: j.VirtualCluster(), Name: j.Name}
}

// Parent returns the job that the job was cloned from, even if a later job has its name now.
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

// seesParent reports whether the caller sees the parent of a cloned job.
func (d *Actions) seesParent(from *fv1.ClonedFrom) bool {
	return rules.Decide("job.read", &d.caller.Subject, rules.Thing{Kind: rules.KindJob, Owner: from.User, VC: from.VirtualCluster, Name: from.Name}) == nil
}
