package desk

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/protocol"
	"github.com/openpai/paictl/pkg/server/wire"
	"github.com/openpai/paictl/pkg/strictyaml"
)

// Request is a job file that the caller wants to submit. Whose job it becomes is not in it.
type Request struct {
	// File is how findings call the file.
	File, Text string
	// Group is one of the caller's, for its quota; "": the first of them that grants the virtual cluster.
	Group string
	Code  *job.Code
}

// Prepared is a job that the caller may submit. It can't be made outside of this package.
type Prepared struct {
	desk     *Desk
	prepared *job.Prepared
	request  Request
	thing    rules.Thing
	// Findings are warnings.
	Findings strictyaml.Findings
	// CodeURL is where tasks fetch code; "" where the cluster takes none.
	CodeURL string
}

// Summary is what the job asks for.
func (p *Prepared) Summary() job.Summary { return p.prepared.Summary }

// Prepare reads a job file and makes its objects, from facts that are complete: what can't be known is not allowed. Then it decides on what
// was made, which is what runs. Findings that are errors come as the error.
func (d *Desk) Prepare(ctx context.Context, r Request) (*Prepared, error) {
	p, err := d.prepare(ctx, r)
	if err != nil {
		return nil, d.audited(ctx, "job.submit", rules.Thing{Kind: rules.KindJob, Owner: d.caller.Name}, nil, err)
	}
	return p, nil
}

func (d *Desk) prepare(ctx context.Context, r Request) (*Prepared, error) {
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
	// The rules decide on what was made below. They decide here, too, so that an error says nothing of a virtual cluster that isn't granted.
	if err := rules.Decide("job.submit", &d.caller.Subject, rules.Thing{Kind: rules.KindJob, Owner: d.caller.Name, VC: parsed.VirtualCluster}); err != nil {
		return nil, err
	}
	group, err := d.group(r.Group, parsed.VirtualCluster)
	if err != nil {
		return nil, err
	}
	if r.Code != nil {
		if err := d.sent(ctx, r.Code.SHA256); err != nil {
			return nil, err // a checksum stands in annotations, which others read
		}
	}
	facts, err := d.shop.Jobs.Facts(ctx)
	if err != nil {
		return nil, err
	}
	if err := facts.Complete(); err != nil {
		return nil, err
	}
	d.own(facts)
	out, more, err := d.shop.Jobs.Prepare(facts, job.Request{File: r.File, Text: []byte(r.Text), Parsed: parsed, User: d.caller.Name, Group: group, Code: r.Code})
	found = append(found, more...)
	switch {
	case err != nil:
		return nil, err
	case out == nil || len(found.Errors()) > 0:
		return nil, found
	}
	use := job.UseOf(out.Objects.Framework)
	for _, vc := range out.VirtualClusters() {
		if err := rules.Submit(&d.caller.Subject, submission(use, vc)); err != nil {
			return nil, err
		}
	}
	if use.User != d.caller.Name {
		return nil, fmt.Errorf("a job of %s was made for %s", use.User, d.caller.Name) // it can't be
	}
	thing := rules.Thing{Kind: rules.KindJob, Owner: use.User, VC: use.VirtualCluster, Name: out.Name}
	return &Prepared{desk: d, prepared: out, request: r, thing: thing, Findings: found, CodeURL: facts.Configuration.CodeURL}, nil
}

// submission is what a job takes, for the rules.
func submission(u job.Use, vc string) rules.Submission {
	return rules.Submission{VCs: []string{vc}, Priority: u.Priority, HostNetwork: u.HostNetwork, Storages: u.Storages, Group: u.Group}
}

// group is the group whose quota a job counts to: one of the caller's that grants the virtual cluster, so that none is chosen for its quota
// alone.
func (d *Desk) group(asked, vc string) (string, error) {
	for _, name := range d.caller.Groups {
		if asked != "" && asked != name {
			continue
		}
		g, err := d.shop.People.Group(name)
		if err != nil {
			continue // it is gone since
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

// own leaves of what the cluster offers what the caller may use: storages that are granted, and the first of each group as the default ones;
// virtual clusters that are granted.
func (d *Desk) own(f *job.Facts) {
	defaults := d.defaultStorages()
	for name, s := range f.Cluster.Storages {
		if !slices.Contains(d.caller.Grants.Storages, name) {
			delete(f.Cluster.Storages, name)
			continue
		}
		s.Default = defaults[name]
		f.Cluster.Storages[name] = s
	}
	for name := range f.Cluster.VirtualClusters {
		if !d.caller.Grants.MayUse(name) {
			delete(f.Cluster.VirtualClusters, name)
		}
	}
}

// SubmitOptions say how a job is submitted.
type SubmitOptions struct {
	DryRun, Replace, SkipEnded bool
	After, Planned             []string
	// Key is the same where a submission is sent again after its answer was lost.
	Key string
}

// submissionKey is what a client may call a submission.
var submissionKey = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// Submit makes the job. What it is made after must be jobs that the caller sees.
func (p *Prepared) Submit(ctx context.Context, o SubmitOptions) (outcome job.Outcome, err error) {
	if o.Key != "" && !submissionKey.MatchString(o.Key) {
		return "", wire.Bad("Idempotency-Key must be 8 to 64 letters, digits, dots, underscores or hyphens")
	}
	opts := job.SubmitOptions{DryRun: o.DryRun, Replace: o.Replace, SkipEnded: o.SkipEnded, Planned: o.Planned, Sure: true, Key: o.Key, MaySee: p.desk.maySee}
	for _, name := range o.After {
		if err := protocol.CheckName(name); err != nil {
			return "", wire.Bad(fmt.Sprintf("after: %q is no name of a job", wire.Shown(name)))
		}
		opts.After = append(opts.After, protocol.After{Job: name})
	}
	var more added
	defer more.done()
	submit := func(ctx context.Context) (job.Outcome, error) {
		// One that hasn't finished is this very job, or keeps its name.
		if r, known := p.desk.shop.Live.Row(p.prepared.Framework); !known || !unfinished(r) {
			if err := more.add(p.desk.shop, p.thing.Owner, Most{1, p.prepared.Tasks}); err != nil {
				return "", err
			}
		}
		return p.desk.shop.Jobs.Submit(ctx, p.prepared.Objects, opts)
	}
	if o.DryRun {
		return submit(ctx)
	}
	detail := map[string]string{}
	err = p.desk.did(ctx, "job.submit", p.thing, detail, func(ctx context.Context) (err error) {
		outcome, err = p.once(ctx, o, func() (job.Outcome, error) { return submit(ctx) })
		detail["outcome"] = string(outcome)
		if err != nil || outcome != job.Submitted && outcome != job.Completed {
			return err
		}
		return p.desk.shop.keep(ctx, p.desk.caller.person, p.thing.Name)
	})
	if err == nil && outcome != job.Ended {
		p.desk.shop.await(ctx, p.prepared.Framework, unfinished)
	}
	return outcome, err
}

// maySee returns an error for a job that the caller may not know of.
func (d *Desk) maySee(j *job.Job) error {
	return maySee(&d.caller.Subject, j)
}

func maySee(s *rules.Subject, j *job.Job) error {
	return rules.Decide("job.after", s, rules.Thing{Kind: rules.KindJob, Owner: j.User, VC: j.VirtualCluster(), Name: j.Name})
}

// ownerOf is a person whose job gets tasks, with all that is granted to them today, for what is decided about the job while another asks.
func (s *Shop) ownerOf(name string) (*people.Person, *rules.Subject, error) {
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
