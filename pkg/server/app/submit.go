package app

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Request contains a job file for a submission, without the job's owner.
type Request struct {
	// File is the name of the file in findings.
	File, Text string
	// Group is the group of the caller whose quota the job counts against. "" selects the first group that grants the virtual cluster.
	Group string
	Code  *job.Code
	// ClonedFrom is the source of a cloned job, or nil.
	ClonedFrom *ClonedFrom
	// DryRun is set if no job is to be created. A rejected dry run isn't written to the audit log.
	DryRun bool
}

// Prepared is a job that the caller may submit. Only this package can create a Prepared.
type Prepared struct {
	actions  *Actions
	prepared *job.Prepared
	request  Request
	thing    rules.Object
	parent   *fv1.ClonedFrom
	// Findings holds the warnings about the job file.
	Findings strictyaml.Findings
	// CodeURL is the address from which tasks download code. It is "" if the cluster doesn't accept code.
	CodeURL string
}

// Summary returns the job's name and the resources that the job requests.
func (p *Prepared) Summary() job.Summary { return p.prepared.Summary }

// Prepare reads a job file and builds the job's objects. It then checks the rules with these objects, and Submit creates exactly these objects.
// Prepare returns an error if a required fact about the cluster can't be read. If findings are errors, it returns them as the error.
func (d *Actions) Prepare(ctx context.Context, r Request) (*Prepared, error) {
	p, err := d.prepare(ctx, r)
	if err != nil && !r.DryRun {
		return nil, d.audited(ctx, "job.submit", rules.Object{Kind: rules.KindJob, Owner: d.caller.Name}, nil, err)
	}
	return p, err
}

func (d *Actions) prepare(ctx context.Context, r Request) (*Prepared, error) {
	if err := rules.Class("job.submit", &d.caller.Subject); err != nil {
		return nil, err
	}
	if r.File == "" {
		r.File = "job.yaml"
	}
	parsed, found := protocol.Parse(r.File, []byte(r.Text))
	if len(found.Errors()) > 0 {
		return nil, found
	}
	if vc := d.caller.defaultVirtualCluster(); vc != "" && !parsed.NamesVirtualCluster {
		if parsed.VirtualCluster = vc; !d.caller.Grants.MayUse(vc) {
			return nil, hint.Wrap(&rules.ForbiddenError{Why: "your default virtual cluster " + vc + " is not granted to you, and the job file names no other"},
				"write defaults.virtualCluster into the job file, or choose another default: paictl user set "+d.caller.Name+" --default-vc NAME")
		}
	}
	// The rules are checked with the built objects below. This earlier check prevents an error that reveals a virtual cluster that isn't granted to
	// the caller.
	if err := rules.Decide("job.submit", &d.caller.Subject, rules.Object{Kind: rules.KindJob, Owner: d.caller.Name, VC: parsed.VirtualCluster}); err != nil {
		return nil, err
	}
	group, err := d.group(r.Group, parsed.VirtualCluster)
	if err != nil {
		return nil, err
	}
	if r.Code != nil {
		if err := d.sent(ctx, r.Code.SHA256); err != nil {
			return nil, err // annotations, which others can read, contain the checksum
		}
	}
	read := d.app.Jobs.Facts
	if !d.caller.Operator {
		read = func(ctx context.Context) (*job.Facts, error) { return d.app.factsFor(ctx, &d.caller.Subject) }
	}
	facts, err := read(ctx)
	if err != nil {
		return nil, err
	}
	out, more, err := d.app.Jobs.Prepare(facts, job.Request{File: parsed, User: d.caller.Name, Group: group, Code: r.Code})
	found = append(found, more...)
	switch {
	case err != nil:
		return nil, err
	case out == nil || len(found.Errors()) > 0:
		return nil, found
	}
	parent, unseen, err := d.parent(ctx, r.File, r.ClonedFrom)
	if err != nil {
		return nil, err
	}
	found = append(found, unseen...)
	use := job.UseOf(out.Objects.Framework)
	for _, vc := range out.VirtualClusters() {
		if err := rules.Submit(&d.caller.Subject, submission(use, vc)); err != nil {
			return nil, err
		}
	}
	if use.User != d.caller.Name {
		return nil, fmt.Errorf("a job of %s was made for %s", use.User, d.caller.Name) // it can't happen
	}
	thing := rules.Object{Kind: rules.KindJob, Owner: use.User, VC: use.VirtualCluster, Name: out.Name}
	return &Prepared{actions: d, prepared: out, request: r, thing: thing, parent: parent, Findings: found, CodeURL: facts.Configuration.CodeURL}, nil
}

func submission(u job.Use, vc string) rules.Submission {
	return rules.Submission{VCs: []string{vc}, Priority: u.Priority, HostNetwork: u.HostNetwork, Storages: u.Storages, Group: u.Group}
}

