package services

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/release"
)

// target is a service to stop. The current or an earlier configuration contains the service.
type target struct {
	name, namespace string
	requires        []string
	release         *release.Release // nil if it doesn't exist
	noted           bool             // the inventory has it; for a delete, also as a stopped service
	unowned         []corev1.Pod     // pods whose owners no longer exist
}

// withoutRelease returns the targets in the inventory without a release. A run was interrupted after it had removed their release and before it had
// updated the inventory.
func withoutRelease(targets []*target) []string {
	var out []string
	for _, t := range targets {
		if t.noted && t.release == nil {
			out = append(out, t.name)
		}
	}
	return out
}

// Stop removes the releases of services and waits until their pods no longer exist. Each release is removed after all releases that require it. Data
// is kept. Without names, Stop also stops services that are no longer in the configuration.
func (p *Platform) Stop(ctx context.Context, o Options) error {
	r := p.newRun("stop", o)
	targets, err := r.targets(ctx)
	if err != nil {
		return err
	}
	stale := withoutRelease(targets)
	running := slices.DeleteFunc(targets, func(t *target) bool { return t.release == nil && len(t.unowned) == 0 })
	if len(running)+len(stale) == 0 && !o.DryRun {
		r.beginStop(running)
		return r.nothing(ctx)
	}
	if o.DryRun {
		r.beginStop(running)
		for _, t := range running {
			r.plan(t.name, release.Plan{Action: "stop", Changes: []release.Change{{Action: "delete", Object: "Release " + t.namespace + "/" + t.name}}})
		}
		return r.finish(ctx)
	}
	if err := r.ensureNamespace(ctx, kube.SystemNamespace); err != nil { // the lock is in this namespace
		return err
	}
	return r.locked(ctx, func(ctx context.Context) error {
		r.beginStop(running)
		if err := r.stopAll(ctx, running, stale, ActionStopped, func(context.Context, *target) error { return nil }); err != nil {
			return r.abort(err)
		}
		return r.finish(ctx)
	})
}

func (r *run) beginStop(targets []*target) {
	r.total = len(targets)
	var order []string
	for _, t := range targets {
		order = append(order, t.name)
	}
	r.emit(Event{Kind: EventRunStarted, Message: "service " + r.verb, Services: order})
}

// stopAll removes the releases of targets and calls after for each target. Each target is stopped after all targets that require it. Services in
// stale are only removed from the inventory.
func (r *run) stopAll(ctx context.Context, targets []*target, stale []string, action string, after func(context.Context, *target) error) error {
	byName := map[string]*target{}
	var order []string
	for _, t := range targets {
		byName[t.name] = t
		order = append(order, t.name)
	}
	// Read the releases again, because another run may have started a service before this run acquired the lock. A delete may wait long for the user's
	// confirmation.
	if err := r.findReleases(ctx, byName); err != nil {
		return err
	}
	dependents := func(name string) []string {
		var out []string
		for _, t := range targets {
			if slices.Contains(t.requires, name) {
				out = append(out, t.name)
			}
		}
		return out
	}
	errs := walk(ctx, order, dependents, r.o.Parallel, func(ctx context.Context, name string) error {
		return r.stopOne(ctx, byName[name], action, after)
	})
	r.settle(order, errs)
	gone := stale
	for _, name := range order {
		if errs[name] == nil {
			gone = append(gone, name)
		}
	}
	// Record the removed services even if the run was interrupted.
	_, err := r.note(context.WithoutCancel(ctx), nil, gone)
	return err
}

// stopOne removes a release and waits until the release's pods no longer exist. stopOne has already reported the returned error.
func (r *run) stopOne(ctx context.Context, t *target, action string, after func(context.Context, *target) error) error {
	began := r.Clock()
	r.emit(Event{Kind: EventStarted, Service: t.name})
	err := r.uninstall(ctx, t)
	if err == nil {
		err = after(ctx, t)
	}
	switch {
	case err == nil:
		r.count(t.name, 1)
		r.emit(Event{Kind: EventStopped, Service: t.name, Action: action, Elapsed: r.Clock().Sub(began)})
	case ctx.Err() == nil:
		r.fail(t.name, began, err)
	}
	return err
}

func (r *run) uninstall(ctx context.Context, t *target) error {
	if err := r.removeUnowned(ctx, t.name, t.unowned); err != nil {
		return err
	}
	if t.release != nil {
		if err := r.Releases.Uninstall(ctx, t.namespace, t.name); err != nil {
			return fmt.Errorf("remove the release of %s: %w", t.name, err)
		}
		if err := r.awaitTermination(ctx, t); err != nil {
			return err
		}
	}
	return r.dropSecret(ctx, t.namespace, (&catalogue.Service{Name: t.name}).CredentialsName())
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
