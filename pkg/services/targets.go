package services

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/facts"
)

// targets returns the services to stop or delete. Each service comes after all services that require it.
func (r *run) targets(ctx context.Context) ([]*target, error) {
	all, err := r.known(ctx)
	if err != nil {
		return nil, err
	}
	chosen, err := r.pick(all)
	if err != nil {
		return nil, err
	}
	r.warnOfDevices(ctx, chosen)
	return stopOrder(chosen), nil
}

// known returns every service in the configuration and in the inventory, with its release. For a delete, known also returns services that only left
// data. Without a configuration, known returns the services of the inventory.
func (r *run) known(ctx context.Context) (map[string]*target, error) {
	all := map[string]*target{}
	left, stopped, err := readStartedAndStopped(ctx, r.Client)
	if err != nil {
		return nil, err
	}
	for name, e := range left {
		all[name] = &target{name: name, namespace: e.Namespace, requires: e.Requires, noted: true}
	}
	var kept map[string]string
	if r.verb == verbDelete {
		if kept, err = r.dataLeft(ctx); err != nil {
			return nil, err
		}
	}
	d, err := r.LoadPlaced(ctx)
	switch {
	case err == nil:
		r.use(d)
		for _, s := range d.Catalogue.Services() {
			if all[s.Name] == nil { // started services are in the inventory
				all[s.Name] = &target{name: s.Name, namespace: s.Namespace, requires: s.Requires}
			}
		}
	case len(left)+len(kept) == 0:
		return nil, err
	default:
		// Services can be stopped even if the configuration is invalid or missing.
		r.warn("the configuration can't be used: "+firstLine(err), "started services are stopped anyway")
	}
	for name, namespace := range kept {
		if all[name] == nil {
			all[name] = &target{name: name, namespace: namespace}
		}
	}
	if r.verb == verbDelete { // a deleted service doesn't count as stopped
		for name := range stopped {
			if t := all[name]; t != nil {
				t.noted = true
			}
		}
	}
	return all, r.findReleases(ctx, all)
}

// findReleases sets the releases of the services, with one request per namespace. findReleases also sets the pods that earlier releases left.
func (r *run) findReleases(ctx context.Context, all map[string]*target) error {
	spaces := sets.New[string]()
	for _, t := range all {
		spaces.Insert(t.namespace)
	}
	for _, ns := range sets.List(spaces) {
		list, err := r.Releases.List(ctx, ns)
		if err != nil {
			return fmt.Errorf("list the releases: %w", err)
		}
		for i := range list {
			if t := all[list[i].Name]; t != nil && t.namespace == ns {
				t.release = &list[i]
			}
		}
	}
	left, err := facts.Unowned(ctx, r.Client, sets.List(spaces))
	if err != nil {
		return err
	}
	for name, t := range all {
		t.unowned = left[name]
	}
	return nil
}

// pick selects services by the names in the options. If a running service requires a chosen service, the running service must also be chosen. With
// WithDependents, pick adds such services.
func (r *run) pick(all map[string]*target) ([]*target, error) {
	known := func(name string) bool { return all[name] != nil }
	r.o.Names, r.o.Except = catalogue.ResolveAll(r.o.Names, known), catalogue.ResolveAll(r.o.Except, known)
	for _, name := range slices.Concat(r.o.Names, r.o.Except) {
		if all[name] == nil {
			return nil, hint.Errorf("there are: "+strings.Join(slices.Sorted(maps.Keys(all)), ", "), "there is no service %q", name)
		}
	}
	chosen := map[string]*target{}
	for name, t := range all {
		if (len(r.o.Names) == 0 || slices.Contains(r.o.Names, name)) && !slices.Contains(r.o.Except, name) {
			chosen[name] = t
		}
	}
	for {
		on, needed := needing(all, chosen)
		if on == nil {
			break
		}
		if slices.Contains(r.o.Except, on.name) || !r.o.WithDependents {
			return nil, r.neededError(all, chosen, needed)
		}
		chosen[on.name] = on
		r.emit(Event{Kind: EventAdded, Service: on.name, Message: "added: it requires " + needed})
	}
	return slices.Collect(maps.Values(chosen)), nil
}

func (r *run) neededError(all, chosen map[string]*target, needed string) error {
	var on []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if t := all[name]; t.release != nil && chosen[name] == nil && slices.Contains(t.requires, needed) {
			on = append(on, name)
		}
	}
	names, verb := strings.Join(on, ", "), " run and require "
	if len(on) == 1 {
		verb = " runs and requires "
	}
	remedy := fmt.Sprintf("add --with-dependents to %s %s too", r.verb, names)
	switch {
	case slices.ContainsFunc(on, func(name string) bool { return slices.Contains(r.o.Except, name) }):
		remedy = fmt.Sprintf("exclude %s as well: -x %s", needed, needed)
	case !slices.Contains(r.o.Names, needed):
		remedy += fmt.Sprintf(", or exclude %s with -x %s", needed, needed)
	}
	return hint.Errorf(remedy, "%s%s%s", names, verb, needed)
}

// needing returns a running service that wasn't chosen and requires a chosen running service. The second result is the name of the required service.
func needing(all, chosen map[string]*target) (*target, string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := all[name]
		if t.release == nil || chosen[name] != nil {
			continue
		}
		for _, need := range t.requires {
			if c := chosen[need]; c != nil && c.release != nil {
				return t, need
			}
		}
	}
	return nil, ""
}

// stopOrder sorts targets. Each target comes after all targets that require it. Other targets are in reverse order of their names.
func stopOrder(targets []*target) []*target {
	byName := map[string]*target{}
	for _, t := range targets {
		byName[t.name] = t
	}
	var out []*target
	seen := map[string]bool{}
	var visit func(t *target)
	visit = func(t *target) {
		if seen[t.name] {
			return
		}
		seen[t.name] = true
		for _, need := range slices.Sorted(slices.Values(t.requires)) {
			if n := byName[need]; n != nil {
				visit(n)
			}
		}
		out = append(out, t)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		visit(byName[name])
	}
	slices.Reverse(out)
	return out
}
