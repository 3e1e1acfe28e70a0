package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/hint"
)

// Fix repairs the problem of a finding. A repair must not be able to make the problem worse. Exactly one of the fields settings, script and do is
// set.
type Fix struct {
	// A description of the repair for a person, such as "start the kubelet on gpu-3".
	What string `json:"what"`

	host     string
	settings []engine.Change
	script   string
	do       func(context.Context, *Cluster) error
}

// Fixed is the result of a repair.
type Fixed struct {
	What  string `json:"what"`
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// Fixes returns the repairs that a report offers, without duplicates.
func Fixes(r *Report) (fixes []*Fix) {
	for _, one := range r.Results {
		for _, f := range one.Findings {
			if f.Fix == nil {
				continue
			}
			if !slices.ContainsFunc(fixes, func(x *Fix) bool { return x.What == f.Fix.What }) {
				fixes = append(fixes, f.Fix)
			}
		}
	}
	return fixes
}

// Again returns the checks to run after repairs. These are all checks that are not ok, because the repaired problem may also have caused their
// findings.
func Again(checks []*Check, r *Report) []*Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c *Check) bool {
		return slices.ContainsFunc(r.Results, func(one Result) bool { return one.ID == c.ID && one.Verdict == OK })
	})
}

// Apply executes repairs one after the other. It repairs no machine while another run of paictl works on the machines.
func Apply(ctx context.Context, c *Cluster, o Options, fixes []*Fix) []Fixed {
	machines := o.Machines
	machines.Sink, machines.Clock, machines.DryRun = silent{}, c.Now, false
	machines.StepTimeout = lookLimit
	var out []Fixed
	for _, f := range fixes {
		var err error
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case f.do != nil:
			err = c.Kube.Explain(f.do(ctx, c))
		case c.Inspection != nil && c.Inspection.Status.Lock != nil:
			err = hint.Errorf("run it again when the other run has ended", "%s works on the machines", c.Inspection.Status.Lock.Owner)
		case len(f.settings) > 0:
			err = cluster.Repair(ctx, c.Spec, machines, map[string][]engine.Change{f.host: f.settings})[f.host]
		default:
			err = cluster.RunOn(ctx, c.Spec, machines, "doctor", map[string]string{f.host: f.script})[f.host]
		}
		one := Fixed{What: f.What}
		if err != nil {
			one.Error, one.Hint = fmt.Sprint(err), hint.Of(err)
		}
		out = append(out, one)
	}
	return out
}

// Merge replaces the results of repeated checks and adds the repairs to the report.
func (r *Report) Merge(again *Report, fixes []Fixed) {
	for _, one := range again.Results {
		if at := slices.IndexFunc(r.Results, func(x Result) bool { return x.ID == one.ID }); at >= 0 {
			r.Results[at] = one
		}
	}
	r.Fixes = append(r.Fixes, fixes...)
	r.count()
}
