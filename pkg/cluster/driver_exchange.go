package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/hint"
)

// batch drains machines, exchanges their drivers, and uncordons the machines whose driver works.
func (u *driverUpgrade) batch(ctx context.Context, w *world, batch []*Node) {
	u.eachAside(ctx, batch, phaseDrain, func(ctx context.Context, n *Node) error {
		err := u.tell(ctx, n, phaseDrain, func(ctx context.Context, n *Node) ([]Change, error) {
			return u.drain(ctx, n, u.opts.Force, u.opts.DrainTimeout)
		})
		if err != nil && !isCancel(ctx, err) && !u.marked[n.Hostname] { // nothing was changed on the machine, and it keeps working
			if _, back := u.uncordon(ctx, n); back != nil {
				return errors.Join(err, back)
			}
			err = hint.Wrap(err, strings.TrimSuffix(hint.Of(err), "; to keep the node: kubectl uncordon "+n.Hostname))
		}
		return err
	})
	u.exchange(ctx, w, batch, func(n *Node, err error) bool { return u.opts.Reboot && needsReboot(err) && !n.ControlPlane })
	for n, err := range u.each(ctx, u.alive(batch), func(ctx context.Context, n *Node) error { return u.tell(ctx, n, phaseUncordon, u.uncordon) }) {
		u.fail(ctx, n, phaseUncordon, err)
	}
	if ctx.Err() == nil {
		return
	}
	for _, n := range batch {
		if u.isOut(n) {
			u.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phaseDrain, Message: "the machine stays cordoned until this command succeeds"})
		}
	}
}

// eachAside calls do for the machines that haven't failed yet, and sets aside those that fail.
func (u *driverUpgrade) eachAside(ctx context.Context, nodes []*Node, phase string, do func(context.Context, *Node) error) {
	for n, err := range u.each(ctx, u.alive(nodes), do) {
		if !isCancel(ctx, err) {
			u.setAside(n, phase, err)
		}
	}
}

// exchange changes the drivers of drained machines as the configuration asks. In between it restarts the machines for which restarts returns true.
func (u *driverUpgrade) exchange(ctx context.Context, w *world, nodes []*Node, restarts func(*Node, error) bool) {
	p, failed := u.planFor(ctx, w, u.alive(nodes))
	var again []*Node
	for n, err := range failed {
		u.fail(ctx, n, phaseDriver, err)
	}
	for n, err := range u.stepAll(ctx, p, u.alive(nodes)) {
		if restarts != nil && restarts(n, err) && !isCancel(ctx, err) {
			again = append(again, n)
			continue
		}
		u.fail(ctx, n, phaseDriver, err)
	}
	if len(again) == 0 || ctx.Err() != nil {
		return
	}
	slices.SortFunc(again, byAddress)
	for n, err := range u.each(ctx, again, func(ctx context.Context, n *Node) error { return u.tell(ctx, n, phaseReboot, u.reboot) }) {
		u.fail(ctx, n, phaseReboot, err)
	}
	u.exchange(ctx, w, again, nil)
}

// stepAll exchanges the drivers of machines, all at once, and returns the errors by machine.
func (u *driverUpgrade) stepAll(ctx context.Context, p *plan, nodes []*Node) map[*Node]error {
	pr := newProgress(p, nodes)
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if len(p.of(n, phaseDriver)) > 0 {
				errs[i] = u.step(ctx, p, pr, n, u.driver)
			} else { // its restart has done the rest
				errs[i] = u.verify(ctx, n, u.driver)
			}
			pr.end(n.Hostname, phaseDriver, errs[i])
		})
	}
	wg.Wait()
	out := map[*Node]error{}
	for i, n := range nodes {
		if errs[i] != nil {
			out[n] = errs[i]
		}
	}
	return out
}

func (u *driverUpgrade) fail(ctx context.Context, n *Node, phase string, err error) {
	if isCancel(ctx, err) {
		return
	}
	if needsReboot(err) && n.ControlPlane {
		err = hint.Wrap(err, "restart this machine of the control plane yourself, then run the same command again")
	}
	err = hint.Wrap(err, strings.TrimPrefix(hint.Of(err)+"; the machine stays cordoned until this command succeeds; to use it as it is: kubectl uncordon "+n.Hostname, "; "))
	u.setOut(n, false) // the hint says it
	u.emit(Event{Kind: EventPhaseFailed, Host: n.Hostname, Phase: phase, Error: err.Error(), Hint: hint.Of(err)})
	u.setAside(n, phase, err)
}

// planFor reads the state of drained machines again, and returns the changes to make.
func (u *driverUpgrade) planFor(ctx context.Context, w *world, nodes []*Node) (*plan, map[*Node]error) {
	now := &world{want: w.want, facts: maps.Clone(w.facts), limit: w.limit, leader: w.leader}
	p := &plan{world: now, phases: []phase{u.driver}, todo: map[string]map[string][]Change{}}
	failed := u.each(ctx, nodes, func(ctx context.Context, n *Node) error {
		f, err := u.ask(ctx, n)
		if err != nil {
			return err
		}
		u.mu.Lock()
		now.facts[n.Hostname] = f
		u.mu.Unlock()
		s, err := u.look(&world{facts: map[string]*facts{n.Hostname: f}}, n, false)
		if err != nil || s == nil {
			return err
		}
		if s.refused() {
			f := driverFindings(n, s)[0]
			return hint.Errorf(f.Remedy, "%s", f.Message)
		}
		cs := u.driver.changes(s)
		for i := range cs {
			cs[i].Host, cs[i].Phase = n.Hostname, phaseDriver
		}
		u.mu.Lock()
		p.todo[n.Hostname] = map[string][]Change{phaseDriver: cs}
		u.mu.Unlock()
		return nil
	})
	u.planned = p
	return p, failed
}
