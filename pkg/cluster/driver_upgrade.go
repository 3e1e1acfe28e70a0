package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
)

// A driver can be replaced only while no program uses a GPU. UpgradeDriver therefore drains a few machines at a time, replaces their drivers, and
// uncordons the machines.

// DriverOptions configure UpgradeDriver.
type DriverOptions struct {
	// AtOnce is how many machines are out of service at a time; zero means 1.
	AtOnce int
	// DrainTimeout is the time limit for evicting the pods of a machine; zero means 5 minutes.
	DrainTimeout time.Duration
	// Force deletes pods even if a disruption budget or a missing owner forbids their eviction.
	Force bool
	// Reboot restarts machines that can't load the new module without a restart.
	Reboot bool
	// Begin, if set, is called after all checks have passed and before any change. If Begin returns an error, the run ends.
	Begin func() error
}

const phaseReboot = "reboot"

// driverMark is the annotation of nodes that a driver upgrade has cordoned.
const driverMark = "paictl.openpai.org/driver-upgrade"

type driverUpgrade struct {
	rotation
	opts   DriverOptions
	driver *phases.NvidiaDriver
}

// UpgradeDriver installs the configured driver on the machines in Options.Limit. Without a limit, it includes all machines with GPUs. It skips
// machines that already have the configured driver. It stops at the first machine that fails, and the next run continues at that machine.
func UpgradeDriver(ctx context.Context, s *engine.Spec, o engine.Options, d DriverOptions) ([]engine.Change, error) {
	if d.AtOnce <= 0 {
		d.AtOnce = 1
	}
	if d.DrainTimeout <= 0 {
		d.DrainTimeout = 5 * time.Minute
	}
	u := &driverUpgrade{rotation: newRotation(engine.NewRun(s, o), phases.PhaseDriver, driverMark), opts: d, driver: phases.NewDriver(s.Fresh())}
	defer u.Close()
	nodes, err := u.nodes()
	if err != nil {
		return nil, err
	}
	u.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "node driver upgrade", Hosts: hostnames(nodes), Phases: u.phases()})
	if err := connect(ctx, u.Run, u.Reached(nodes)); err != nil {
		return nil, err
	}
	ctx, unlock, err := u.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	w, err := survey(ctx, u.Run, u.Reached(nodes))
	if err != nil {
		return nil, err
	}
	if u.Leader == nil || !w.Member(u.Leader) {
		return nil, hint.Errorf("paictl cluster up installs drivers before there is a cluster", "there is no cluster yet")
	}
	due, changes, err := u.due(ctx, w, nodes)
	if err != nil {
		return nil, err
	}
	if o.DryRun {
		u.EmitPlanned(changes)
		return changes, u.Summary("node driver upgrade", nodes, changes)
	}
	if d.Begin != nil {
		if err := d.Begin(); err != nil {
			return nil, err
		}
	}
	if err := u.all(ctx, w, nodes, due); err != nil {
		return changes, err
	}
	return changes, u.Summary("node driver upgrade", nodes, changes)
}

func (u *driverUpgrade) phases() []string {
	if !u.opts.Reboot {
		return []string{phasePreflight, phaseDrain, phases.PhaseDriver, phaseUncordon}
	}
	return []string{phasePreflight, phaseDrain, phases.PhaseDriver, phaseReboot, phaseUncordon}
}

func (u *driverUpgrade) nodes() ([]*engine.Node, error) {
	if policy := phases.Driver(u.Spec).Policy; policy != config.GPUDriverInstall {
		return nil, hint.Errorf("set gpu-driver: {policy: install} in kubernetes-configuration.yaml, or upgrade the driver yourself",
			"the configuration says gpu-driver.policy %s: paictl doesn't change drivers", policy)
	}
	nodes, err := u.Selected()
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(slices.Clone(nodes), func(n *engine.Node) bool { return !u.driver.Wanted(n) })
	if len(u.Opts.Limit) > 0 && len(out) < len(nodes) {
		i := slices.IndexFunc(nodes, func(n *engine.Node) bool { return !u.driver.Wanted(n) })
		return nil, hint.Errorf("see its machine-type in layout.yaml", "%s has no GPUs in the layout", nodes[i].Hostname)
	}
	if len(out) == 0 {
		return nil, errors.New("no machine of the layout has GPUs that need a driver")
	}
	return out, nil
}

