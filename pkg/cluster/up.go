package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// UpOptions configure Up.
type UpOptions struct {
	// Phases limits the run to the named phases; empty means all phases.
	Phases []string
	// Fix allows preflight to execute the safe repairs.
	Fix bool
}

// Up changes the machines to match the configuration. It returns the changes that it made, or would make in a dry run. It skips hosts that fail and
// names them in a *PartialError.
func Up(ctx context.Context, s *engine.Spec, o engine.Options, up UpOptions) ([]engine.Change, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	r.Only, r.MayFix = up.Phases, up.Fix
	return converge(ctx, r, "cluster up", "", func(_ context.Context, w *engine.World, _ []*engine.Node) (*engine.World, []engine.Change, error) {
		return w, nil, cmp.Or(refuseRestore(r, w), refuseRecovery(w))
	})
}

// converge runs the phases of "cluster up" on all machines. It first calls begin, which checks the initial state and may change it. The argument
// first is the name of the phase for the changes that begin makes, or "" if begin makes no changes.
func converge(ctx context.Context, r *engine.Run, command, first string, begin func(context.Context, *engine.World, []*engine.Node) (*engine.World, []engine.Change, error)) ([]engine.Change, error) {
	o := r.Opts
	nodes, err := scope(r)
	if err != nil {
		return nil, err
	}
	r.Started = o.Clock()
	names := phases.Names()
	if first != "" {
		names = slices.Insert(names, 1, first)
	}
	r.Emit(engine.Event{Kind: engine.EventRunStarted, Message: command, Hosts: hostnames(nodes), Phases: names})
	if err := connect(ctx, r, r.Reached(nodes)); err != nil {
		return nil, err
	}
	locked, unlock, err := r.Lock(ctx)
	if errors.Is(err, ssh.ErrSudo) {
		// paictl can't become root on this host. The survey of the other machines adds their findings to the report.
		if _, err := survey(ctx, r, r.Reached(nodes)); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	ctx = locked
	defer unlock()
	defer r.ClosePeers() // before the next run may begin
	w, err := survey(ctx, r, r.Reached(nodes))
	if err != nil {
		return nil, err
	}
	w, begun, err := begin(ctx, w, nodes)
	if err != nil {
		return begun, err
	}
	if n := rotating(w); n != nil {
		return begun, errRotating(n)
	}
	if w, err = checkFirst(ctx, r, w, nodes); err != nil {
		return begun, err
	}
	if err := phases.RefuseMove(ctx, r, w); err != nil {
		return begun, err
	}
	p, err := r.Plan(w, r.Reached(nodes), chosen(r))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(nodes, r.Leader) && len(p.Changes([]*engine.Node{r.Leader})) > 0 {
		nodes = append([]*engine.Node{r.Leader}, nodes...) // it sets the labels of the nodes under --limit
	}
	warnNotReady(r, p, nodes)
	changes := append([]engine.Change{}, begun...) // not nil even if there are no changes; nil means that the run didn't get as far as a plan
	changes = append(changes, p.Changes(nodes)...)
	if !o.DryRun {
		if err := r.ApplyAll(ctx, p, nodes); err != nil {
			return changes, err
		}
		r.WarnAboutCopy(ctx)
	} else {
		if err := r.Share(p, nodes); err != nil {
			return changes, err
		}
		r.EmitPlanned(changes)
	}
	return changes, r.Summary(command, nodes, changes)
}

// Preflight runs only the checks, on all hosts. It changes nothing unless fix is set, which allows the safe repairs. It returns a finding for each
// host that could not be checked, and also names these hosts in a *PartialError.
func Preflight(ctx context.Context, s *engine.Spec, o engine.Options, fix bool) ([]preflight.Finding, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	r.ReturnsFindings, r.MayFix = true, fix
	nodes, err := scope(r)
	if err != nil {
		return nil, err
	}
	r.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "cluster preflight", Hosts: hostnames(nodes), Phases: []string{"preflight"}})
	if err := connect(ctx, r, r.Reached(nodes)); err != nil {
		return nil, err
	}
	w, err := survey(ctx, r, r.Reached(nodes))
	if err != nil {
		return nil, err
	}
	if w, err = checkFirst(ctx, r, w, nodes); err != nil {
		if pf, ok := errors.AsType[*engine.PreflightError](err); ok {
			return append(pf.Findings, unchecked(r, nodes)...), err
		}
		return nil, err
	}
	return append(phases.Check(r, w, nodes), unchecked(r, nodes)...), r.Summary("cluster preflight", nodes, nil)
}

// unchecked returns findings about hosts that the run has skipped.
func unchecked(r *engine.Run, nodes []*engine.Node) []preflight.Finding {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	var out []preflight.Finding
	for _, n := range nodes {
		if f, ok := r.Failed[n.Hostname]; ok {
			out = append(out, preflight.Finding{Host: f.Host, Check: checkUnchecked, Severity: preflight.SeverityError, Message: "not checked: " + f.Error, Remedy: f.Hint})
		}
	}
	return out
}

// scope returns the machines that --limit selects. It returns an error for unknown names in --phases.
func scope(r *engine.Run) ([]*engine.Node, error) {
	nodes, err := r.Selected()
	if err != nil {
		return nil, err
	}
	return nodes, phases.CheckNames(r.Only)
}

func chosen(r *engine.Run) []engine.Phase {
	return slices.DeleteFunc(phases.All(r.Want), func(p engine.Phase) bool {
		return len(r.Only) > 0 && !slices.Contains(r.Only, p.Name())
	})
}

