package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
)

const (
	phasePreflight = preflight.Section
	// checkUnchecked is the check of a finding about a host that could not be checked.
	checkUnchecked = "connect"
)

//go:embed scripts/repair.sh
var repairScript string

// preflight checks all hosts before anything is changed on any of them. One error anywhere stops the run.
// With --fix it first makes the safe repairs, and checks again; it returns the last world that it surveyed.
func (r *run) preflight(ctx context.Context, w *world, nodes []*Node) (*world, error) {
	start := r.opts.Clock()
	findings := r.check(w, nodes)
	fixed := map[string]int{}
	if r.mayFix && !r.opts.DryRun {
		var err error
		if fixed, err = r.fix(ctx, nodes, findings); err != nil {
			return nil, err
		}
		if len(fixed) > 0 {
			if w, err = r.survey(ctx, r.reached(nodes)); err != nil {
				return nil, err
			}
			findings = r.check(w, nodes)
		}
	}
	failed := map[string]bool{}
	for _, f := range findings {
		if f.Severity == preflight.SeverityError {
			failed[f.Host] = true
			continue
		}
		if !r.returnsFindings {
			r.emit(Event{Kind: EventWarning, Host: f.Host, Phase: phasePreflight, Message: f.Text(), Hint: f.Remedy})
		}
	}
	for _, n := range nodes {
		if w.facts[n.Hostname] != nil && !r.isAside(n) && !failed[n.Hostname] {
			r.emit(Event{Kind: EventPhaseDone, Host: n.Hostname, Phase: phasePreflight,
				Changes: fixed[n.Hostname], Elapsed: r.opts.Clock().Sub(start)})
		}
	}
	if len(failed) > 0 {
		return nil, r.refuse(findings)
	}
	return w, nil
}

// refuse ends a run before it has changed anything: each error becomes an event, and a
// *PreflightError holds all findings.
func (r *run) refuse(findings []preflight.Finding) error {
	findings = slices.Clone(findings)
	r.want.checked(nil).Sort(findings)
	var errs []preflight.Finding
	for _, f := range findings {
		if f.Severity != preflight.SeverityError {
			continue
		}
		errs = append(errs, f)
		r.emit(Event{Kind: EventPhaseFailed, Host: f.Host, Phase: phasePreflight, Error: f.Text(), Hint: f.Remedy})
	}
	return hint.Wrap(&PreflightError{Findings: findings, Repaired: r.repaired()}, remedyOf(errs))
}

// repaired reports whether this run's --fix has changed a host.
func (r *run) repaired() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.changes) > 0
}

// remedyOf returns the remedy for a run that was refused: the finding's own if it is the only one.
func remedyOf(errs []preflight.Finding) string {
	if len(errs) == 1 {
		return errs[0].Remedy
	}
	fixable := 0
	for _, f := range errs {
		if f.Fixable {
			fixable++
		}
	}
	if fixable > 0 {
		return fmt.Sprintf("each failed check above names its remedy; --fix makes %d of these %d repairs", fixable, len(errs))
	}
	return "each failed check above names its remedy; afterwards run the same command again"
}

// fix makes the repairs that the findings offer, one script per host, and returns how many repairs
// each host got. If a repair fails, its finding remains.
func (r *run) fix(ctx context.Context, nodes []*Node, findings []preflight.Finding) (map[string]int, error) {
	todo := map[string][]preflight.Finding{}
	for _, f := range findings {
		if f.Fixable && f.Fix != "" {
			todo[f.Host] = append(todo[f.Host], f)
		}
	}
	var hosts []*Node
	for _, n := range nodes {
		if len(todo[n.Hostname]) > 0 {
			hosts = append(hosts, n)
		}
	}
	errs := r.each(ctx, hosts, func(ctx context.Context, n *Node) error {
		return r.fixHost(ctx, n, todo[n.Hostname])
	})
	fixed := map[string]int{}
	for _, n := range hosts {
		err := errs[n]
		switch {
		case err == nil:
			fixed[n.Hostname] = len(todo[n.Hostname])
		case isCancel(ctx, err):
			return nil, context.Canceled
		default:
			r.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phasePreflight,
				Message: fmt.Sprintf("the repair failed: %v", err), Hint: hint.Of(err)})
		}
	}
	return fixed, nil
}

func (r *run) fixHost(ctx context.Context, n *Node, fs []preflight.Finding) error {
	var b strings.Builder
	b.WriteString(repairScript)
	b.WriteString(r.spec.aptProxy())
	for _, f := range fs {
		fmt.Fprintf(&b, "%s\nnote change %s\n", f.Fix, shell.Quote("repair "+f.Check))
	}
	if _, err := r.script(ctx, n, phasePreflight, "fix", b.String()); err != nil {
		return err
	}
	for _, f := range fs {
		c := Change{Host: n.Hostname, Phase: phasePreflight, Action: "run", Target: "repair " + f.Check, Detail: f.Remedy}
		r.emit(Event{Kind: EventChanged, Host: n.Hostname, Phase: phasePreflight, Change: &c})
	}
	r.mu.Lock()
	r.changes[n.Hostname] += len(fs)
	r.mu.Unlock()
	return nil
}
