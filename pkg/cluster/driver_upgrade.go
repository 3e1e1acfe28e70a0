package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
)

// A driver can be exchanged only while no program uses a GPU. On a working cluster, UpgradeDriver therefore takes a few machines at a time
// out of service, exchanges their drivers, and puts them back.

// DriverOptions are the options of UpgradeDriver.
type DriverOptions struct {
	// AtOnce is how many machines are out of service at once; zero means 1.
	AtOnce int
	// DrainTimeout is how long pods of a machine may take to leave; zero means 5 minutes.
	DrainTimeout time.Duration
	// Force deletes pods even if a disruption budget or a missing owner forbids their eviction.
	Force bool
	// Reboot restarts machines that can't load the new module otherwise.
	Reboot bool
	// Begin is called before anything is changed, once no machine objects to the change; it may be nil. Its error ends the run.
	Begin func() error
}

// phaseReboot restarts a machine.
const phaseReboot = "reboot"

// driverMark is the annotation of nodes that were cordoned only for the exchange of their driver.
const driverMark = "paictl.openpai.org/driver-upgrade"

// driverUpgrade is one run.
type driverUpgrade struct {
	rotation
	opts   DriverOptions
	driver *nvidiaDriver
}

// UpgradeDriver changes the driver of the machines in Options.Limit as the configuration asks; without a limit, of all machines with GPUs. It leaves
// machines alone whose driver is already as configured. It stops at the first machine that fails; each run continues where the last one ended.
func UpgradeDriver(ctx context.Context, s *Spec, o Options, d DriverOptions) ([]Change, error) {
	if d.AtOnce <= 0 {
		d.AtOnce = 1
	}
	if d.DrainTimeout <= 0 {
		d.DrainTimeout = 5 * time.Minute
	}
	u := &driverUpgrade{rotation: newRotation(newRun(s, o), phaseDriver, driverMark), opts: d, driver: &nvidiaDriver{want: s.fresh()}}
	defer u.close()
	nodes, err := u.nodes()
	if err != nil {
		return nil, err
	}
	u.emit(Event{Kind: EventRunStarted, Message: "node driver upgrade", Hosts: hostnames(nodes), Phases: u.phases()})
	if err := u.connect(ctx, u.reached(nodes)); err != nil {
		return nil, err
	}
	if !o.DryRun {
		held, release, err := u.lock(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		ctx = held
	}
	w, err := u.survey(ctx, u.reached(nodes))
	if err != nil {
		return nil, err
	}
	if u.leader == nil || !w.member(u.leader) {
		return nil, hint.Errorf("paictl cluster up installs drivers before there is a cluster", "there is no cluster yet")
	}
	due, changes, err := u.due(ctx, w, nodes)
	if err != nil {
		return nil, err
	}
	if o.DryRun {
		for _, c := range changes {
			u.emit(Event{Kind: EventPlanned, Host: c.Host, Phase: c.Phase, Change: &c})
		}
		return changes, u.summary("node driver upgrade", nodes, changes)
	}
	if d.Begin != nil {
		if err := d.Begin(); err != nil {
			return nil, err
		}
	}
	if err := u.all(ctx, w, nodes, due); err != nil {
		return changes, err
	}
	return changes, u.summary("node driver upgrade", nodes, changes)
}

func (u *driverUpgrade) phases() []string {
	if !u.opts.Reboot {
		return []string{phasePreflight, phaseDrain, phaseDriver, phaseUncordon}
	}
	return []string{phasePreflight, phaseDrain, phaseDriver, phaseReboot, phaseUncordon}
}

// nodes returns the machines with NVIDIA GPUs whose driver paictl installs.
func (u *driverUpgrade) nodes() ([]*Node, error) {
	if policy := u.spec.driver().Policy; policy != config.GPUDriverInstall {
		return nil, hint.Errorf("set gpu-driver: {policy: install} in kubernetes-configuration.yaml, or upgrade the driver yourself",
			"the configuration says gpu-driver.policy %s: paictl doesn't change drivers", policy)
	}
	nodes, err := u.selected()
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return !u.driver.wanted(n) })
	if len(u.run.opts.Limit) > 0 && len(out) < len(nodes) {
		i := slices.IndexFunc(nodes, func(n *Node) bool { return !u.driver.wanted(n) })
		return nil, hint.Errorf("see its machine-type in layout.yaml", "%s has no GPUs in the layout", nodes[i].Hostname)
	}
	if len(out) == 0 {
		return nil, errors.New("no machine of the layout has GPUs that need a driver")
	}
	return out, nil
}