// connect dials all hosts. It skips machines that don't respond, but returns an error if no machine of the control plane responds. It also skips a
// worker that rejects the login while most other machines accept it, because one changed key among a thousand must not stop the run. It returns an
// error if many machines or a master reject the login.
func connect(ctx context.Context, r *engine.Run, nodes []*engine.Node) error {
	var findings []preflight.Finding
	errs := r.Each(ctx, nodes, r.Dial)
	noMaster := !slices.ContainsFunc(nodes, func(n *engine.Node) bool { return n.ControlPlane && errs[n] == nil })
	for n, err := range errs {
		if engine.IsCancel(ctx, err) {
			return context.Canceled
		}
		unreachable := errors.Is(err, ssh.ErrUnreachable) && (!n.ControlPlane || !noMaster)
		if unreachable || !n.ControlPlane && refusedAlone(err, len(errs), len(nodes)) {
			r.SetAside(n, "connect", err)
			continue
		}
		findings = append(findings, preflight.Finding{
			Host: n.Hostname, Check: "connect", Severity: preflight.SeverityError, Message: err.Error(), Remedy: hint.Of(err),
		})
	}
	if len(findings) > 0 {
		return refuse(r, findings)
	}
	return nil
}

// refusedAlone reports whether a machine has rejected the login or presented an unexpected host key, while most other machines haven't.
func refusedAlone(err error, failed, of int) bool {
	return 2*failed < of && (errors.Is(err, ssh.ErrAuth) || errors.Is(err, ssh.ErrHostKey))
}

// survey reads all facts of each host with one script.
func survey(ctx context.Context, r *engine.Run, nodes []*engine.Node) (*engine.World, error) {
	w := &engine.World{Want: r.Want.Undecided(), Facts: map[string]*engine.Facts{}, Limit: r.Limit(), Outside: map[string]bool{},
		Whole: len(r.Opts.Limit)+len(r.Only) == 0, MayFound: len(r.Only) == 0 || slices.Contains(r.Only, engine.PhaseInit)}
	var mu sync.Mutex
	var findings []preflight.Finding
	errs := r.Each(ctx, r.Working(nodes), func(ctx context.Context, n *engine.Node) error {
		r.Emit(engine.Event{Kind: engine.EventPhaseStarted, Host: n.Hostname, Phase: "preflight"})
		f, err := ask(ctx, r, n)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		w.Facts[n.Hostname] = f
		return nil
	})
	for n, err := range errs {
		switch {
		case engine.IsCancel(ctx, err):
			return nil, context.Canceled
		case errors.Is(err, ssh.ErrClosed):
			r.SetAside(n, "preflight", err)
		default:
			findings = append(findings, preflight.Finding{Host: n.Hostname, Check: "detect", Severity: preflight.SeverityError, Message: err.Error(), Remedy: hint.Of(err)})
		}
	}
	if len(findings) > 0 {
		return nil, refuse(r, findings)
	}
	w.Elect()
	defer decide(r, w)
	if w.Founding() && w.MayFound && w.Concerns(w.Leader) {
		if err := r.CheckBeyondLimit(ctx, w); err != nil {
			return nil, context.Cause(ctx)
		}
		another, err := anotherCluster(ctx, r, w)
		if err != nil {
			return nil, err
		}
		w.Findings = append(w.AgainstFounding(), another...)
	}
	if w.EtcdMatters() {
		w.Etcd, _ = r.ReadEtcd(ctx, w.Leader) // without a response, etcd's state stays unknown
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		w.Findings = slices.Concat(w.Findings, w.WithoutQuorum(), w.Counted())
	}
	apart, err := w.Apart()
	if err != nil {
		return nil, err
	}
	w.Findings = slices.Concat(w.Findings, apart, phases.AddressConflicts(w))
	return w, nil
}

func decide(r *engine.Run, w *engine.World) { r.Leader, r.Want = w.Leader, w.Want }

func ask(ctx context.Context, r *engine.Run, n *engine.Node) (*engine.Facts, error) {
	sections := []engine.Section{
		{Name: "facts", Body: layout.DiscoverScript()},
		{Name: phasePreflight, Body: preflight.Probe(phases.CheckedCluster(r.Want, nil), phases.CheckedNode(n))},
		{Name: "journal", Body: "d_journal"},
	}
	for _, p := range phases.All(r.Want) {
		if !p.Applies(n) {
			continue
		}
		body, err := p.Detect(n)
		if err != nil {
			return nil, err
		}
		sections = append(sections, engine.Section{Name: p.Name(), Body: body})
	}
	f := &engine.Facts{QueriedAt: r.Opts.Clock()}
	res, err := r.Exec(ctx, n, ssh.Script{Name: "detect", Timeout: r.Opts.StepTimeout, Body: engine.DetectProgram(sections)})
	if err != nil {
		return nil, err
	}
	f.AnsweredAt = r.Opts.Clock()
	if f.Sections, err = answer.Sections(res.Stdout); err != nil {
		return nil, fmt.Errorf("detect on %s: %w", n.Hostname, err)
	}
	for _, p := range phases.All(r.Want) {
		if a := f.Sections[p.Name()]; a.Failed != "" {
			return nil, fmt.Errorf("detect %s on %s: exit status %s: %s", p.Name(), n.Hostname, a.Failed, engine.LastLine(res.Stderr))
		}
	}
	return f, nil
}

func hostnames(ns []*engine.Node) []string {
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = n.Hostname
	}
	return out
}
