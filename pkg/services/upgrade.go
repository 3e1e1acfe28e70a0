package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/version"
)

const verbUpgrade = "upgrade"

// ErrConfigurationChanged means that the cluster's configuration has changed after the user's confirmation of the upgrade.
var ErrConfigurationChanged = errors.New("someone pushed a configuration since the changes were shown; nothing was changed")

// ErrReleaseChanged means that a release has changed after the user's confirmation of the upgrade.
var ErrReleaseChanged = errors.New("another run changed services since the changes were shown; this one changed nothing")

// upgradeStep is the upgrade of a service. plan applies to the release's current revision. by is the version of paictl that created this revision.
type upgradeStep struct {
	service  *catalogue.Service
	plan     release.Plan
	revision int
	by       string
}

// Upgrade upgrades the chosen services to this paictl's charts. Upgrade upgrades one service at a time, in the order of their requirements. For each
// service, Upgrade updates the custom resource definitions before the release. Each service must become ready before the next upgrade begins. A
// service that doesn't become ready is rolled back to its previous revision. After MaxFailures failed services, Upgrade skips the remaining services
// and returns a *PartialError. Services that are not installed or not configured are only reported. Upgrade changes nothing until
// Options.ConfirmUpgrade returns nil. If a later paictl installed a service, Upgrade requires Options.Downgrade. Without Options.Downgrade, Upgrade
// changes nothing and returns a *DowngradeError.
func (p *Platform) Upgrade(ctx context.Context, o Options) error {
	o.MaxFailures = max(o.MaxFailures, 1)
	r := p.newRun(verbUpgrade, o)
	chosen, err := r.choose(ctx)
	if err != nil {
		return err
	}
	steps, absent, err := r.upgradeSteps(ctx, chosen)
	if err != nil {
		return r.masks.error(err)
	}
	if o.DryRun {
		r.beginUpgrade(chosen, steps, absent)
		for _, s := range steps {
			r.plan(s.service.Name, s.plan)
		}
		started, err := readInventory(ctx, r.Client)
		if err != nil {
			return r.abort(err)
		}
		r.tellOrphans(started)
		return r.finish(ctx)
	}
	if err := r.agree(ctx, steps); err != nil {
		return err
	}
	return r.locked(ctx, func(ctx context.Context) error {
		if err := r.unpushed(ctx); err != nil {
			return err
		}
		if err := r.unreleased(ctx, steps); err != nil {
			return err
		}
		r.beginUpgrade(chosen, steps, absent)
		if err := r.prepare(ctx, servicesOf(steps)); err != nil {
			return r.abort(err)
		}
		r.upgradeAll(ctx, steps)
		return r.finish(ctx)
	})
}

// upgradeSteps returns the steps for the chosen installed services. absent lists the other chosen services.
func (r *run) upgradeSteps(ctx context.Context, chosen catalogue.Selection) (steps []upgradeStep, absent []string, err error) {
	started, err := readInventory(ctx, r.Client)
	if err != nil {
		return nil, nil, err
	}
	if err := r.unmoved(ctx, chosen.Services); err != nil {
		return nil, nil, err
	}
	var installed []*catalogue.Service
	var old []map[string]any
	var seen []*release.Release // read before the plans: if a release is created after this, it is found to differ
	back := &DowngradeError{This: version.Version}
	for _, s := range chosen.Services {
		// If the inventory doesn't contain the service, a release with this name belongs to another program.
		have, err := r.Releases.Get(ctx, s.Namespace, s.Name)
		if err != nil {
			return nil, nil, err
		}
		if _, ours := started[s.Name]; have == nil || !ours {
			absent = append(absent, s.Name)
			continue
		}
		installed, old, seen = append(installed, s), append(old, have.Values), append(seen, have)
		// The configuration defines the charts of upstream services, so the version of paictl doesn't matter.
		if by := version.OfTag(have.By); s.Upstream == nil && catalogue.LaterPaictl(by, back.This) {
			back.add(s.Name, by)
		}
	}
	if len(back.Services) > 0 && !r.o.Downgrade {
		return nil, nil, back.explained()
	}
	r.hideOld(installed, old)
	if err := r.reachable(installed); err != nil {
		return nil, nil, err
	}
	plans, failed := r.plans(ctx, installed)
	if err := errors.Join(failed...); err != nil {
		return nil, nil, err
	}
	for i, s := range installed {
		steps = append(steps, upgradeStep{service: s, plan: plans[i], revision: seen[i].Revision, by: seen[i].By})
	}
	return steps, absent, nil
}

// hideOld also masks the secrets of the current releases, because a diff contains removed lines.
func (r *run) hideOld(all []*catalogue.Service, values []map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	shown := make([]map[string]any, len(all))
	for i, s := range all {
		shown[i] = s.ShownValues()
	}
	r.masks = newMasks(r.desired.Config, r.desired.Catalogue.Services(), func(add func(secret.String)) {
		for i := range all {
			hidden(values[i], shown[i], add)
		}
	})
}

