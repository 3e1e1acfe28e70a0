package cluster

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
)

// An upgrade brings a cluster that works to another release: first the images to all machines, then the static pods of the masters, one
// machine after the other, then what the cluster keeps of its settings, with CoreDNS and kube-proxy, and then the programs of each machine, which
// is out of service meanwhile. No kubelet and no kube-proxy is ever newer than an API server, as Kubernetes wants it. Each step looks first
// whether it is done, so that the next run goes on where one was interrupted.

//go:embed scripts/upgrade.sh
var upgradeScript string

// JobPolicy says what becomes of jobs on a machine that is upgraded.
type JobPolicy string

// Policies for jobs.
const (
	JobsWait    JobPolicy = "wait"    // the machine is upgraded when they have ended
	JobsRequeue JobPolicy = "requeue" // their tasks are evicted and begin again elsewhere
	JobsStop    JobPolicy = "stop"    // they are stopped
)

// JobPolicies are all of them.
func JobPolicies() []string { return []string{string(JobsWait), string(JobsRequeue), string(JobsStop)} }

// UpgradeOptions are those of Upgrade.
type UpgradeOptions struct {
	// AtOnce is how many workers are out of service at once; 1 where zero. Masters go one by one.
	AtOnce int
	// Jobs is JobsWait where empty.
	Jobs JobPolicy
	// MaxWait is how long JobsWait waits on one machine; zero: as long as it takes.
	MaxWait time.Duration
	// DrainTimeout is how long pods of a machine may take to leave; 5 min where zero.
	DrainTimeout time.Duration
	// Force deletes pods where a disruption budget or a missing owner forbids to evict them.
	Force bool
	// MaxFailures is how many workers may fail before the others are left as they are; 1 where zero.
	MaxFailures int
	// MaxBackupAge is how old the cluster's last backup may be; zero: no one asks.
	MaxBackupAge time.Duration
	// RemovedAPIs goes on although somebody uses APIs that the new release doesn't have.
	RemovedAPIs bool
	// Begin is called once nothing speaks against the upgrade, and before anything is changed; may be nil. Its error ends the run.
	Begin func() error

	look time.Duration // how often JobsWait looks; jobsLook where zero
}

// upgradeMark is on nodes that were cordoned for an upgrade, and by no one else.
const upgradeMark = "paictl.openpai.org/upgrade"

// phaseUpgrade begins the names of the scripts of an upgrade.
const phaseUpgrade = "upgrade"

// The cluster's notes of what was done for all of its machines are a ConfigMap. BackupNote is the key of the time of its last backup, RFC 3339.
const (
	NotesNamespace = "kube-system"
	NotesName      = "paictl"
	BackupNote     = "backup"
)

type upgrade struct {
	rotation
	opts UpgradeOptions
	// notReady are machines whose nodes weren't when the run began: they come last, and no one waits for their tasks.
	notReady map[string]bool
	// putBack are machines that were out of service and are again in service as they were.
	putBack map[string]bool
}

