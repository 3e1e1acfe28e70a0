package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

// Selection is the set of services that a command processes.
type Selection struct {
	// Services lists the selected services in start order.
	Services []*Service
	// Added lists the names of the services that were selected only because other services require them.
	Added []string
}

// Select returns the named services and their prerequisites. Without names, Select returns all enabled services. Services in except are excluded.
// Select returns an error if a selected service requires an excluded service.
func (c *Catalogue) Select(names, except []string) (Selection, error) {
	names, except = c.resolve(names), c.resolve(except)
	if err := c.checkNames(names, except); err != nil {
		return Selection{}, err
	}
	asked := map[string]bool{}
	for _, name := range names {
		if !c.services[name].Enabled {
			return Selection{}, hint.Errorf(fmt.Sprintf("set enabled: true in the section %s of services-configuration.yaml, and push it", name), "%s is disabled", name)
		}
		asked[name] = true
	}
	if len(names) == 0 {
		for name, s := range c.services {
			asked[name] = s.Enabled
		}
	}
	drop(asked, except)
	chosen := closure(asked, c.prerequisites)
	if err := c.checkExcept(chosen, except); err != nil {
		return Selection{}, err
	}
	return c.selection(chosen, asked)
}

func (c *Catalogue) checkNames(lists ...[]string) error {
	var unknown []string
	for _, name := range slices.Concat(lists...) {
		if c.services[name] == nil {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return UnknownError(c.names(), unknown...)
}

// UnknownError returns the error for unknown services. The remedy suggests a similar name.
func UnknownError(known []string, names ...string) error {
	return hint.Errorf(nearestService(names[0], known), "there is no service %s", strings.Join(names, ", "))
}

// nearestService returns a remedy. The remedy suggests a similar name, or lists all services.
func nearestService(name string, known []string) string {
	if near := strictyaml.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "the services are " + strings.Join(known, ", ")
}

func drop(asked map[string]bool, except []string) {
	for _, name := range except {
		delete(asked, name)
	}
	maps.DeleteFunc(asked, func(_ string, yes bool) bool { return !yes })
}

// checkExcept returns an error if a selected service requires an excluded service. The remedy lists the services that must also be excluded.
func (c *Catalogue) checkExcept(chosen map[string]bool, except []string) error {
	for _, name := range except {
		if !chosen[name] {
			continue
		}
		dependents := closure(map[string]bool{name: true}, func(name string) []string {
			return slices.DeleteFunc(c.dependents(name), func(other string) bool { return !chosen[other] })
		})
		maps.DeleteFunc(dependents, func(other string, _ bool) bool { return slices.Contains(except, other) })
		needing := strings.Join(sorted(maps.Keys(dependents)), ", ")
		return hint.Errorf(fmt.Sprintf("exclude %s as well, or also start %s", needing, name), "%s can't be excluded: required by %s", name, needing)
	}
	return nil
}

// prerequisites returns the required services that are enabled and in the catalogue. A disabled prerequisite is ignored, because an administrator who
// disables a service provides a replacement.
func (c *Catalogue) prerequisites(name string) []string {
	var out []string
	for _, required := range c.services[name].Requires {
		if s := c.services[required]; s != nil && s.Enabled {
			out = append(out, required)
		}
	}
	return out
}

func (c *Catalogue) dependents(name string) []string {
	var out []string
	for _, other := range c.names() {
		if slices.Contains(c.services[other].Requires, name) {
			out = append(out, other)
		}
	}
	return out
}

// closure returns the given names and all names that are reachable through next.
func closure(names map[string]bool, next func(string) []string) map[string]bool {
	out := map[string]bool{}
	queue := sorted(maps.Keys(names))
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if out[name] {
			continue
		}
		out[name] = true
		queue = append(queue, next(name)...)
	}
	return out
}

func (c *Catalogue) selection(chosen, asked map[string]bool) (Selection, error) {
	order, cycle := c.order(chosen)
	if len(cycle) > 0 {
		return Selection{}, hint.Errorf("remove one of the prerequisites from requires", "services wait for each other: %s", strings.Join(cycle, " -> "))
	}
	var out Selection
	for _, name := range order {
		out.Services = append(out.Services, c.services[name])
		if !asked[name] {
			out.Added = append(out.Added, name)
		}
	}
	return out, nil
}

// order sorts services by name, and puts required services before the services that require them. If services require each other in a cycle, order
// returns a cycle, such as a, b, a.
func (c *Catalogue) order(chosen map[string]bool) (order, cycle []string) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(name string) bool
	visit = func(name string) bool {
		switch state[name] {
		case done:
			return true
		case visiting:
			cycle = append(slices.Clone(path[slices.Index(path, name):]), name)
			return false
		}
		state[name] = visiting
		path = append(path, name)
		for _, required := range slices.Sorted(slices.Values(c.services[name].Requires)) {
			if chosen[required] && !visit(required) {
				return false
			}
		}
		path = path[:len(path)-1]
		state[name] = done
		order = append(order, name)
		return true
	}
	for _, name := range sorted(maps.Keys(chosen)) {
		if !visit(name) {
			return nil, cycle
		}
	}
	return order, nil
}

// checkRequires reports prerequisites that don't exist, that are disabled, or that form a cycle.
func (b *builder) checkRequires() {
	all := map[string]bool{}
	for _, name := range sorted(maps.Keys(b.services)) {
		all[name] = true
		s := b.services[name]
		for _, required := range s.Requires {
			b.checkPrerequisite(s, required)
		}
	}
	c := &Catalogue{cfg: b.cfg, services: b.services}
	if _, cycle := c.order(all); len(cycle) > 0 {
		b.fail(at(cycle[0], keyRequires), "services/requires", "services wait for each other: "+strings.Join(cycle, " -> "), "remove one of the prerequisites from requires")
	}
}

func (b *builder) checkPrerequisite(s *Service, required string) {
	other := b.services[required]
	switch {
	case other == nil:
		b.fail(at(s.Name, keyRequires), "services/requires", fmt.Sprintf("%s requires %q, but there is no such service", s.Name, required), nearestService(required, sorted(maps.Keys(b.services))))
	case s.Enabled && !other.Enabled:
		b.warn(at(required, keyEnabled), "services/requires", fmt.Sprintf("%s requires %s, which is disabled; it starts without it", s.Name, required),
			fmt.Sprintf("enable %s, unless the cluster has a replacement for it", required))
	}
}