// due returns the machines whose driver has to be exchanged or completed, and the changes. Programs that use GPUs now don't count as obstacles: the
// drain removes them. Any other obstacle on any machine ends the run before anything is changed.
func (u *driverUpgrade) due(ctx context.Context, w *world, nodes []*Node) (due []*Node, changes []Change, err error) {
	if err := u.readMarks(ctx); err != nil {
		return nil, nil, err
	}
	u.tellLeft(nodes, func(host string) string { return "paictl node driver upgrade " + host })
	var findings []preflight.Finding
	for _, n := range u.alive(nodes) {
		s, err := u.look(w, n, true)
		if err != nil {
			return nil, nil, err
		}
		if s == nil {
			continue
		}
		for _, f := range s.findings {
			if f.Warning {
				u.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: f.Message, Hint: f.Remedy})
			}
		}
		if s.refused() {
			findings = append(findings, driverFindings(n, s)...)
			continue
		}
		cs := u.driver.changes(s)
		if !w.member(n) && len(cs) > 0 {
			findings = append(findings, preflight.Finding{Host: n.Hostname, Check: "member", Severity: preflight.SeverityError, Message: "the machine isn't in the cluster", Remedy: "paictl cluster up adds it, with its driver"})
			continue
		}
		u.emit(Event{Kind: EventPhaseDone, Host: n.Hostname, Phase: phasePreflight})
		if len(cs) > 0 {
			due = append(due, n)
			changes = append(changes, Change{Host: n.Hostname, Phase: phaseDrain, Action: "drain", Target: "node " + n.Hostname})
			for _, c := range cs {
				c.Host, c.Phase = n.Hostname, phaseDriver
				changes = append(changes, c)
			}
		}
		if len(cs) > 0 && !u.cordoned[n.Hostname] || u.marked[n.Hostname] {
			changes = append(changes, Change{Host: n.Hostname, Phase: phaseUncordon, Action: "uncordon", Target: "node " + n.Hostname})
		}
	}
	if len(findings) > 0 {
		return nil, nil, u.refuse(findings)
	}
	// First the machine on which the last run stopped: it is out of service already.
	slices.SortStableFunc(due, func(a, b *Node) int { return compareBool(u.marked[b.Hostname], u.marked[a.Hostname]) })
	return due, changes, nil
}

// look returns the present and the wanted state of a machine's driver. On a drained machine, no program uses the GPUs.
func (u *driverUpgrade) look(w *world, n *Node, drained bool) (*driverState, error) {
	facts, err := layout.ParseFacts(w.facts[n.Hostname].sections["facts"].Raw)
	if err != nil {
		return nil, fmt.Errorf("read %s's answer: %w", n.Hostname, err)
	}
	s := u.driver.look(facts, w.of(n, phaseDriver))
	if s == nil {
		return nil, nil
	}
	if drained && slices.ContainsFunc(s.findings, func(f gpudriver.Finding) bool { return f.ID == "in-use" }) {
		s.machine.Users = nil
		s.plan, s.findings = gpudriver.Decide(s.machine, u.driver.configured())
	}
	return s, nil
}

// driverFindings returns the findings that keep a machine from getting its driver.
func driverFindings(n *Node, s *driverState) (out []preflight.Finding) {
	for _, f := range s.findings {
		if !f.Warning {
			out = append(out, preflight.Finding{Host: n.Hostname, Check: "gpu-driver-" + f.ID, Severity: preflight.SeverityError, Message: f.Message, Remedy: f.Remedy})
		}
	}
	return out
}

// all works on a few machines after the other. It leaves the machines that it doesn't reach unchanged.
func (u *driverUpgrade) all(ctx context.Context, w *world, nodes, due []*Node) error {
	for _, n := range nodes {
		if !u.marked[n.Hostname] || slices.Contains(due, n) || u.isAside(n) {
			continue
		}
		// The earlier run was interrupted between the exchange and this point, or stopped by a finding.
		err := u.verify(ctx, n, u.driver)
		phase := phaseDriver
		if err == nil {
			phase, err = phaseUncordon, u.tell(ctx, n, phaseUncordon, u.uncordon)
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
		if i := slices.IndexFunc(batch, u.isAside); i >= 0 {
			u.holdBack(due, batch, batch[i])
			return nil
		}
		for _, n := range batch {
			u.emit(Event{Kind: EventHostDone, Host: n.Hostname})
		}
	}
	return nil
}

// holdBack sets aside the machines that the run hasn't reached, since one has failed. It leaves them unchanged.
func (u *driverUpgrade) holdBack(due, batch []*Node, failed *Node) {
	for _, n := range due {
		if n != failed && !slices.Contains(batch, n) && !u.isDone(n) {
			u.setAside(n, phaseDriver, hint.Wrap(&heldBack{phase: phaseDriver, host: failed.Hostname},
				fmt.Sprintf("repair %s and run the same command again; if only this machine is broken, name the other machines to continue without it", failed.Hostname)))
		}
	}
}

// isDone reports whether this run has changed a machine.
func (u *driverUpgrade) isDone(n *Node) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.changes[n.Hostname] > 0
}