// Upgrade brings all machines to the release of the spec's bundle. Changes are those of the plan.
func Upgrade(ctx context.Context, s *Spec, o Options, up UpgradeOptions) ([]Change, error) {
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
	to := *s
	to.upgrading = true
	u := &upgrade{rotation: newRotation(newRun(&to, o), phaseUpgrade, upgradeMark), opts: up, notReady: map[string]bool{}, putBack: map[string]bool{}}
	defer u.close()
	nodes := to.Nodes
	u.emit(Event{Kind: EventRunStarted, Message: "cluster upgrade", Hosts: hostnames(nodes),
		Phases: []string{phasePreflight, phaseImages, phaseInit, phaseDrain, phaseContainerd, phaseKubelet, phaseUncordon, phaseNetwork, phaseLabels}})
	if err := u.connect(ctx, nodes); err != nil {
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
	w, err := u.settled(ctx)
	if err != nil {
		return nil, err
	}
	if w.founding() {
		return nil, hint.Errorf("paictl cluster up makes one", "there is no cluster yet")
	}
	findings, err := u.unfit(ctx, w)
	if err != nil {
		return nil, err
	}
	members := u.members(w)
	if len(findings) > 0 {
		return nil, u.refuse(append(u.check(w, members), findings...))
	}
	if w, err = u.preflight(ctx, w, members); err != nil {
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
		for _, c := range changes {
			u.emit(Event{Kind: EventPlanned, Host: c.Host, Phase: c.Phase, Change: &c})
		}
		return changes, u.summary("cluster upgrade", nodes, changes)
	}
	if up.Begin != nil {
		if err := up.Begin(); err != nil {
			return nil, err
		}
	}
	if err := u.all(ctx, w); err != nil {
		return changes, err
	}
	u.tellCopy(ctx)
	return changes, u.summary("cluster upgrade", nodes, changes)
}

// phasesOfPrograms are those that are done while a machine is out of service.
func (u *upgrade) phasesOfPrograms() []phase {
	return []phase{&containerd{spec: u.spec}, &kubelet{spec: u.spec}}
}

// phasesAfter disturb nothing that runs.
func (u *upgrade) phasesAfter() []phase {
	return []phase{&base{spec: u.spec}, &network{spec: u.spec}, &labels{spec: u.spec}}
}

// settled looks at the machines. What doesn't work gets two minutes: the API server that an interrupted run has restarted is about to come up, and the
// kubelet of its machine reports to that one alone.
func (u *upgrade) settled(ctx context.Context) (*world, error) {
	told := false
	for end := time.Now().Add(settleLimit); ; {
		w, err := u.survey(ctx, u.alive(u.spec.Nodes))
		if err != nil {
			return nil, err
		}
		n, why, err := u.unsettled(w)
		if err != nil || n == nil || time.Now().After(end) || u.opts.look < time.Second {
			return w, err
		}
		if !told {
			told = true
			u.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: fmt.Sprintf("%s; the run waits for it, up to %s", why, settleLimit)})
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(settleLook):
		}
	}
}

// unsettled is a member that doesn't work, and what of it; nil where all do.
func (u *upgrade) unsettled(w *world) (*Node, string, error) {
	if w.founding() {
		return nil, "", nil
	}
	for _, n := range u.alive(u.spec.ControlPlane()) {
		if w.member(n) && !w.healthy(n) {
			return n, "its API server doesn't answer", nil
		}
	}
	nodes, err := w.nodes()
	if err != nil {
		return nil, "", err
	}
	for _, n := range u.members(w) {
		if node, known := nodes[n.Hostname]; known && !isReady(node) {
			return n, "the node is not Ready", nil
		}
	}
	return nil, "", nil
}

const (
	settleLimit = 2 * time.Minute
	settleLook  = 5 * time.Second
)

// members are the machines that answer and belong to the cluster. Others are for "cluster up".
func (u *upgrade) members(w *world) []*Node {
	return slices.DeleteFunc(u.alive(u.spec.Nodes), func(n *Node) bool { return !w.member(n) })
}

