package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

// Start brings the services to their configured state and waits until they are ready. Each service is started after its prerequisites. Start doesn't
// change services that are already in the configured state. The error is a *PartialError if only some services failed. The error is an *OutdatedError
// if some services run with charts of another paictl. A run with an *OutdatedError has changed no service.
func (p *Platform) Start(ctx context.Context, o Options) error {
	return p.start(ctx, "start", o)
}

// Restart is like Start, and reports for each service whether the values changed. With Renew, Restart also replaces the pods of chosen services with
// unchanged values.
func (p *Platform) Restart(ctx context.Context, o Options) error {
	return p.start(ctx, "restart", o)
}

func (p *Platform) start(ctx context.Context, verb string, o Options) error {
	r := p.newRun(verb, o)
	chosen, err := r.choose(ctx)
	if err != nil {
		return err
	}
	if o.DryRun {
		r.begin(chosen)
		if err := r.planStart(ctx, chosen.Services); err != nil {
			return r.abort(err)
		}
		return r.finish(ctx)
	}
	if err := r.ensureNamespace(ctx, kube.SystemNamespace); err != nil {
		return err
	}
	return r.locked(ctx, func(ctx context.Context) error {
		chosen, err := r.chooseAgain(ctx, chosen)
		if err != nil {
			return r.masks.error(err)
		}
		r.begin(chosen)
		if err := r.prepare(ctx, chosen.Services); err != nil {
			return r.abort(err)
		}
		return r.startAll(ctx, chosen)
	})
}

// choose loads the configuration and selects the services. choose reports mistakes in the configuration before the first change.
func (r *run) choose(ctx context.Context) (catalogue.Selection, error) {
	d, err := r.LoadPlaced(ctx)
	if err != nil {
		return catalogue.Selection{}, err
	}
	if d.Mistakes != nil {
		return catalogue.Selection{}, d.Mistakes
	}
	if d.unstartable != nil {
		return catalogue.Selection{}, d.unstartable
	}
	r.use(d)
	chosen, err := d.Catalogue.Select(r.o.Names, r.o.Except)
	if err != nil {
		return catalogue.Selection{}, err
	}
	if err := d.FetchCharts(ctx, r.Fetcher, chosen.Services); err != nil {
		return catalogue.Selection{}, err
	}
	return chosen, nil
}

// chooseAgain loads the configuration again if a user has pushed a newer revision. Another run may already have applied the newer revision, and this
// run must not undo the changes. Later pushes wait for the lock.
func (r *run) chooseAgain(ctx context.Context, chosen catalogue.Selection) (catalogue.Selection, error) {
	if r.Current == nil {
		return chosen, nil
	}
	now, err := r.Current(ctx)
	if err != nil {
		return chosen, err
	}
	if had := r.desired.Revision; now.Number == had.Number && now.UID == had.UID {
		return chosen, nil
	}
	if chosen, err = r.choose(ctx); err == nil {
		r.warn(fmt.Sprintf("the cluster's configuration changed when this run started: revision %d is used", r.desired.Revision.Number), "")
	}
	return chosen, err
}

// use sets the configuration of the run. Secrets in the configuration are masked from then on.
func (r *run) use(d *Desired) {
	r.desired = d
	r.mu.Lock()
	r.masks = newMasks(d.Config, d.Catalogue.Services())
	r.mu.Unlock()
}

// begin reports the start of the run and the services of the run.
func (r *run) begin(chosen catalogue.Selection) {
	r.total = len(chosen.Services)
	r.emit(Event{Kind: EventRunStarted, Message: "service " + r.verb, Services: names(chosen.Services)})
	for _, n := range r.desired.Notes {
		r.warn(n.Message, n.Remedy)
	}
	for _, name := range chosen.Added {
		r.emit(Event{Kind: EventAdded, Service: name, Message: "added: " + r.neededBy(name, chosen)})
	}
}