func servicesOf(steps []upgradeStep) []*catalogue.Service {
	var out []*catalogue.Service
	for _, s := range steps {
		out = append(out, s.service)
	}
	return out
}

// agree asks the user to confirm the changes. Without changes, agree doesn't ask.
func (r *run) agree(ctx context.Context, steps []upgradeStep) error {
	if r.o.ConfirmUpgrade == nil || !slices.ContainsFunc(steps, upgradeStep.changes) {
		return nil
	}
	var events []Event
	for _, s := range steps {
		events = append(events, r.masks.event(Event{Kind: EventPlanned, Service: s.service.Name, Action: s.plan.Action, Plan: &s.plan}))
	}
	return r.o.ConfirmUpgrade(ctx, events)
}

func (s upgradeStep) changes() bool { return s.plan.Action != release.Unchanged }

// unpushed returns an error if the configuration has changed since the user confirmed the changes.
func (r *run) unpushed(ctx context.Context) error {
	if r.Current == nil {
		return nil
	}
	now, err := r.Current(ctx)
	if err != nil {
		return err
	}
	if had := r.desired.Revision; now.Number != had.Number || now.UID != had.UID {
		return hint.Wrap(ErrConfigurationChanged, "run the same command again")
	}
	return nil
}

// unreleased returns an error if another run has changed one of the services since the user confirmed the changes. Such a change is possible because
// this run planned the upgrade before acquiring the lock.
func (r *run) unreleased(ctx context.Context, steps []upgradeStep) error {
	var changed []string
	for _, s := range steps {
		now, err := r.Releases.Get(ctx, s.service.Namespace, s.service.Name)
		if err != nil {
			return err
		}
		if now == nil || now.Revision != s.revision || now.By != s.by {
			changed = append(changed, s.service.Name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return hint.Wrap(fmt.Errorf("%w: %s", ErrReleaseChanged, strings.Join(changed, ", ")), "run the same command again: it shows what would change now")
}

// beginUpgrade reports the start of the run and the skipped services.
func (r *run) beginUpgrade(chosen catalogue.Selection, steps []upgradeStep, absent []string) {
	installed := catalogue.Selection{Services: servicesOf(steps)}
	for _, name := range chosen.Added {
		if !slices.Contains(absent, name) {
			installed.Added = append(installed.Added, name)
		}
	}
	r.begin(installed)
	if len(absent) > 0 {
		r.warn("not installed, left alone: "+strings.Join(absent, ", "), "start them with: "+state.StartCommand(absent...))
	}
	for _, s := range steps {
		for _, what := range s.plan.Loses {
			r.warn(s.service.Name+": objects lose their data in "+what, "a backup that was made before has it (paictl cluster backup)")
		}
	}
}

// upgradeAll upgrades services one after the other. upgradeAll skips a service if a required service was skipped or has failed. After too many
// failures, upgradeAll skips all remaining services.
func (r *run) upgradeAll(ctx context.Context, steps []upgradeStep) {
	behind := map[string]string{} // services that are not in the desired state, each with the reason
	failures := []string{}
	for _, s := range steps {
		if ctx.Err() != nil {
			return
		}
		name := s.service.Name
		why := ""
		for _, need := range r.requires(name) {
			if behind[need] != "" {
				why = "it requires " + need
			}
		}
		if len(failures) >= r.o.MaxFailures {
			why = "the upgrade of " + strings.Join(failures, ", ") + " failed"
		}
		if why != "" {
			behind[name] = why
			r.leave(name, why)
			continue
		}
		if s.changes() {
			r.emit(Event{Kind: EventPlanned, Service: name, Action: s.plan.Action, Plan: &s.plan})
		}
		if err := r.upgradeOne(ctx, s.service); err != nil && ctx.Err() == nil {
			behind[name] = "failed"
			failures = append(failures, name)
		}
	}
}

func (r *run) leave(name, why string) {
	r.mu.Lock()
	r.waits = append(r.waits, name)
	r.mu.Unlock()
	r.emit(Event{Kind: EventNotStarted, Service: name, Message: "not upgraded: " + why})
}

// upgradeOne upgrades a service and waits until it is ready. For an unchanged service, upgradeOne waits only if an earlier upgrade was killed before
// the service was ready. upgradeOne has already reported the returned error.
func (r *run) upgradeOne(ctx context.Context, s *catalogue.Service) error {
	began := r.Clock()
	r.emit(Event{Kind: EventStarted, Service: s.Name})
	out, err := r.applyOne(ctx, s)
	if err == nil && (out.Action != release.Unchanged || out.Unproven > 0) {
		err = r.awaitOne(ctx, s, out)
	}
	if err == nil {
		err = r.Releases.Settle(ctx, s.Namespace, s.Name)
		if err == nil {
			r.emit(Event{Kind: EventReady, Service: s.Name, Action: out.Action, Revision: out.Revision, Elapsed: r.Clock().Sub(began)})
			return nil
		}
		if ctx.Err() == nil {
			r.fail(s.Name, began, err) // the service works: only the annotation is missing, and the next run adds it
		}
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	r.fail(s.Name, began, err)
	if unknown := (*ready.UnknownError)(nil); errors.As(err, &unknown) {
		r.emit(Event{Kind: EventReverted, Service: s.Name, Message: "left as it is: its state is unknown", Hint: "the next upgrade continues with it"})
		return err
	}
	if out.Action == release.Unchanged {
		out.Action, out.Previous = release.Upgraded, out.Unproven
	}
	r.revert(ctx, s, out)
	r.tellAfterRevert(ctx, s, out)
	return err
}

// tellAfterRevert waits for the previous revision of a service, and reports whether this revision is ready.
func (r *run) tellAfterRevert(ctx context.Context, s *catalogue.Service, out release.Outcome) {
	if out.Previous == 0 || r.o.KeepFailed || ctx.Err() != nil {
		return
	}
	now, err := r.Releases.Get(ctx, s.Namespace, s.Name)
	if err != nil || now == nil || now.Status != facts.StatusDeployed {
		return // the rollback itself failed, and was reported
	}
	have, err := r.Ready.Wait(ctx, s.Namespace, now.Manifest, ready.WaitOptions{Timeout: r.o.Wait, Grace: grace, OnChange: func(ready.State) {}})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		err = unready(have, err)
		r.warn(fmt.Sprintf("%s isn't ready after the rollback either: %v", s.Name, err), hint.Of(err))
	default:
		r.emit(Event{Kind: EventReverted, Service: s.Name, Revision: now.Revision, Message: "ready again"})
	}
}

// DowngradeError means that a later paictl installed services, so this upgrade would install older charts.
type DowngradeError struct {
	Services []string
	By       []string
	This     string
}

func (e *DowngradeError) add(service, by string) {
	e.Services = append(e.Services, service)
	if !slices.Contains(e.By, by) {
		e.By = append(e.By, by)
		slices.SortFunc(e.By, func(a, b string) int {
			if catalogue.LaterPaictl(a, b) {
				return -1
			}
			return 1
		})
	}
}

func (e *DowngradeError) Error() string {
	verb := "was"
	if len(e.Services) > 1 {
		verb = "were"
	}
	return fmt.Sprintf("%s %s installed by paictl %s, and this is %s: its charts are older", strings.Join(e.Services, ", "), verb, strings.Join(e.By, " and "), e.This)
}

// explained returns the error with a remedy. The latest version must be the first element of By.
func (e *DowngradeError) explained() error {
	slices.Sort(e.Services)
	return hint.Wrap(e, laterRemedy(e.By[0], e.Services))
}

func laterRemedy(later string, services []string) string {
	return "use paictl " + later + " or a later one; to go back to older charts in spite of that: paictl service upgrade -n " + strings.Join(services, ",") + " --downgrade, of which --dry-run shows what is lost"
}

// OutdatedError means that services run with charts of another paictl. A start doesn't change charts.
type OutdatedError struct {
	Services []string
	// By lists the versions of paictl that installed the services. By leaves out unknown versions.
	By   []string
	This string
}

func (e *OutdatedError) Error() string {
	verb, charts := "runs", "another chart"
	if len(e.Services) > 1 {
		verb, charts = "run", "other charts"
	}
	text := fmt.Sprintf("%s %s with %s than this paictl's (%s)", strings.Join(e.Services, ", "), verb, charts, e.This)
	if len(e.By) > 0 && !slices.Contains(e.By, e.This) {
		text += ", from " + strings.Join(e.By, " and ")
	}
	return text
}

// sameCharts returns an error if the run would start services with charts of another paictl, because a start must not change versions. sameCharts
// ignores upstream charts, because the configuration defines upstream charts.
func (r *run) sameCharts(ctx context.Context, chosen []*catalogue.Service) error {
	var requests []release.Request
	for _, s := range chosen {
		if s.Upstream == nil {
			requests = append(requests, r.request(s))
		}
	}
	old, err := r.Releases.Outdated(ctx, requests)
	if err != nil || len(old) == 0 {
		return err
	}
	e := &OutdatedError{This: version.Version}
	by := map[string]bool{}
	for _, rel := range old {
		e.Services = append(e.Services, rel.Name)
		if rel.By != "" {
			by[version.OfTag(rel.By)] = true
		}
	}
	slices.Sort(e.Services)
	e.By = slices.Sorted(maps.Keys(by))
	if i := slices.IndexFunc(e.By, func(v string) bool { return catalogue.LaterPaictl(v, e.This) }); i >= 0 {
		// The definitions of an earlier paictl may not contain all fields of users' objects.
		return hint.Wrap(e, laterRemedy(e.By[i], e.Services))
	}
	return hint.Wrap(e, "bring them to this paictl's charts with: paictl service upgrade -n "+strings.Join(e.Services, ",")+"; --dry-run shows what it changes")
}
