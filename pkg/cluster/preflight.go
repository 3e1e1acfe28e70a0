package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
)

const (
	phasePreflight = preflight.Section
	// checkUnchecked is the name of the check in a finding about a host that could not be reached.
	checkUnchecked = "connect"
)

// checkFirst checks all hosts before any change. If it finds an error, the run ends. With --fix, it first executes the safe repairs and then checks
// again. It returns the result of its last survey.
func checkFirst(ctx context.Context, r *engine.Run, w *engine.World, nodes []*engine.Node) (*engine.World, error) {
	start := r.Opts.Clock()
	findings := phases.Check(r, w, nodes)
	fixed := map[string]int{}
	if r.MayFix && !r.Opts.DryRun {
		var err error
		if fixed, err = fix(ctx, r, nodes, findings); err != nil {
			return nil, err
		}
		if len(fixed) > 0 {
			if w, err = survey(ctx, r, r.Reached(nodes)); err != nil {
				return nil, err
			}
			findings = phases.Check(r, w, nodes)
		}
	}
	failed := map[string]bool{}
	for _, f := range findings {
		if f.Severity == preflight.SeverityError {
			failed[f.Host] = true
			continue
		}
		if !r.ReturnsFindings {
			r.Emit(engine.Event{Kind: engine.EventWarning, Host: f.Host, Phase: phasePreflight, Message: f.Text(), Hint: f.Remedy})
		}
	}
	for _, n := range nodes {
		if w.Facts[n.Hostname] != nil && !r.IsAside(n) && !failed[n.Hostname] {
			r.Emit(engine.Event{Kind: engine.EventPhaseDone, Host: n.Hostname, Phase: phasePreflight,
				Changes: fixed[n.Hostname], Elapsed: r.Opts.Clock().Sub(start)})
		}
	}
	if len(failed) > 0 {
		return nil, refuse(r, findings)
	}
	return w, nil
}

// refuse emits an event for each error and returns a *PreflightError that contains all findings.
func refuse(r *engine.Run, findings []preflight.Finding) error {
	findings = slices.Clone(findings)
	phases.CheckedCluster(r.Want, nil).Sort(findings)
	var errs []preflight.Finding
	for _, f := range findings {
		if f.Severity != preflight.SeverityError {
			continue
		}
		errs = append(errs, f)
		r.Emit(engine.Event{Kind: engine.EventPhaseFailed, Host: f.Host, Phase: phasePreflight, Error: f.Text(), Hint: f.Remedy})
	}
	return hint.Wrap(&engine.PreflightError{Findings: findings, Repaired: repaired(r)}, remedyOf(errs))
}

func repaired(r *engine.Run) bool {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return len(r.Changes) > 0
}

// remedyOf returns the remedy of the error if the list contains only one error, otherwise a general remedy.
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

// fix executes the repairs in findings with one script per host. It returns the number of repairs by host. If a repair fails, the finding remains.
func fix(ctx context.Context, r *engine.Run, nodes []*engine.Node, findings []preflight.Finding) (map[string]int, error) {
	todo := map[string][]preflight.Finding{}
	for _, f := range findings {
		if f.Fixable && f.Fix != "" {
			todo[f.Host] = append(todo[f.Host], f)
		}
	}
	var hosts []*engine.Node
	for _, n := range nodes {
		if len(todo[n.Hostname]) > 0 {
			hosts = append(hosts, n)
		}
	}
	errs := r.Each(ctx, hosts, func(ctx context.Context, n *engine.Node) error {
		return fixHost(ctx, r, n, todo[n.Hostname])
	})
	fixed := map[string]int{}
	for _, n := range hosts {
		err := errs[n]
		switch {
		case err == nil:
			fixed[n.Hostname] = len(todo[n.Hostname])
		case engine.IsCancel(ctx, err):
			return nil, context.Canceled
		default:
			r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phasePreflight,
				Message: fmt.Sprintf("the repair failed: %v", err), Hint: hint.Of(err)})
		}
	}
	return fixed, nil
}

func fixHost(ctx context.Context, r *engine.Run, n *engine.Node, fs []preflight.Finding) error {
	var b strings.Builder
	b.WriteString(engine.RepairScript)
	b.WriteString(phases.AptProxy(r.Spec))
	for _, f := range fs {
		fmt.Fprintf(&b, "%s\nnote change %s\n", f.Fix, shell.Quote("repair "+f.Check))
	}
	if _, err := r.Script(ctx, n, phasePreflight, "fix", b.String()); err != nil {
		return err
	}
	for _, f := range fs {
		c := engine.Change{Host: n.Hostname, Phase: phasePreflight, Action: "run", Target: "repair " + f.Check, Detail: f.Remedy}
		r.Emit(engine.Event{Kind: engine.EventChanged, Host: n.Hostname, Phase: phasePreflight, Change: &c})
	}
	r.Mu.Lock()
	r.Changes[n.Hostname] += len(fs)
	r.Mu.Unlock()
	return nil
}