// unfit are findings about the cluster as a whole: where part of it doesn't work, what an upgrade restarts may be what holds it up.
func (u *upgrade) unfit(ctx context.Context, w *world) ([]preflight.Finding, error) {
	var out []preflight.Finding
	fail := func(n *Node, check, remedy, format string, args ...any) {
		out = append(out, preflight.Finding{Host: n.Hostname, Check: check, Severity: preflight.SeverityError, Message: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	for _, n := range u.spec.ControlPlane() {
		switch {
		case u.host(n) == nil || u.isAside(n):
			fail(n, "control-plane", "start the machine, or take it out: paictl node remove "+n.Hostname, "the machine doesn't answer; an upgrade needs all machines of the control plane")
		case !w.member(n):
			fail(n, "control-plane", "take it out with paictl node remove "+n.Hostname+", and add it again after the upgrade; or paictl cluster up with the bundle of the release that all others run", "the machine isn't in the cluster")
		case !w.healthy(n) && w.of(n, phaseInit).Value("applied") == "interrupted":
			u.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: "its API server doesn't answer since an earlier change was interrupted; this run goes on with that"})
		case !w.healthy(n):
			fail(n, "control-plane", "see paictl cluster status, and journalctl -u kubelet on the machine", "its API server doesn't answer")
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	etcd, err := u.lookAtEtcd(ctx, u.leader)
	switch {
	case err != nil:
		return nil, err
	case etcd == nil:
		fail(u.leader, "etcd", "see paictl cluster status", "etcd doesn't answer")
	case !etcd.quorum:
		fail(u.leader, "etcd", "see paictl cluster status", "etcd has no quorum")
	default:
		for _, n := range u.spec.ControlPlane() {
			if !etcd.has(n) {
				fail(n, "etcd", "take the machine out and add it again: paictl node remove "+n.Hostname, "etcd doesn't have the machine as a member")
			}
		}
		for _, m := range etcd.members {
			if m.Learner || m.Name == "" {
				fail(u.leader, "etcd", "wait until it has caught up; paictl cluster status shows it", "etcd's member %s has not caught up with the others", m)
			}
		}
	}
	for _, n := range u.alive(u.spec.Nodes) {
		if !w.member(n) {
			u.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: "the machine isn't in the cluster, so this run leaves it alone", Hint: "paictl cluster up adds it afterwards"})
		}
	}
	if !w.healthy(u.leader) { // it is the only one; what it keeps of the cluster can't be read
		return out, nil
	}
	if err := u.unfitNodes(w, fail); err != nil {
		return nil, err
	}
	if err := u.olderParts(ctx, w, fail); err != nil {
		return nil, err
	}
	u.oldBackup(w, fail)
	return out, u.removedAPIs(ctx, fail)
}

// failure adds a finding that ends the run.
type failure func(n *Node, check, remedy, format string, args ...any)

// unfitNodes looks at what the cluster says of its nodes, those of machines that don't answer among them.
func (u *upgrade) unfitNodes(w *world, fail failure) error {
	nodes, err := w.nodes()
	if err != nil {
		return err
	}
	for _, n := range u.spec.Nodes {
		node, known := nodes[n.Hostname]
		switch {
		case !known:
		case u.host(n) == nil || u.isAside(n):
			p := preflight.Program{Name: preflight.KubeletName, Version: node.Status.NodeInfo.KubeletVersion}
			if why, remedy := preflight.Skew(p, u.spec.Bundle.Manifest().Kubernetes); why != "" {
				fail(n, "version", "start the machine, or take it out: paictl node remove "+n.Hostname+"; "+remedy, "the machine doesn't answer, and its kubelet has Kubernetes %s: %s", p.Version, why)
			}
		case !w.member(n) || isReady(node):
		case n.ControlPlane && w.healthy(n):
			fail(n, "control-plane", "see paictl cluster status, and journalctl -u kubelet on the machine", "the node is not Ready")
		case !n.ControlPlane:
			u.notReady[n.Hostname] = true
			u.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: "the node is not Ready", Hint: "see journalctl -u kubelet -u containerd on the machine; it is upgraded last"})
		}
	}
	return nil
}

// olderParts refuses an etcd of an earlier minor release, which can't read what the later one wrote, and an earlier CoreDNS, for which
// kubeadm has no way back.
func (u *upgrade) olderParts(ctx context.Context, w *world, fail failure) error {
	ref, err := u.spec.image("etcd")
	if err != nil {
		return err
	}
	_, tag := splitRef(ref)
	for _, n := range u.spec.ControlPlane() {
		have, want := parseTag(w.of(n, phaseInit).Value("etcd-release")), parseTag(tag)
		if have != nil && want != nil && (want.Major() < have.Major() || want.Major() == have.Major() && want.Minor() < have.Minor()) {
			fail(n, "etcd", "use a bundle with that etcd; or restore a backup that was made with the earlier one: paictl cluster restore", "it runs etcd %s, and etcd %s of the bundle can't read its data", have, want)
		}
	}
	if ref, err = u.spec.image("coredns"); err != nil {
		return err
	}
	_, tag = splitRef(ref)
	res, err := u.read(ctx, u.leader, phaseUpgrade, "coredns", selfAPI(u.spec, u.leader)+"self -n kube-system get deployment coredns --ignore-not-found --request-timeout=30s -o 'jsonpath={.spec.template.spec.containers[0].image}'\n")
	if err != nil {
		return err
	}
	_, runs := splitRef(strings.TrimSpace(string(res.Stdout)))
	if have, want := parseTag(runs), parseTag(tag); have != nil && want != nil && want.LessThan(have) {
		fail(u.leader, "coredns", "use a bundle with CoreDNS "+runs+" or a later one", "CoreDNS %s runs, and kubeadm can't go back to %s of the bundle", runs, tag)
	}
	return nil
}

// parseTag reads the version in an image's tag, such as 3.6.8-0; nil where there is none.
func parseTag(tag string) *utilversion.Version {
	v, err := utilversion.ParseGeneric(tag)
	if err != nil {
		return nil
	}
	return v
}

func isReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// oldBackup refuses where the cluster has no backup of late: what etcd's data becomes in a newer release no older one may be able to read.
func (u *upgrade) oldBackup(w *world, fail failure) {
	if u.opts.MaxBackupAge <= 0 {
		return
	}
	const remedy = "paictl cluster backup; --without-backup begins anyway"
	text := strings.Trim(w.of(u.leader, phaseInit).Value(BackupNote), `"`)
	at, err := time.Parse(time.RFC3339, text)
	switch age := u.run.opts.Clock().Sub(at); {
	case text == "":
		fail(u.leader, "backup", remedy, "no backup of the cluster was ever made")
	case err != nil:
		fail(u.leader, "backup", remedy, "when the last backup was made can't be read: %v", err)
	case age > u.opts.MaxBackupAge:
		fail(u.leader, "backup", remedy, "the last backup of the cluster is %s old", age.Round(time.Minute))
	}
}

// removedAPIs refuses where somebody uses an API that the new release doesn't have.
func (u *upgrade) removedAPIs(ctx context.Context, fail failure) error {
	to, err := utilversion.ParseSemantic(u.spec.Bundle.Manifest().Kubernetes)
	if err != nil {
		return err
	}
	release := fmt.Sprintf("%d.%d", to.Major(), to.Minor())
	for _, n := range u.spec.ControlPlane() {
		res, err := u.read(ctx, n, phaseUpgrade, "apis", selfAPI(u.spec, n)+upgradeScript+"g_removed "+release+"\n")
		if err != nil {
			return err
		}
		a, err := answer.Parse(res.Stdout)
		if err != nil {
			return err
		}
		for _, row := range a.All("removed") {
			for len(row) < 3 {
				row = append(row, "")
			}
			what := fmt.Sprintf("%s (%s/%s) is in use, and Kubernetes %s no longer has it", row[2], row[0], row[1], release)
			if u.opts.RemovedAPIs {
				u.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: what})
				continue
			}
			fail(n, "removed-api", "the audit log on the masters, /var/log/kubernetes/audit.log, says by whom; --removed-apis begins anyway", "%s", what)
		}
	}
	return nil
}

// changesOf is the plan: what is done where, in the order in which it is.
func (u *upgrade) changesOf(w *world) ([]Change, error) {
	var out []Change
	members := u.members(w)
	p, err := u.plan(w, members, slices.Concat([]phase{&images{spec: u.spec}, &initialise{spec: u.spec}}, u.phasesOfPrograms(), u.phasesAfter()))
	if err != nil {
		return nil, err
	}
	add := func(n *Node, phases ...string) {
		for _, ph := range phases {
			out = append(out, p.of(n, ph)...)
		}
	}
	for _, n := range members {
		add(n, phaseImages)
	}
	for _, n := range w.controlPlane() {
		add(n, phaseInit)
	}
	masters, workers := u.due(w, p)
	for _, n := range append(masters, workers...) {
		programs := len(p.of(n, phaseContainerd))+len(p.of(n, phaseKubelet)) > 0
		if programs {
			out = append(out, Change{Host: n.Hostname, Phase: phaseDrain, Action: "drain", Target: "node " + n.Hostname})
			add(n, phaseContainerd, phaseKubelet)
		}
		if programs && !u.cordoned[n.Hostname] || u.marked[n.Hostname] {
			out = append(out, Change{Host: n.Hostname, Phase: phaseUncordon, Action: "uncordon", Target: "node " + n.Hostname})
		}
	}
	for _, n := range members {
		add(n, phaseBase, phaseNetwork, phaseLabels)
	}
	return out, nil
}

// due are the machines whose programs change, or that an earlier run has left out of service: those first. Last are those that don't work.
func (u *upgrade) due(w *world, p *plan) (masters, workers []*Node) {
	for _, n := range u.members(w) {
		if len(p.of(n, phaseContainerd))+len(p.of(n, phaseKubelet)) == 0 && !u.marked[n.Hostname] {
			continue
		}
		if n.ControlPlane {
			masters = append(masters, n)
		} else {
			workers = append(workers, n)
		}
	}
	for _, ns := range [][]*Node{masters, workers} {
		slices.SortStableFunc(ns, func(a, b *Node) int {
			return cmp.Or(compareBool(u.notReady[a.Hostname], u.notReady[b.Hostname]), compareBool(u.marked[b.Hostname], u.marked[a.Hostname]))
		})
	}
	return masters, workers
}

