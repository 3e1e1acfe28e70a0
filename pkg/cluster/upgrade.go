package cluster

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/hint"
)

// An upgrade brings a working cluster to another release. It first loads the images on all machines. It then upgrades the static pods of the masters,
// one master after the other. The next step changes the cluster's stored settings, CoreDNS and kube-proxy. In the last step, it upgrades the programs
// of each machine, which is cordoned during that step. Kubernetes requires that no kubelet and no kube-proxy is newer than an API server. Each step
// first checks whether it is already done, so that the next run continues an interrupted run.

//go:embed scripts/upgrade.sh
var upgradeScript string

// JobPolicy defines how an upgrade treats the jobs on a machine.
type JobPolicy string

// The policies for jobs.
const (
	JobsWait    JobPolicy = "wait"    // the machine is upgraded after they have finished
	JobsRequeue JobPolicy = "requeue" // their tasks are evicted and start again on other machines
	JobsStop    JobPolicy = "stop"    // they are stopped
)

// JobPolicies returns the names of all policies for jobs.
func JobPolicies() []string { return []string{string(JobsWait), string(JobsRequeue), string(JobsStop)} }

// UpgradeOptions configure Upgrade.
type UpgradeOptions struct {
	// AtOnce is how many workers are cordoned at a time; zero means 1. Masters are upgraded one after the other.
	AtOnce int
	// Jobs is the policy for jobs; empty means JobsWait.
	Jobs JobPolicy
	// MaxWait is how long JobsWait waits for one machine; zero means no limit.
	MaxWait time.Duration
	// DrainTimeout is the time limit for evicting the pods of a machine; zero means 5 minutes.
	DrainTimeout time.Duration
	// Force deletes pods even if a disruption budget or a missing owner forbids their eviction.
	Force bool
	// MaxFailures is how many workers may fail before the remaining workers are skipped; zero means 1.
	MaxFailures int
	// MaxBackupAge is the maximum age of the cluster's last backup; zero skips the check.
	MaxBackupAge time.Duration
	// RemovedAPIs allows the upgrade even if clients use APIs that the new release doesn't contain.
	RemovedAPIs bool
	// Back allows a downgrade of members that have a later patch release than the bundle. Without Back, such members are an error.
	Back bool
	// Begin, if set, is called after all checks have passed and before any change. If Begin returns an error, the run ends.
	Begin func() error

	look time.Duration // how often JobsWait checks; zero means jobsLook
}

// upgradeMark is the annotation of nodes that an upgrade has cordoned.
const upgradeMark = "paictl.openpai.org/upgrade"

const phaseUpgrade = "upgrade"

type upgrade struct {
	rotation
	opts UpgradeOptions
	// notReady holds the machines whose nodes weren't Ready when the run began. Such machines are upgraded last, and the run doesn't wait for their
	// jobs.
	notReady map[string]bool
	// putBack holds the machines that the run has uncordoned without a change.
	putBack map[string]bool
}

// Upgrade upgrades all machines to the release in the spec's bundle. It returns the planned changes.
func Upgrade(ctx context.Context, s *engine.Spec, o engine.Options, up UpgradeOptions) ([]engine.Change, error) {
	up.AtOnce, up.MaxFailures = max(up.AtOnce, 1), max(up.MaxFailures, 1)
	if up.DrainTimeout <= 0 {
		up.DrainTimeout = 5 * time.Minute
	}
	if up.look <= 0 {
		up.look = jobsLook
	}
	if up.Jobs == "" {
		up.Jobs = JobsWait
	}
	u := &upgrade{rotation: newRotation(engine.NewRun(s, o), phaseUpgrade, upgradeMark), opts: up, notReady: map[string]bool{}, putBack: map[string]bool{}}
	defer u.Close()
	u.Want = &engine.Desired{Spec: s, Upgrading: true, Back: up.Back}
	nodes := s.Nodes
	u.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "cluster upgrade", Hosts: hostnames(nodes),
		Phases: slices.Concat([]string{phasePreflight}, phases.NamesIn(engine.UpgradeImages), phases.NamesIn(engine.UpgradeControlPlane), []string{phaseDrain}, phases.NamesIn(engine.UpgradePrograms), []string{phaseUncordon}, phases.NamesIn(engine.UpgradeAfter))})
	if err := connect(ctx, u.Run, nodes); err != nil {
		return nil, err
	}
	ctx, unlock, err := u.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer u.ClosePeers() // before the next run may begin
	w, err := u.settled(ctx)
	if err != nil {
		return nil, err
	}
	if w.Founding() {
		return nil, hint.Errorf("paictl cluster up makes one", "there is no cluster yet")
	}
	findings, err := u.unfit(ctx, w)
	if err != nil {
		return nil, err
	}
	members := u.members(w)
	if len(findings) > 0 {
		return nil, refuse(u.Run, append(phases.Check(u.Run, w, members), findings...))
	}
	if n := rotating(w); n != nil {
		return nil, errRotating(n)
	}
	if w, err = checkFirst(ctx, u.Run, w, members); err != nil {
		return nil, err
	}
	if err := u.readMarks(ctx); err != nil {
		return nil, err
	}
	changes, err := u.changesOf(w)
	if err != nil {
		return nil, err
	}
	if o.DryRun {
		u.EmitPlanned(changes)
		return changes, u.Summary("cluster upgrade", nodes, changes)
	}
	if up.Begin != nil {
		if err := up.Begin(); err != nil {
			return nil, err
		}
	}
	if err := u.all(ctx, w); err != nil {
		return changes, err
	}
	u.WarnAboutCopy(ctx)
	return changes, u.Summary("cluster upgrade", nodes, changes)
}