// neededBy returns the reason why a service was added. The reason lists the services that require the added service.
func (r *run) neededBy(name string, chosen catalogue.Selection) string {
	var by []string
	for _, s := range chosen.Services {
		if slices.Contains(s.Requires, name) {
			by = append(by, s.Name)
		}
	}
	return "required by " + strings.Join(by, ", ")
}

// prepare creates the objects that all services need, such as namespaces, node labels and Secrets.
func (r *run) prepare(ctx context.Context, chosen []*catalogue.Service) error {
	if err := r.unmoved(ctx, chosen); err != nil {
		return err
	}
	if err := r.reachable(chosen); err != nil {
		return err
	}
	if r.verb != verbUpgrade {
		if err := r.sameCharts(ctx, chosen); err != nil {
			return err
		}
	}
	spaces := namespaces(chosen)
	for _, ns := range spaces {
		if err := r.ensureNamespace(ctx, ns); err != nil {
			return err
		}
	}
	if err := r.nodeLabels(ctx, chosen); err != nil {
		return err
	}
	if err := r.accessSecrets(ctx); err != nil {
		return err
	}
	if err := r.pullSecrets(ctx, append(spaces, kube.JobNamespace)); err != nil {
		return err
	}
	started, err := r.note(ctx, chosen, nil) // before the first release, so that all are recorded
	if err == nil {
		r.tellOrphans(started)
	}
	return err
}

func (r *run) startAll(ctx context.Context, chosen catalogue.Selection) error {
	order := names(chosen.Services)
	r.tellWaits(order)
	had := r.hasPolicies(ctx) // they were reported when they were created
	errs := walk(ctx, order, r.requires, r.o.Parallel, func(ctx context.Context, name string) error {
		return r.startOne(ctx, r.desired.Catalogue.Get(name), r.renews(name, chosen))
	})
	r.settle(order, errs)
	if note := r.policyNote(ctx); !had && note != nil && ctx.Err() == nil {
		r.warn(note.Message, note.Remedy)
	}
	// A service in this run may have created the namespace of jobs.
	if err := r.pullSecrets(ctx, []string{kube.JobNamespace}); err != nil && ctx.Err() == nil {
		return r.abort(err)
	}
	return r.finish(ctx)
}

// tellWaits reports the prerequisites of each service.
func (r *run) tellWaits(order []string) {
	for _, name := range order {
		on := slices.DeleteFunc(slices.Clone(r.requires(name)), func(need string) bool { return !slices.Contains(order, need) })
		if len(on) > 0 {
			r.emit(Event{Kind: EventWaiting, Service: name, Message: "waits for " + strings.Join(on, ", ")})
		}
	}
}

func (r *run) requires(name string) []string { return r.desired.Catalogue.Get(name).Requires }

// renews reports whether to replace the pods of a service even if the values didn't change. renews returns false for services that were only added as
// prerequisites.
func (r *run) renews(name string, chosen catalogue.Selection) bool {
	return r.o.Renew && !slices.Contains(chosen.Added, name)
}

// startOne starts a service. startOne has already reported the returned error.
func (r *run) startOne(ctx context.Context, s *catalogue.Service, renew bool) error {
	began := r.Clock()
	r.emit(Event{Kind: EventStarted, Service: s.Name})
	out, err := r.applyOne(ctx, s)
	if err == nil && renew && out.Action == release.Unchanged {
		err = r.renew(ctx, s, &out)
	}
	if err == nil {
		err = r.awaitOne(ctx, s, out)
		if err == nil && out.Unproven > 0 && r.o.Wait > 0 { // an earlier upgrade was killed while it waited
			err = r.Releases.Settle(ctx, s.Namespace, s.Name)
		}
	}
	switch {
	case err == nil:
		r.emit(Event{Kind: EventReady, Service: s.Name, Action: out.Action, Revision: out.Revision, Elapsed: r.Clock().Sub(began), Message: r.outcomeText(out)})
		return nil
	case ctx.Err() != nil:
		return err // not a failure of the service: the summary reports the interruption
	}
	r.fail(s.Name, began, err)
	if unknown := (*ready.UnknownError)(nil); errors.As(err, &unknown) {
		r.emit(Event{Kind: EventReverted, Service: s.Name, Message: "left as it is: its state is unknown"})
		return err
	}
	r.revert(ctx, s, out)
	return err
}

