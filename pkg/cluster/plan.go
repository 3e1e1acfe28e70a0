package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// plan holds the changes that a run would make, by node and phase.
type plan struct {
	world  *world
	phases []phase
	todo   map[string]map[string][]Change // host name, phase

	mu    sync.Mutex
	rolls map[string][][]*Node // by phase, the waves of its rollout
}

// plan compares every node with the configuration. A node that is reached but not selected gets
// only the changes that it makes for others.
func (r *run) plan(w *world, nodes []*Node, phases []phase) (*plan, error) {
	p := &plan{world: w, phases: phases, todo: map[string]map[string][]Change{}}
	for _, n := range r.alive(nodes) {
		p.todo[n.Hostname] = map[string][]Change{}
		for _, ph := range phases {
			if !ph.applies(n) || !w.concerns(n) && !ph.traits().forOthers {
				continue
			}
			cs, err := ph.diff(n, w)
			if err != nil {
				return nil, fmt.Errorf("plan %s on %s: %w", ph.name(), n.Hostname, err)
			}
			for i := range cs {
				cs[i].Host, cs[i].Phase = n.Hostname, ph.name()
			}
			p.todo[n.Hostname][ph.name()] = cs
		}
	}
	return p, nil
}

// of returns the changes of a node in a phase.
func (p *plan) of(n *Node, phase string) []Change { return p.todo[n.Hostname][phase] }

// changes lists all changes in the order of nodes and phases.
func (p *plan) changes(nodes []*Node) []Change {
	out := []Change{}
	for _, n := range nodes {
		for _, ph := range p.phases {
			out = append(out, p.todo[n.Hostname][ph.name()]...)
		}
	}
	return out
}

// progress records which steps of a run have ended, and how.
type progress struct {
	mu   sync.Mutex
	done map[step]chan struct{}
	err  map[step]error
}

func newProgress(p *plan, nodes []*Node) *progress {
	pr := &progress{done: map[step]chan struct{}{}, err: map[step]error{}}
	for _, n := range nodes {
		for _, ph := range p.phases {
			pr.done[step{host: n.Hostname, phase: ph.name()}] = make(chan struct{})
		}
	}
	return pr
}

func (pr *progress) end(host, phase string, err error) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	s := step{host: host, phase: phase}
	pr.err[s] = err
	close(pr.done[s])
}

// wait blocks until a step has ended. A step outside the run (--limit, --phases) counts as
// successful: its host was left unchanged.
func (pr *progress) wait(ctx context.Context, s step) error {
	key := step{host: s.host, phase: s.phase}
	ch, ok := pr.done[key]
	if !ok {
		return nil
	}
	select {
	case <-ch:
	case <-ctx.Done():
		return ctx.Err()
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	err := pr.err[key]
	if held, ok := errors.AsType[*heldBack](err); ok && (s.must || s.rolls) {
		return newHeldBack(held.phase, held.host)
	}
	if err != nil && s.rolls && !errors.Is(err, errSetAside) {
		return newHeldBack(s.phase, s.host)
	}
	if err != nil && s.must {
		return hint.Errorf("repair "+s.host+" first", "phase %s on %s, which this phase needs, has failed", s.phase, s.host)
	}
	return nil
}

// errSetAside is the result of the steps that a machine doesn't reach, since an earlier one failed.
var errSetAside = errors.New("set aside")

// applyAll takes each node through its phases. A node waits for others only if a phase requires it;
// a node that fails is set aside and the others continue.
func (r *run) applyAll(ctx context.Context, p *plan, nodes []*Node) error {
	if err := r.share(p, nodes); err != nil {
		return err
	}
	pr := newProgress(p, nodes)
	r.planned = p
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() { r.walk(ctx, p, pr, n) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// walk takes one node through its phases.
func (r *run) walk(ctx context.Context, p *plan, pr *progress, n *Node) {
	for _, ph := range p.phases {
		var err error
		if r.isAside(n) {
			err = errSetAside
		} else if err = r.step(ctx, p, pr, n, ph); err != nil && !isCancel(ctx, err) {
			r.emit(Event{Kind: EventPhaseFailed, Host: n.Hostname, Phase: ph.name(), Error: err.Error(), Hint: hint.Of(err)})
			r.setAside(n, ph.name(), err)
		}
		pr.end(n.Hostname, ph.name(), err)
	}
	if !r.isAside(n) && ctx.Err() == nil {
		r.emit(Event{Kind: EventHostDone, Host: n.Hostname})
	}
}

// step runs one phase on one node: wait, apply, verify.
func (r *run) step(ctx context.Context, p *plan, pr *progress, n *Node, ph phase) error {
	cs := p.todo[n.Hostname][ph.name()]
	if len(cs) == 0 {
		r.emit(Event{Kind: EventPhaseSkipped, Host: n.Hostname, Phase: ph.name()})
		return nil
	}
	for _, s := range ph.waits(n, p) {
		if err := pr.wait(ctx, s); err != nil {
			return err
		}
	}
	return r.slot(ctx, func() error {
		start := r.opts.Clock()
		r.emit(Event{Kind: EventPhaseStarted, Host: n.Hostname, Phase: ph.name(), Changes: len(cs)})
		if err := ph.apply(ctx, r, n, cs); err != nil {
			return err
		}
		// Settings on a master that etcd doesn't know take effect only after it has joined again.
		if !p.world.expelled(n) || ph.traits().rejoins {
			if err := r.verify(ctx, n, ph); err != nil {
				return err
			}
		}
		for i := range cs {
			r.emit(Event{Kind: EventChanged, Host: n.Hostname, Phase: ph.name(), Change: &cs[i]})
		}
		r.mu.Lock()
		r.changes[n.Hostname] += len(cs)
		r.mu.Unlock()
		r.emit(Event{Kind: EventPhaseDone, Host: n.Hostname, Phase: ph.name(), Changes: len(cs), Elapsed: r.opts.Clock().Sub(start)})
		return nil
	})
}

func (r *run) verify(ctx context.Context, n *Node, ph phase) error {
	body := ph.verify(n)
	if body == "" {
		return nil
	}
	h := r.host(n)
	res, err := h.Run(ctx, ssh.Script{Name: ph.name() + "/verify", Timeout: r.opts.StepTimeout, Body: preludeScript + body})
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return scriptError(n, ph.name()+"/verify", res)
	}
	return nil
}
