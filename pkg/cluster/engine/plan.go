package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// Plan holds the changes that a run would make, by node and phase.
type Plan struct {
	World  *World
	Phases []Phase
	Todo   map[string]map[string][]Change // by host name and phase

	Mu    sync.Mutex
	Rolls map[string][][]*Node // the waves of a rollout, by phase
}

// Plan compares every node with the configuration. For nodes that aren't selected, the plan contains only changes for other nodes.
func (r *Run) Plan(w *World, nodes []*Node, phases []Phase) (*Plan, error) {
	p := &Plan{World: w, Phases: phases, Todo: map[string]map[string][]Change{}}
	for _, n := range r.Working(nodes) {
		p.Todo[n.Hostname] = map[string][]Change{}
		for _, ph := range phases {
			if !ph.Applies(n) || !w.Concerns(n) && !ph.Traits().ForOthers {
				continue
			}
			cs, err := ph.Diff(n, w)
			if err != nil {
				return nil, fmt.Errorf("plan %s on %s: %w", ph.Name(), n.Hostname, err)
			}
			for i := range cs {
				cs[i].Host, cs[i].Phase = n.Hostname, ph.Name()
			}
			p.Todo[n.Hostname][ph.Name()] = cs
		}
	}
	return p, nil
}

// Of returns the changes to a node in a phase.
func (p *Plan) Of(n *Node, phase string) []Change { return p.Todo[n.Hostname][phase] }

// Changes returns all changes, in the order of nodes and phases.
func (p *Plan) Changes(nodes []*Node) []Change {
	out := []Change{}
	for _, n := range nodes {
		for _, ph := range p.Phases {
			out = append(out, p.Todo[n.Hostname][ph.Name()]...)
		}
	}
	return out
}

// Progress records the results of completed steps.
type Progress struct {
	mu   sync.Mutex
	done map[Step]chan struct{}
	err  map[Step]error
}

// NewProgress returns the progress of a run before its first step.
func NewProgress(p *Plan, nodes []*Node) *Progress {
	pr := &Progress{done: map[Step]chan struct{}{}, err: map[Step]error{}}
	for _, n := range nodes {
		for _, ph := range p.Phases {
			pr.done[Step{Host: n.Hostname, Phase: ph.Name()}] = make(chan struct{})
		}
	}
	return pr
}

// End records the result of a step, and wakes steps that wait for its end.
func (pr *Progress) End(host, phase string, err error) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	s := Step{Host: host, Phase: phase}
	pr.err[s] = err
	close(pr.done[s])
}

// wait blocks until a step has ended. It returns an error if the waiting step must not run. A step outside of --limit or --phases counts as
// successful, because the run leaves its host unchanged.
func (pr *Progress) wait(ctx context.Context, s Step) error {
	key := Step{Host: s.Host, Phase: s.Phase}
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
	if held, ok := errors.AsType[*HeldBackError](err); ok && (s.Must || s.Rolls) {
		return newHeldBack(held.Phase, held.Host)
	}
	if err != nil && s.Rolls && !errors.Is(err, ErrSetAside) {
		return newHeldBack(s.Phase, s.Host)
	}
	if err != nil && s.Must {
		return hint.Errorf("repair "+s.Host+" first", "phase %s on %s, which this phase needs, has failed", s.Phase, s.Host)
	}
	return nil
}

// ErrSetAside is the result of a step that was skipped because an earlier step on the same machine has failed.
var ErrSetAside = errors.New("set aside")

// ApplyAll runs the phases on each node. A node waits for other nodes only if a phase requires it. After a failure, the other nodes continue.
func (r *Run) ApplyAll(ctx context.Context, p *Plan, nodes []*Node) error {
	if err := r.Share(p, nodes); err != nil {
		return err
	}
	pr := NewProgress(p, nodes)
	r.Planned = p
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

func (r *Run) walk(ctx context.Context, p *Plan, pr *Progress, n *Node) {
	for _, ph := range p.Phases {
		var err error
		if r.IsAside(n) {
			err = ErrSetAside
		} else if err = r.Step(ctx, p, pr, n, ph); err != nil && !IsCancel(ctx, err) {
			r.Emit(Event{Kind: EventPhaseFailed, Host: n.Hostname, Phase: ph.Name(), Error: err.Error(), Hint: hint.Of(err)})
			r.SetAside(n, ph.Name(), err)
		}
		pr.End(n.Hostname, ph.Name(), err)
	}
	if !r.IsAside(n) && ctx.Err() == nil {
		r.Emit(Event{Kind: EventHostDone, Host: n.Hostname})
	}
}

// Step runs one phase on one node. It waits for other steps, applies the changes, and verifies the result.
func (r *Run) Step(ctx context.Context, p *Plan, pr *Progress, n *Node, ph Phase) error {
	cs := p.Todo[n.Hostname][ph.Name()]
	if len(cs) == 0 {
		r.Emit(Event{Kind: EventPhaseSkipped, Host: n.Hostname, Phase: ph.Name()})
		return nil
	}
	for _, s := range ph.Waits(n, p) {
		if err := pr.wait(ctx, s); err != nil {
			return err
		}
	}
	return r.slot(ctx, func() error {
		start := r.Opts.Clock()
		r.Emit(Event{Kind: EventPhaseStarted, Host: n.Hostname, Phase: ph.Name(), Changes: len(cs)})
		if err := ph.Apply(ctx, r, n, cs); err != nil {
			return err
		}
		// On a master that isn't a member of etcd, settings take effect only after the master has joined again. Don't verify the settings before.
		if !p.World.Expelled(n) || ph.Traits().Rejoins {
			if err := r.Verify(ctx, n, ph); err != nil {
				return err
			}
		}
		for i := range cs {
			r.Emit(Event{Kind: EventChanged, Host: n.Hostname, Phase: ph.Name(), Change: &cs[i]})
		}
		r.Mu.Lock()
		r.Changes[n.Hostname] += len(cs)
		r.Mu.Unlock()
		r.Emit(Event{Kind: EventPhaseDone, Host: n.Hostname, Phase: ph.Name(), Changes: len(cs), Elapsed: r.Opts.Clock().Sub(start)})
		return nil
	})
}

// Verify checks that a phase has succeeded on a node.
func (r *Run) Verify(ctx context.Context, n *Node, ph Phase) error {
	body := ph.Verify(n)
	if body == "" {
		return nil
	}
	h := r.Host(n)
	res, err := h.Run(ctx, ssh.Script{Name: ph.Name() + "/verify", Timeout: r.Opts.StepTimeout, Body: PreludeScript + body})
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return ScriptError(n, ph.Name()+"/verify", res)
	}
	return nil
}

// HeldBackError is the error of a machine that stays unchanged because the same change failed on another machine.
type HeldBackError struct{ Phase, Host string }

// Unchanged marks HeldBack as an error of an unchanged machine.
func (*HeldBackError) Unchanged() {}

func (e *HeldBackError) Error() string {
	return fmt.Sprintf("not changed: the new %s settings failed on %s", e.Phase, e.Host)
}

func newHeldBack(phase, host string) error {
	return hint.Wrap(&HeldBackError{Phase: phase, Host: host},
		fmt.Sprintf("repair %s, or correct the setting, and run the same command again; --limit continues without a broken machine", host))
}
