package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// UpOptions are the options of Up.
type UpOptions struct {
	// Phases limits the run to some phases; empty means all.
	Phases []string
	// Fix lets preflight make the safe repairs.
	Fix bool
}

// Up makes the machines match the configuration and returns the changes that it made, or in a dry
// run would make. Hosts that fail are set aside and named in a *PartialError.
func Up(ctx context.Context, s *Spec, o Options, up UpOptions) ([]Change, error) {
	r := newRun(s, o)
	defer r.close()
	r.only, r.mayFix = up.Phases, up.Fix
	return r.converge(ctx, "cluster up", "", func(_ context.Context, w *world, _ []*Node) (*world, []Change, error) {
		return w, nil, cmp.Or(r.refuseRestore(w), w.refuseRecovery())
	})
}

// converge takes all machines through the phases of "cluster up", after begin, which looks at the state that the run finds, and may change it. Its
// phase is first, or "" if it changes nothing.
func (r *run) converge(ctx context.Context, command, first string, begin func(context.Context, *world, []*Node) (*world, []Change, error)) ([]Change, error) {
	o := r.opts
	nodes, err := r.scope()
	if err != nil {
		return nil, err
	}
	r.started = o.Clock()
	names := PhaseNames()
	if first != "" {
		names = slices.Insert(names, 1, first)
	}
	r.emit(Event{Kind: EventRunStarted, Message: command, Hosts: hostnames(nodes), Phases: names})
	if err := r.connect(ctx, r.reached(nodes)); err != nil {
		return nil, err
	}
	if !o.DryRun {
		var unlock func()
		held, release, err := r.lock(ctx)
		if errors.Is(err, ssh.ErrSudo) {
			// paictl can't become root there. The other machines' answers belong to the same
			// report, and asking them changes nothing.
			if _, err := r.survey(ctx, r.reached(nodes)); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
		ctx, unlock = held, release
		defer unlock()
		defer r.closePeers() // before the next run may begin
	}
	w, err := r.survey(ctx, r.reached(nodes))
	if err != nil {
		return nil, err
	}
	w, begun, err := begin(ctx, w, nodes)
	if err != nil {
		return begun, err
	}
	if n := w.rotating(); n != nil {
		return begun, errRotating(n)
	}
	if w, err = r.preflight(ctx, w, nodes); err != nil {
		return begun, err
	}
	if err := r.refuseMove(ctx, w); err != nil {
		return begun, err
	}
	p, err := r.plan(w, r.reached(nodes), r.phases())
	if err != nil {
		return nil, err
	}
	if !slices.Contains(nodes, r.leader) && len(p.changes([]*Node{r.leader})) > 0 {
		nodes = append([]*Node{r.leader}, nodes...) // it sets the labels of the nodes under --limit
	}
	r.warnNotReady(p, nodes)
	changes := append([]Change{}, begun...) // not nil even without changes; nil means that the run reached no plan
	changes = append(changes, p.changes(nodes)...)
	if !o.DryRun {
		if err := r.applyAll(ctx, p, nodes); err != nil {
			return changes, err
		}
		r.tellCopy(ctx)
	} else {
		if err := r.share(p, nodes); err != nil {
			return changes, err
		}
		for _, c := range changes {
			r.emit(Event{Kind: EventPlanned, Host: c.Host, Phase: c.Phase, Change: &c})
		}
	}
	return changes, r.summary(command, nodes, changes)
}

// Preflight runs only the checks, on all hosts, and changes nothing unless fix lets it make the safe repairs. A
// host that could not be checked is a finding too, and named in a *PartialError.
func Preflight(ctx context.Context, s *Spec, o Options, fix bool) ([]preflight.Finding, error) {
	r := newRun(s, o)
	defer r.close()
	r.returnsFindings, r.mayFix = true, fix
	nodes, err := r.scope()
	if err != nil {
		return nil, err
	}
	r.emit(Event{Kind: EventRunStarted, Message: "cluster preflight", Hosts: hostnames(nodes), Phases: []string{"preflight"}})
	if err := r.connect(ctx, r.reached(nodes)); err != nil {
		return nil, err
	}
	w, err := r.survey(ctx, r.reached(nodes))
	if err != nil {
		return nil, err
	}
	if w, err = r.preflight(ctx, w, nodes); err != nil {
		if pf, ok := errors.AsType[*PreflightError](err); ok {
			return append(pf.Findings, r.unchecked(nodes)...), err
		}
		return nil, err
	}
	return append(r.check(w, nodes), r.unchecked(nodes)...), r.summary("cluster preflight", nodes, nil)
}

// unchecked returns findings about the hosts that were set aside.
func (r *run) unchecked(nodes []*Node) []preflight.Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []preflight.Finding
	for _, n := range nodes {
		if f, ok := r.failed[n.Hostname]; ok {
			out = append(out, preflight.Finding{Host: f.Host, Check: checkUnchecked, Severity: preflight.SeverityError, Message: "not checked: " + f.Error, Remedy: f.Hint})
		}
	}
	return out
}

// scope resolves --limit, and checks --phases.
func (r *run) scope() ([]*Node, error) {
	nodes, err := r.selected()
	if err != nil {
		return nil, err
	}
	return nodes, CheckPhases(r.only)
}

// phases returns the phases of --phases, or all, as the last survey decided.
func (r *run) phases() []phase {
	return slices.DeleteFunc(upPhases(r.want), func(p phase) bool {
		return len(r.only) > 0 && !slices.Contains(r.only, p.name())
	})
}