func programs(p *engine.Plan, n *engine.Node) bool {
	return slices.ContainsFunc(p.Phases, func(ph engine.Phase) bool {
		return ph.Traits().Upgrade == engine.UpgradePrograms && len(p.Of(n, ph.Name())) > 0
	})
}

// members returns the members of the cluster that respond.
func (u *upgrade) members(w *engine.World) []*engine.Node {
	return slices.DeleteFunc(u.Working(u.Spec.Nodes), func(n *engine.Node) bool { return !w.Member(n) })
}

func (u *upgrade) changesOf(w *engine.World) ([]engine.Change, error) {
	var out []engine.Change
	members := u.members(w)
	p, err := u.Plan(w, members, slices.DeleteFunc(phases.All(u.Want), func(ph engine.Phase) bool { return ph.Traits().Upgrade == "" }))
	if err != nil {
		return nil, err
	}
	add := func(n *engine.Node, part engine.UpgradePart) {
		for _, name := range phases.NamesIn(part) {
			out = append(out, p.Of(n, name)...)
		}
	}
	for _, n := range members {
		add(n, engine.UpgradeImages)
	}
	for _, n := range w.ControlPlane() {
		add(n, engine.UpgradeControlPlane)
	}
	masters, workers := u.due(w, p)
	for _, n := range append(masters, workers...) {
		if programs(p, n) {
			out = append(out, engine.Change{Host: n.Hostname, Phase: phaseDrain, Action: "drain", Target: "node " + n.Hostname})
			add(n, engine.UpgradePrograms)
		}
		if programs(p, n) && !u.cordoned[n.Hostname] || u.marked[n.Hostname] {
			out = append(out, engine.Change{Host: n.Hostname, Phase: phaseUncordon, Action: "uncordon", Target: "node " + n.Hostname})
		}
	}
	for _, n := range members {
		add(n, engine.UpgradeAfter)
	}
	return out, nil
}

// due returns the machines whose programs change or that an earlier run has left cordoned. Cordoned machines come first. Machines that aren't Ready
// come last.
func (u *upgrade) due(w *engine.World, p *engine.Plan) (masters, workers []*engine.Node) {
	for _, n := range u.members(w) {
		if !programs(p, n) && !u.marked[n.Hostname] {
			continue
		}
		if n.ControlPlane {
			masters = append(masters, n)
		} else {
			workers = append(workers, n)
		}
	}
	for _, ns := range [][]*engine.Node{masters, workers} {
		slices.SortStableFunc(ns, func(a, b *engine.Node) int {
			return cmp.Or(engine.CompareBool(u.notReady[a.Hostname], u.notReady[b.Hostname]), engine.CompareBool(u.marked[b.Hostname], u.marked[a.Hostname]))
		})
	}
	return masters, workers
}