// outcomeText returns the text of the event "ready" for a changed service if the run doesn't wait.
func (r *run) outcomeText(out release.Outcome) string {
	if r.o.Wait > 0 || out.Action == release.Unchanged {
		return ""
	}
	return "not waited for"
}

func (r *run) applyOne(ctx context.Context, s *catalogue.Service) (release.Outcome, error) {
	if err := r.keepCredentials(ctx, s); err != nil {
		return release.Outcome{}, err
	}
	out, err := r.Releases.Apply(ctx, r.request(s))
	if err != nil {
		return out, fmt.Errorf("%s of %s: %w", r.verb, s.Name, err)
	}
	if out.Action != release.Unchanged {
		r.count(s.Name, 1)
	}
	r.emit(Event{Kind: EventApplied, Service: s.Name, Action: out.Action, Revision: out.Revision})
	return out, nil
}

// keepCredentials writes the Secret with a service's credentials. keepCredentials passes the revision of the Secret to the chart, so that pods are
// replaced when the credentials change.
func (r *run) keepCredentials(ctx context.Context, s *catalogue.Service) error {
	want := credentials(s)
	if want == nil {
		return nil
	}
	revision, err := r.keepSecret(ctx, s.Name, want)
	s.SetCredentialsRevision(revision)
	return err
}

func request(s *catalogue.Service) release.Request {
	return release.Request{Name: s.Name, Namespace: s.Namespace, Chart: s.Chart, Values: s.ReleaseValues()}
}

// request returns the request for a service's release. request includes the options of the run.
func (r *run) request(s *catalogue.Service) release.Request {
	out := request(s)
	out.Upgrade = r.verb == verbUpgrade
	out.Downgrade = out.Upgrade && r.o.Downgrade
	return out
}

// revert undoes a failed start. revert rolls back or removes the release, and restores the previous credentials. Volumes are kept. If this run didn't
// change the release, revert changes nothing.
func (r *run) revert(ctx context.Context, s *catalogue.Service, out release.Outcome) {
	if out.Action == release.Unchanged || out.Action == ActionRestarted {
		return
	}
	if out.Action == "" { // it was rejected before a part of the release was sent
		r.putBack(ctx, s.Name)
		return
	}
	if r.o.KeepFailed {
		r.emit(Event{Kind: EventReverted, Service: s.Name, Message: "left as it is, as --keep-failed says", Hint: "look at it with: paictl service logs -n " + s.Name})
		return
	}
	var err error
	text := fmt.Sprintf("rolled back to revision %d", out.Previous)
	if out.Previous > 0 {
		r.putBack(ctx, s.Name) // before pods that read them are created
		err = r.Releases.Rollback(ctx, s.Namespace, s.Name, out.Previous)
	} else {
		text = "removed; volumes stay"
		err = r.Releases.Uninstall(ctx, s.Namespace, s.Name)
	}
	if err != nil {
		r.warn(fmt.Sprintf("%s could not be rolled back: %v", s.Name, err), hint.Of(err))
		return
	}
	r.emit(Event{Kind: EventReverted, Service: s.Name, Revision: out.Previous, Message: text})
}

func names(all []*catalogue.Service) []string {
	out := make([]string, 0, len(all))
	for _, s := range all {
		out = append(out, s.Name)
	}
	return out
}

func namespaces(all []*catalogue.Service) []string {
	var out []string
	for _, s := range all {
		if !slices.Contains(out, s.Namespace) {
			out = append(out, s.Namespace)
		}
	}
	return out
}
