package progress

import (
	"fmt"
	"io"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// namesShown limits the number of hosts that are listed for a plan that they share. -o json lists all hosts.
const namesShown = 8

// WritePlan prints changes for a person, by host and phase. It marks additions with +, changes with ~ and removals with -, and prints diffs
// below the changes. Changes that several hosts need are printed only once, so that a plan for many machines stays readable.
func WritePlan(w io.Writer, changes []engine.Change) error {
	out := &errWriter{w: w}
	if len(changes) == 0 {
		fmt.Fprintln(out, "No changes: the hosts match the configuration.")
		return out.err
	}
	hosts, byHost := groupBy(changes, func(c engine.Change) string { return c.Host })
	seen := map[string]int{}
	var groups [][]string // hosts with equal plans
	for _, h := range hosts {
		key := planKey(byHost[h])
		i, ok := seen[key]
		if !ok {
			i, seen[key] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}
	for _, g := range groups {
		fmt.Fprintln(out, planTitle(g))
		writeHostPlan(out, byHost[g[0]])
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%s on %s: %s\n", plural.Of(len(changes), "change"), plural.Of(len(hosts), "host"), tally(changes))
	return out.err
}

func planTitle(hosts []string) string {
	shown := hosts[:min(len(hosts), namesShown)]
	title := line(strings.Join(shown, ", "))
	if rest := len(hosts) - len(shown); rest > 0 {
		title += fmt.Sprintf(" and %d more", rest)
	}
	if len(hosts) > 1 {
		title += fmt.Sprintf(" (%d hosts, the same on each)", len(hosts))
	}
	return title
}

func writeHostPlan(w io.Writer, changes []engine.Change) {
	phases, byPhase := groupBy(changes, func(c engine.Change) string { return c.Phase })
	for _, p := range phases {
		fmt.Fprintf(w, "  %s\n", line(p))
		for i := range byPhase[p] {
			c := &byPhase[p][i]
			writeChange(w, "    ", describe(c), c.Diff)
		}
	}
}

// tally counts the changes by mark, for example "+30 ~10 -1".
func tally(changes []engine.Change) string {
	n := map[string]int{}
	for _, c := range changes {
		n[mark(c.Action)]++
	}
	var parts []string
	for _, m := range []string{"+", "~", "-"} {
		if n[m] > 0 {
			parts = append(parts, fmt.Sprintf("%s%d", m, n[m]))
		}
	}
	return strings.Join(parts, " ")
}

// planKey returns a text that is equal for two hosts if they need the same changes in the same order.
func planKey(changes []engine.Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%q %q %q %q %q\n", c.Phase, c.Action, c.Target, c.Detail, c.Diff)
	}
	return b.String()
}

// groupBy groups changes by a key. The keys are returned in the order of their first change.
func groupBy(changes []engine.Change, key func(engine.Change) string) ([]string, map[string][]engine.Change) {
	var order []string
	groups := map[string][]engine.Change{}
	for _, c := range changes {
		k := key(c)
		if _, ok := groups[k]; !ok {
			order = append(order, k)
		}
		groups[k] = append(groups[k], c)
	}
	return order, groups
}

// WriteServicePlan prints the planned changes of a dry run, by service, with diffs below the changes.
func WriteServicePlan(w io.Writer, events []services.Event) error {
	out := &errWriter{w: w}
	total, touched := 0, 0
	for _, e := range events {
		if e.Kind != services.EventPlanned || e.Plan == nil || len(e.Plan.Changes) == 0 && e.Plan.Action != release.Upgraded {
			continue
		}
		title := line(e.Service)
		if title == "" {
			title = "the cluster"
		} else {
			touched++
		}
		fmt.Fprintln(out, title)
		for _, c := range e.Plan.Changes {
			writeChange(out, "  ", mark(c.Action)+" "+line(c.Action)+" "+line(c.Object), c.Diff)
		}
		for _, object := range e.Plan.Kept {
			fmt.Fprintf(out, "  = keep %s, which the chart no longer has\n", line(object))
		}
		for _, what := range e.Plan.Loses {
			fmt.Fprintf(out, "  ! objects lose their data in %s\n", line(what))
		}
		if len(e.Plan.Changes) == 0 {
			fmt.Fprintln(out, "  a new revision, in which no object changes")
		}
		fmt.Fprintln(out)
		total += len(e.Plan.Changes)
	}
	if total+touched == 0 {
		fmt.Fprintln(out, "No changes: the services match the configuration.")
		return out.err
	}
	fmt.Fprintf(out, "%s, %s\n", plural.Of(total, "change"), plural.Of(touched, "service"))
	return out.err
}

// writeChange prints a change, with its diff on the lines below.
func writeChange(w io.Writer, indent, text, diff string) {
	fmt.Fprintf(w, "%s%s\n", indent, text)
	for _, l := range lines(diff) {
		fmt.Fprintf(w, "%s    %s\n", indent, l)
	}
}