// due returns the machines whose driver must be replaced or completed, and the changes to all machines. It ignores programs that use GPUs, because
// the drain removes such programs. It returns an error if any other obstacle exists on any machine.
func (u *driverUpgrade) due(ctx context.Context, w *engine.World, nodes []*engine.Node) (due []*engine.Node, changes []engine.Change, err error) {
	if err := u.readMarks(ctx); err != nil {
		return nil, nil, err
	}
	u.tellLeft(nodes, func(host string) string { return "paictl node driver upgrade " + host })
	var findings []preflight.Finding
	for _, n := range u.Working(nodes) {
		s, err := u.look(w, n, true)
		if err != nil {
			return nil, nil, err
		}
		if s == nil {
			continue
		}
		for _, f := range s.Findings {
			if f.Warning {
				u.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: f.Message, Hint: f.Remedy})
			}
		}
		if s.Refused() {
			findings = append(findings, driverFindings(n, s)...)
			continue
		}
		cs := u.driver.Changes(s)
		if !w.Member(n) && len(cs) > 0 {
			findings = append(findings, preflight.Finding{Host: n.Hostname, Check: "member", Severity: preflight.SeverityError, Message: "the machine isn't in the cluster", Remedy: "paictl cluster up adds it, with its driver"})
			continue
		}
		u.Emit(engine.Event{Kind: engine.EventPhaseDone, Host: n.Hostname, Phase: phasePreflight})
		if len(cs) > 0 {
			due = append(due, n)
			changes = append(changes, engine.Change{Host: n.Hostname, Phase: phaseDrain, Action: "drain", Target: "node " + n.Hostname})
			for _, c := range cs {
				c.Host, c.Phase = n.Hostname, phases.PhaseDriver
				changes = append(changes, c)
			}
		}
		if len(cs) > 0 && !u.cordoned[n.Hostname] || u.marked[n.Hostname] {
			changes = append(changes, engine.Change{Host: n.Hostname, Phase: phaseUncordon, Action: "uncordon", Target: "node " + n.Hostname})
		}
	}
	if len(findings) > 0 {
		return nil, nil, refuse(u.Run, findings)
	}
	// Begin with the machines that an earlier run has left cordoned.
	slices.SortStableFunc(due, func(a, b *engine.Node) int { return engine.CompareBool(u.marked[b.Hostname], u.marked[a.Hostname]) })
	return due, changes, nil
}

// look returns the current and the desired state of a machine's driver. If drained is set, it assumes that no program uses the GPUs.
func (u *driverUpgrade) look(w *engine.World, n *engine.Node, drained bool) (*phases.DriverState, error) {
	facts, err := layout.ParseFacts(w.Facts[n.Hostname].Sections["facts"].Raw)
	if err != nil {
		return nil, fmt.Errorf("read %s's answer: %w", n.Hostname, err)
	}
	s := u.driver.Decide(facts, w.Of(n, phases.PhaseDriver))
	if s == nil {
		return nil, nil
	}
	if drained && slices.ContainsFunc(s.Findings, func(f gpudriver.Finding) bool { return f.ID == "in-use" }) {
		s.Machine.Users = nil
		s.Plan, s.Findings = gpudriver.Decide(s.Machine, u.driver.Configured())
	}
	return s, nil
}

// driverFindings returns the findings that prevent the installation of a machine's driver.
func driverFindings(n *engine.Node, s *phases.DriverState) (out []preflight.Finding) {
	for _, f := range s.Findings {
		if !f.Warning {
			out = append(out, preflight.Finding{Host: n.Hostname, Check: "gpu-driver-" + f.ID, Severity: preflight.SeverityError, Message: f.Message, Remedy: f.Remedy})
		}
	}
	return out
}

// all upgrades the machines in batches. After a failure, it leaves the remaining machines unchanged.
func (u *driverUpgrade) all(ctx context.Context, w *engine.World, nodes, due []*engine.Node) error {
	for _, n := range nodes {
		if !u.marked[n.Hostname] || slices.Contains(due, n) || u.IsAside(n) {
			continue
		}
		// The driver is already installed, but an earlier run ended before it uncordoned the machine.
		err := u.Verify(ctx, n, u.driver)
		phase := phases.PhaseDriver
		if err == nil {
			phase, err = phaseUncordon, tell(ctx, u.Run, n, phaseUncordon, u.uncordon)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			u.fail(ctx, n, phase, err)
			u.holdBack(due, nil, n)
			return nil
		}
	}
	for batch := range slices.Chunk(due, u.opts.AtOnce) {
		u.batch(ctx, w, batch)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if i := slices.IndexFunc(batch, u.IsAside); i >= 0 {
			u.holdBack(due, batch, batch[i])
			return nil
		}
		for _, n := range batch {
			u.Emit(engine.Event{Kind: engine.EventHostDone, Host: n.Hostname})
		}
	}
	return nil
}

// holdBack reports that the machines in due stay unchanged because another machine has failed.
func (u *driverUpgrade) holdBack(due, batch []*engine.Node, failed *engine.Node) {
	for _, n := range due {
		if n != failed && !slices.Contains(batch, n) && !u.isDone(n) {
			u.SetAside(n, phases.PhaseDriver, hint.Wrap(&engine.HeldBackError{Phase: phases.PhaseDriver, Host: failed.Hostname},
				fmt.Sprintf("repair %s and run the same command again; if only this machine is broken, name the other machines to continue without it", failed.Hostname)))
		}
	}
}

func (u *driverUpgrade) isDone(n *engine.Node) bool {
	u.Mu.Lock()
	defer u.Mu.Unlock()
	return u.Changes[n.Hostname] > 0
}