// all makes the changes. It continues after failed workers until MaxFailures workers have failed. A failed master stops the run. A machine on which
// images can't be loaded also stops the run, because the next step changes kube-proxy on all machines.
func (u *upgrade) all(ctx context.Context, w *engine.World) error {
	members := u.members(w)
	if err := u.through(ctx, w, members, nil, engine.UpgradeImages); err != nil {
		return err
	}
	if u.heldBy(members, phases.PhaseImages) {
		return nil
	}
	first := func(c engine.Change) bool { return c.Target != phases.RunUpload }
	if err := u.through(ctx, w, w.ControlPlane(), first, engine.UpgradeControlPlane); err != nil {
		return err
	}
	if u.heldBy(u.Spec.ControlPlane(), engine.PhaseInit) {
		return nil
	}
	w, err := u.again(ctx)
	if err != nil {
		return err
	}
	if err := u.through(ctx, w, w.ControlPlane(), nil, engine.UpgradeControlPlane); err != nil || u.heldBy(u.Spec.ControlPlane(), engine.PhaseInit) {
		return err
	}
	if complete, err := u.machines(ctx, w); err != nil || !complete {
		return err
	}
	if w, err = u.again(ctx); err != nil {
		return err
	}
	if err := u.through(ctx, w, u.members(w), nil, engine.UpgradeAfter); err != nil {
		return err
	}
	for _, n := range u.members(w) {
		u.Emit(engine.Event{Kind: engine.EventHostDone, Host: n.Hostname})
	}
	return nil
}

// again reads the current state of all machines. If a worker's state can't be read, the run skips the worker.
func (u *upgrade) again(ctx context.Context) (*engine.World, error) {
	for {
		w, err := survey(ctx, u.Run, u.Working(u.Spec.Nodes))
		refused, ok := errors.AsType[*engine.PreflightError](err)
		if err == nil && len(w.Findings) == 0 {
			return w, nil
		}
		if err == nil {
			refused, ok = &engine.PreflightError{Findings: w.Findings}, true
		}
		if !ok {
			return nil, err
		}
		for _, f := range refused.Findings {
			n, err := u.Spec.Node(f.Host)
			if err != nil || n.ControlPlane || u.IsAside(n) {
				return nil, hint.Errorf(f.Remedy, "in the middle of the upgrade: %s: %s", f.Host, f.Message)
			}
			u.SetAside(n, phasePreflight, hint.Errorf(f.Remedy, "%s", f.Message))
		}
	}
}

// through runs one part of the upgrade on machines, concurrently if the phases allow it. It skips machines that fail. It makes only the changes for
// which keep returns true. A nil keep accepts all changes.
func (u *upgrade) through(ctx context.Context, w *engine.World, nodes []*engine.Node, keep func(engine.Change) bool, part engine.UpgradePart) error {
	nodes, phases := u.Working(nodes), phases.In(u.Want, part)
	p, err := u.Plan(w, nodes, phases)
	if err != nil {
		return err
	}
	for _, todo := range p.Todo {
		for name, cs := range todo {
			if keep != nil {
				todo[name] = slices.DeleteFunc(cs, func(c engine.Change) bool { return !keep(c) })
			}
		}
	}
	if err := u.Share(p, nodes); err != nil {
		return err
	}
	u.Planned = p
	pr := engine.NewProgress(p, nodes)
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			for _, ph := range phases {
				err := engine.ErrSetAside
				if !u.IsAside(n) {
					err = u.Step(ctx, p, pr, n, ph)
				}
				if err != nil && !errors.Is(err, engine.ErrSetAside) && !engine.IsCancel(ctx, err) {
					u.tellFailed(n, ph.Name(), err)
				}
				pr.End(n.Hostname, ph.Name(), err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (u *upgrade) tellFailed(n *engine.Node, phase string, err error) {
	u.Emit(engine.Event{Kind: engine.EventPhaseFailed, Host: n.Hostname, Phase: phase, Error: err.Error(), Hint: hint.Of(err)})
	u.SetAside(n, phase, err)
}

// heldBy reports whether one of the machines has failed. If a machine has failed, heldBy records that the other machines stay unchanged.
func (u *upgrade) heldBy(nodes []*engine.Node, phase string) bool {
	i := slices.IndexFunc(nodes, u.IsAside)
	if i < 0 {
		return false
	}
	u.holdBack(u.Working(u.Spec.Nodes), phase, nodes[i])
	return true
}

// holdBack reports that machines stay unchanged because another machine has failed.
func (u *upgrade) holdBack(nodes []*engine.Node, phase string, failed *engine.Node) {
	for _, n := range nodes {
		u.SetAside(n, phase, hint.Wrap(&notReached{failed: failed.Hostname}, "repair "+failed.Hostname+" and run the same command again"))
	}
}

// notReached is the error of a machine that stays unchanged because another machine has failed.
type notReached struct{ failed string }

func (*notReached) Unchanged() {}

func (e *notReached) Error() string {
	return "not upgraded: the upgrade of " + e.failed + " has failed"
}