// all makes the changes. A worker that fails keeps no other from its upgrade, up to MaxFailures; a master does, and so does any machine that doesn't get
// its images: kube-proxy is about to change on all of them.
func (u *upgrade) all(ctx context.Context, w *world) error {
	members := u.members(w)
	if err := u.through(ctx, w, members, nil, &images{spec: u.spec}); err != nil {
		return err
	}
	if u.heldBy(members, phaseImages) {
		return nil
	}
	first := func(c Change) bool { return c.Target != runUpload }
	if err := u.through(ctx, w, w.controlPlane(), first, &initialise{spec: u.spec}); err != nil {
		return err
	}
	if u.heldBy(u.spec.ControlPlane(), phaseInit) {
		return nil
	}
	w, err := u.again(ctx)
	if err != nil {
		return err
	}
	if err := u.through(ctx, w, w.controlPlane(), nil, &initialise{spec: u.spec}); err != nil || u.heldBy(u.spec.ControlPlane(), phaseInit) {
		return err
	}
	if complete, err := u.machines(ctx, w); err != nil || !complete {
		return err
	}
	if w, err = u.again(ctx); err != nil {
		return err
	}
	if err := u.through(ctx, w, u.members(w), nil, u.phasesAfter()...); err != nil {
		return err
	}
	for _, n := range u.members(w) {
		u.emit(Event{Kind: EventHostDone, Host: n.Hostname})
	}
	return nil
}

// again looks at all machines as they are now. A worker that can't be looked at is set aside.
func (u *upgrade) again(ctx context.Context) (*world, error) {
	for {
		w, err := u.survey(ctx, u.alive(u.spec.Nodes))
		refused, ok := errors.AsType[*PreflightError](err)
		if err == nil && len(w.findings) == 0 {
			return w, nil
		}
		if err == nil {
			refused, ok = &PreflightError{Findings: w.findings}, true
		}
		if !ok {
			return nil, err
		}
		for _, f := range refused.Findings {
			n, err := u.spec.Node(f.Host)
			if err != nil || n.ControlPlane || u.isAside(n) {
				return nil, hint.Errorf(f.Remedy, "in the middle of the upgrade: %s: %s", f.Host, f.Message)
			}
			u.setAside(n, phasePreflight, hint.Errorf(f.Remedy, "%s", f.Message))
		}
	}
}

// through takes machines through phases, all at once where the phases let them, and sets aside those that fail. Changes that keep doesn't want
// are left for later; nil wants all.
func (u *upgrade) through(ctx context.Context, w *world, nodes []*Node, keep func(Change) bool, phases ...phase) error {
	nodes = u.alive(nodes)
	p, err := u.plan(w, nodes, phases)
	if err != nil {
		return err
	}
	for _, todo := range p.todo {
		for name, cs := range todo {
			if keep != nil {
				todo[name] = slices.DeleteFunc(cs, func(c Change) bool { return !keep(c) })
			}
		}
	}
	u.planned = p
	pr := newProgress(p, nodes)
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			for _, ph := range phases {
				err := errSetAside
				if !u.isAside(n) {
					err = u.step(ctx, p, pr, n, ph)
				}
				if err != nil && !errors.Is(err, errSetAside) && !isCancel(ctx, err) {
					u.tellFailed(n, ph.name(), err)
				}
				pr.end(n.Hostname, ph.name(), err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (u *upgrade) tellFailed(n *Node, phase string, err error) {
	u.emit(Event{Kind: EventPhaseFailed, Host: n.Hostname, Phase: phase, Error: err.Error(), Hint: hint.Of(err)})
	u.setAside(n, phase, err)
}

// heldBy reports whether one of the machines has failed; then all others are left for the next run.
func (u *upgrade) heldBy(nodes []*Node, phase string) bool {
	i := slices.IndexFunc(nodes, u.isAside)
	if i < 0 {
		return false
	}
	u.holdBack(u.alive(u.spec.Nodes), phase, nodes[i])
	return true
}

// holdBack leaves machines as they are, since another has failed.
func (u *upgrade) holdBack(nodes []*Node, phase string, failed *Node) {
	for _, n := range nodes {
		u.setAside(n, phase, hint.Wrap(&notReached{failed: failed.Hostname}, "repair "+failed.Hostname+" and run the same command again"))
	}
}

// notReached says that an upgrade stopped before it came to a machine.
type notReached struct{ failed string }

func (*notReached) leftAlone() {}

func (e *notReached) Error() string {
	return "not upgraded: the upgrade of " + e.failed + " has failed"
}