// connect dials all hosts. A machine that doesn't answer is set aside, unless no machine of the
// control plane answers. A worker that refuses the login while most others accept it is also set
// aside: one changed key among a thousand must not stop the run. If many refuse, or a master does,
// that is a mistake to repair before anything is changed on any machine.
func (r *run) connect(ctx context.Context, nodes []*Node) error {
	var findings []preflight.Finding
	errs := r.each(ctx, nodes, r.dial)
	noMaster := !slices.ContainsFunc(nodes, func(n *Node) bool { return n.ControlPlane && errs[n] == nil })
	for n, err := range errs {
		if isCancel(ctx, err) {
			return context.Canceled
		}
		unreachable := errors.Is(err, ssh.ErrUnreachable) && (!n.ControlPlane || !noMaster)
		if unreachable || !n.ControlPlane && refusedAlone(err, len(errs), len(nodes)) {
			r.setAside(n, "connect", err)
			continue
		}
		findings = append(findings, preflight.Finding{
			Host: n.Hostname, Check: "connect", Severity: preflight.SeverityError, Message: err.Error(), Remedy: hint.Of(err),
		})
	}
	if len(findings) > 0 {
		return r.refuse(findings)
	}
	return nil
}

// refusedAlone reports whether a machine refused the login or showed another key than the known one,
// while most of the others didn't. The run makes no connection to such a machine.
func refusedAlone(err error, failed, of int) bool {
	return 2*failed < of && (errors.Is(err, ssh.ErrAuth) || errors.Is(err, ssh.ErrHostKey))
}

// survey asks each host everything at once: one script, one round trip.
func (r *run) survey(ctx context.Context, nodes []*Node) (*world, error) {
	w := &world{want: r.want.undecided(), facts: map[string]*facts{}, limit: r.limit(), outside: map[string]bool{},
		whole: len(r.opts.Limit)+len(r.only) == 0, mayFound: len(r.only) == 0 || slices.Contains(r.only, phaseInit)}
	var mu sync.Mutex
	var findings []preflight.Finding
	errs := r.each(ctx, r.alive(nodes), func(ctx context.Context, n *Node) error {
		r.emit(Event{Kind: EventPhaseStarted, Host: n.Hostname, Phase: "preflight"})
		f, err := r.ask(ctx, n)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		w.facts[n.Hostname] = f
		return nil
	})
	for n, err := range errs {
		switch {
		case isCancel(ctx, err):
			return nil, context.Canceled
		case errors.Is(err, ssh.ErrClosed):
			r.setAside(n, "preflight", err)
		default:
			findings = append(findings, preflight.Finding{Host: n.Hostname, Check: "detect", Severity: preflight.SeverityError, Message: err.Error(), Remedy: hint.Of(err)})
		}
	}
	if len(findings) > 0 {
		return nil, r.refuse(findings)
	}
	w.elect()
	defer r.decide(w)
	if w.founding() && w.mayFound && w.concerns(w.leader) {
		if err := r.lookBeyond(ctx, w); err != nil {
			return nil, context.Cause(ctx)
		}
		another, err := r.anotherCluster(ctx, w)
		if err != nil {
			return nil, err
		}
		w.findings = append(w.againstFounding(), another...)
	}
	if w.etcdMatters() {
		w.etcd, _ = r.lookAtEtcd(ctx, w.leader) // without an answer etcd's state stays unknown
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		w.findings = slices.Concat(w.findings, w.withoutQuorum(), w.counted())
	}
	apart, err := w.apart()
	if err != nil {
		return nil, err
	}
	w.findings = slices.Concat(w.findings, apart, w.claimed())
	return w, nil
}

// decide makes the decisions of a survey those of the run.
func (r *run) decide(w *world) { r.leader, r.want = w.leader, w.want }

// ask runs the detect scripts of all phases on one node.
func (r *run) ask(ctx context.Context, n *Node) (*facts, error) {
	sections := []section{
		{"facts", layout.DiscoverScript()},
		{phasePreflight, preflight.Probe(r.want.checked(nil), n.checked())},
		{"journal", "d_journal"},
	}
	for _, p := range upPhases(r.want) {
		if !p.applies(n) {
			continue
		}
		body, err := p.detect(n)
		if err != nil {
			return nil, err
		}
		sections = append(sections, section{p.name(), body})
	}
	f := &facts{asked: r.opts.Clock()}
	res, err := r.exec(ctx, n, ssh.Script{Name: "detect", Timeout: r.opts.StepTimeout, Body: detectProgram(sections)})
	if err != nil {
		return nil, err
	}
	f.answered = r.opts.Clock()
	if f.sections, err = answer.Sections(res.Stdout); err != nil {
		return nil, fmt.Errorf("detect on %s: %w", n.Hostname, err)
	}
	for _, p := range upPhases(r.want) {
		if a := f.sections[p.name()]; a.Failed != "" {
			return nil, fmt.Errorf("detect %s on %s: exit status %s: %s", p.name(), n.Hostname, a.Failed, lastLine(res.Stderr))
		}
	}
	return f, nil
}

// alive returns the nodes that are connected and not set aside.
func (r *run) alive(nodes []*Node) []*Node {
	var out []*Node
	for _, n := range nodes {
		if r.host(n) != nil && !r.isAside(n) {
			out = append(out, n)
		}
	}
	return out
}

func hostnames(ns []*Node) []string {
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = n.Hostname
	}
	return out
}