// group returns the group whose quota a job counts against. It accepts only groups of the caller that grant the virtual cluster, so that users can't
// choose a group only for its quota.
func (d *Actions) group(asked, vc string) (string, error) {
	if d.caller.Operator {
		return asked, nil
	}
	for _, name := range d.caller.Groups {
		if asked != "" && asked != name {
			continue
		}
		g, err := d.app.People.Group(name)
		if err != nil {
			continue // it has been removed
		}
		grants := slices.ContainsFunc(g.Spec.VirtualClusters, func(v v1.VCGrant) bool { return v.Name == vc })
		if grants || asked != "" && (g.Spec.AllVirtualClusters || g.Spec.Administrator) {
			return name, nil
		}
		if asked != "" {
			return "", &rules.ForbiddenError{Why: fmt.Sprintf("the group %s doesn't grant the virtual cluster %s", asked, vc)}
		}
	}
	if asked != "" {
		return "", &rules.ForbiddenError{Why: fmt.Sprintf("you aren't in the group %s", wire.Shown(asked))}
	}
	return "", nil
}

// factsFor reads all facts about the cluster, with the storages and virtual clusters that are granted to a person. The first storage of each of the
// person's groups is a default storage.
func (s *App) factsFor(ctx context.Context, who *rules.Subject) (*job.Facts, error) {
	f, err := s.Jobs.Facts(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.Complete(); err != nil {
		return nil, err
	}
	defaults := s.defaultStorages(who)
	for name, one := range f.Cluster.Storages {
		if !slices.Contains(who.Grants.Storages, name) {
			delete(f.Cluster.Storages, name)
			continue
		}
		one.Default = defaults[name]
		f.Cluster.Storages[name] = one
	}
	for name := range f.Cluster.VirtualClusters {
		if !who.Grants.MayUse(name) {
			delete(f.Cluster.VirtualClusters, name)
		}
	}
	return f, nil
}

// SubmitOptions are the options of a submission.
type SubmitOptions struct {
	DryRun, Replace, SkipEnded bool
	After, Planned             []string
	// Key identifies a submission, so that the caller can repeat the submission after a lost response.
	Key string
}

// submissionKey matches valid keys of submissions.
var submissionKey = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// Submit creates the job. The caller must be allowed to read the jobs in After.
func (p *Prepared) Submit(ctx context.Context, o SubmitOptions) (outcome job.Outcome, err error) {
	if o.Key != "" && !submissionKey.MatchString(o.Key) {
		return "", wire.Bad("Idempotency-Key must be 8 to 64 letters, digits, dots, underscores or hyphens")
	}
	opts := job.SubmitOptions{DryRun: o.DryRun, Replace: o.Replace, SkipEnded: o.SkipEnded, Planned: o.Planned, Sure: !p.actions.caller.Operator, Key: o.Key, MaySee: p.actions.maySee, ClonedFrom: p.parent}
	for _, name := range o.After {
		if err := protocol.CheckName(name); err != nil {
			return "", wire.Bad(fmt.Sprintf("after: %q isn't a valid job name", wire.Shown(name)))
		}
		opts.After = append(opts.After, protocol.After{Job: name})
	}
	var more added
	defer more.done()
	submit := func(ctx context.Context) (job.Outcome, error) {
		// If an unfinished job already has the name, Submit doesn't create another unfinished job. So the limit doesn't apply.
		if r, known := p.actions.app.Lister.Row(p.prepared.Framework); !known || !unfinished(r) {
			if err := more.add(p.actions.app, p.thing.Owner, Most{1, p.prepared.Tasks}); err != nil {
				return "", err
			}
		}
		return p.actions.app.Jobs.Submit(ctx, p.prepared.Objects, opts)
	}
	if o.DryRun {
		return submit(ctx)
	}
	detail := map[string]string{}
	err = p.actions.did(ctx, "job.submit", p.thing, detail, func(ctx context.Context) (err error) {
		outcome, err = p.idempotent(ctx, o, func() (job.Outcome, error) { return submit(ctx) })
		detail["outcome"] = string(outcome)
		switch {
		case err != nil:
			return err
		case outcome != job.Submitted && outcome != job.Completed:
			return errNothing
		}
		return p.actions.app.keep(ctx, p.actions.caller.person, p.thing.Name)
	})
	if err == nil && outcome != job.Ended {
		p.actions.app.await(ctx, p.prepared.Framework, unfinished)
	}
	return outcome, err
}

// maySee returns an error if a job must stay hidden from the caller.
func (d *Actions) maySee(j *job.Job) error {
	return maySee(&d.caller.Subject, j)
}

func maySee(s *rules.Subject, j *job.Job) error {
	return rules.Decide("job.after", s, thingOf(j))
}

// ownerOf returns the owner of a job with all current grants of the owner. These grants limit the job's tasks, even if another person requests more
// tasks.
func (s *App) ownerOf(name string) (*people.Person, *rules.Subject, error) {
	p, err := s.People.Person(name)
	if err != nil {
		return nil, nil, gone(name)
	}
	if p.Disabled {
		return nil, nil, &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: name + " is disabled: their jobs get no more tasks"}
	}
	subject := p.Subject(rules.Token{})
	return p, &subject, nil
}

func gone(name string) error {
	return &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: fmt.Sprintf("%s is no longer a user of this cluster: their jobs get no more tasks", wire.Shown(name))}
}
