package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/hint"
)

// batch drains the machines in batch and replaces their drivers. It uncordons the machines whose drivers work.
func (u *driverUpgrade) batch(ctx context.Context, w *engine.World, batch []*engine.Node) {
	u.eachAside(ctx, batch, phaseDrain, func(ctx context.Context, n *engine.Node) error {
		err := tell(ctx, u.Run, n, phaseDrain, func(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
			return u.drain(ctx, n, u.opts.Force, u.opts.DrainTimeout)
		})
		if err != nil && !engine.IsCancel(ctx, err) && !u.marked[n.Hostname] { // the machine was not changed, and keeps working
			if _, back := u.uncordon(ctx, n); back != nil {
				return errors.Join(err, back)
			}
			err = hint.Wrap(err, strings.TrimSuffix(hint.Of(err), toKeep(n)))
		}
		return err
	})
	u.exchange(ctx, w, batch, func(n *engine.Node, err error) bool { return u.opts.Reboot && needsReboot(err) && !n.ControlPlane })
	for n, err := range u.Each(ctx, u.Working(batch), func(ctx context.Context, n *engine.Node) error {
		return tell(ctx, u.Run, n, phaseUncordon, u.uncordon)
	}) {
		u.fail(ctx, n, phaseUncordon, err)
	}
	if ctx.Err() == nil {
		return
	}
	for _, n := range batch {
		if u.isOut(n) {
			u.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phaseDrain, Message: "the machine stays cordoned until this command succeeds"})
		}
	}
}

// eachAside calls do for each machine that hasn't failed yet. If do returns an error, the machine counts as failed.
func (u *driverUpgrade) eachAside(ctx context.Context, nodes []*engine.Node, phase string, do func(context.Context, *engine.Node) error) {
	for n, err := range u.Each(ctx, u.Working(nodes), do) {
		if !engine.IsCancel(ctx, err) {
			u.SetAside(n, phase, err)
		}
	}
}

// exchange installs the configured drivers on drained machines. If the installation on a machine fails and restarts returns true for the error,
// exchange restarts the machine and repeats the installation.
func (u *driverUpgrade) exchange(ctx context.Context, w *engine.World, nodes []*engine.Node, restarts func(*engine.Node, error) bool) {
	p, failed := u.planFor(ctx, w, u.Working(nodes))
	var again []*engine.Node
	for n, err := range failed {
		u.fail(ctx, n, phases.PhaseDriver, err)
	}
	for n, err := range u.stepAll(ctx, p, u.Working(nodes)) {
		if restarts != nil && restarts(n, err) && !engine.IsCancel(ctx, err) {
			again = append(again, n)
			continue
		}
		u.fail(ctx, n, phases.PhaseDriver, err)
	}
	if len(again) == 0 || ctx.Err() != nil {
		return
	}
	slices.SortFunc(again, engine.ByAddress)
	for n, err := range u.Each(ctx, again, func(ctx context.Context, n *engine.Node) error {
		return tell(ctx, u.Run, n, phaseReboot, u.reboot)
	}) {
		u.fail(ctx, n, phaseReboot, err)
	}
	u.exchange(ctx, w, again, nil)
}

// stepAll replaces the drivers of machines concurrently. It returns the errors of the machines that failed.
func (u *driverUpgrade) stepAll(ctx context.Context, p *engine.Plan, nodes []*engine.Node) map[*engine.Node]error {
	pr := engine.NewProgress(p, nodes)
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if len(p.Of(n, phases.PhaseDriver)) > 0 {
				errs[i] = u.Step(ctx, p, pr, n, u.driver)
			} else { // its restart has completed the change
				errs[i] = u.Verify(ctx, n, u.driver)
			}
			pr.End(n.Hostname, phases.PhaseDriver, errs[i])
		})
	}
	wg.Wait()
	out := map[*engine.Node]error{}
	for i, n := range nodes {
		if errs[i] != nil {
			out[n] = errs[i]
		}
	}
	return out
}

func (u *driverUpgrade) fail(ctx context.Context, n *engine.Node, phase string, err error) {
	if engine.IsCancel(ctx, err) {
		return
	}
	if needsReboot(err) && n.ControlPlane {
		err = hint.Wrap(err, "restart this machine of the control plane yourself, then run the same command again")
	}
	err = hint.Wrap(err, strings.TrimPrefix(hint.Of(err)+staysCordoned(n), "; "))
	u.setOut(n, false) // the hint explains it
	u.Emit(engine.Event{Kind: engine.EventPhaseFailed, Host: n.Hostname, Phase: phase, Error: err.Error(), Hint: hint.Of(err)})
	u.SetAside(n, phase, err)
}

// planFor reads the state of drained machines again. It returns the plan with the changes to make, and the errors of machines that failed.
func (u *driverUpgrade) planFor(ctx context.Context, w *engine.World, nodes []*engine.Node) (*engine.Plan, map[*engine.Node]error) {
	now := &engine.World{Want: w.Want, Facts: maps.Clone(w.Facts), Limit: w.Limit, Leader: w.Leader}
	p := &engine.Plan{World: now, Phases: []engine.Phase{u.driver}, Todo: map[string]map[string][]engine.Change{}}
	failed := u.Each(ctx, nodes, func(ctx context.Context, n *engine.Node) error {
		f, err := ask(ctx, u.Run, n)
		if err != nil {
			return err
		}
		u.Mu.Lock()
		now.Facts[n.Hostname] = f
		u.Mu.Unlock()
		s, err := u.look(&engine.World{Facts: map[string]*engine.Facts{n.Hostname: f}}, n, false)
		if err != nil || s == nil {
			return err
		}
		if s.Refused() {
			f := driverFindings(n, s)[0]
			return hint.Errorf(f.Remedy, "%s", f.Message)
		}
		cs := u.driver.Changes(s)
		for i := range cs {
			cs[i].Host, cs[i].Phase = n.Hostname, phases.PhaseDriver
		}
		u.Mu.Lock()
		p.Todo[n.Hostname] = map[string][]engine.Change{phases.PhaseDriver: cs}
		u.Mu.Unlock()
		return nil
	})
	u.Planned = p
	return p, failed
}
