package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
)

// settled surveys the machines. If a member doesn't work, it repeats the survey for up to two minutes. An API server that an interrupted run has
// restarted may still be starting, and the kubelet on its machine reports only to that API server.
func (u *upgrade) settled(ctx context.Context) (*engine.World, error) {
	told := false
	for end := time.Now().Add(settleLimit); ; {
		w, err := survey(ctx, u.Run, u.Working(u.Spec.Nodes))
		if err != nil {
			return nil, err
		}
		n, why, err := u.unsettled(w)
		if err != nil || n == nil || time.Now().After(end) || u.opts.look < time.Second {
			return w, err
		}
		if !told {
			told = true
			u.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: fmt.Sprintf("%s; the run waits for it, up to %s", why, settleLimit)})
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(settleLook):
		}
	}
}

// unsettled returns a member that doesn't work and the reason, or nil if all members work.
func (u *upgrade) unsettled(w *engine.World) (*engine.Node, string, error) {
	if w.Founding() {
		return nil, "", nil
	}
	for _, n := range u.Working(u.Spec.ControlPlane()) {
		if w.Member(n) && !w.Healthy(n) {
			return n, "its API server doesn't answer", nil
		}
	}
	nodes, err := w.Nodes()
	if err != nil {
		return nil, "", err
	}
	for _, n := range u.members(w) {
		if node, known := nodes[n.Hostname]; known && !engine.IsReady(node) {
			return n, "the node is not Ready", nil
		}
	}
	return nil, "", nil
}

const (
	settleLimit = 2 * time.Minute
	settleLook  = 5 * time.Second
)

// unfit returns findings about the cluster as a whole. A cluster with a broken part may depend on the part that the upgrade would restart next.
func (u *upgrade) unfit(ctx context.Context, w *engine.World) ([]preflight.Finding, error) {
	var out []preflight.Finding
	fail := func(n *engine.Node, check, remedy, format string, args ...any) {
		out = append(out, preflight.Finding{Host: n.Hostname, Check: check, Severity: preflight.SeverityError, Message: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	for _, n := range u.Spec.ControlPlane() {
		switch {
		case u.Host(n) == nil || u.IsAside(n):
			fail(n, "control-plane", "start the machine, or remove it: paictl node remove "+n.Hostname, "the machine doesn't answer; an upgrade needs all machines of the control plane")
		case !w.Member(n):
			fail(n, "control-plane", "remove it with paictl node remove "+n.Hostname+", and add it again after the upgrade; or paictl cluster up with the bundle of the release that all others run", "the machine isn't in the cluster")
		case !w.Healthy(n) && w.Of(n, engine.PhaseInit).Value("applied") == "interrupted":
			u.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: "its API server hasn't answered since an earlier change was interrupted; this run continues that change"})
		case !w.Healthy(n):
			fail(n, "control-plane", "see paictl cluster status, and journalctl -u kubelet on the machine", "its API server doesn't answer")
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	etcd, err := u.ReadEtcd(ctx, u.Leader)
	switch {
	case err != nil:
		return nil, err
	case etcd == nil:
		fail(u.Leader, "etcd", "see paictl cluster status", "etcd doesn't answer")
	case !etcd.Quorum:
		fail(u.Leader, "etcd", "see paictl cluster status", "etcd has no quorum")
	default:
		for _, n := range u.Spec.ControlPlane() {
			if !etcd.Has(n) {
				fail(n, "etcd", "take the machine out and add it again: paictl node remove "+n.Hostname, "etcd doesn't have the machine as a member")
			}
		}
		for _, m := range etcd.Members {
			if m.Learner || m.Name == "" {
				fail(u.Leader, "etcd", "wait until it has caught up; paictl cluster status shows it", "etcd's member %s has not caught up with the others", m)
			}
		}
	}
	for _, n := range u.Working(u.Spec.Nodes) {
		if !w.Member(n) {
			u.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: "the machine isn't in the cluster, so this run leaves it alone", Hint: "paictl cluster up adds it afterwards"})
		}
	}
	if !w.Healthy(u.Leader) { // it is the only one, and its stored settings can't be read
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
type failure func(n *engine.Node, check, remedy, format string, args ...any)

// unfitNodes checks the nodes in the API, including nodes whose machines don't respond.
func (u *upgrade) unfitNodes(w *engine.World, fail failure) error {
	nodes, err := w.Nodes()
	if err != nil {
		return err
	}
	for _, n := range u.Spec.Nodes {
		node, known := nodes[n.Hostname]
		switch {
		case !known:
		case u.Host(n) == nil || u.IsAside(n):
			p := preflight.Program{Name: preflight.KubeletName, Version: node.Status.NodeInfo.KubeletVersion}
			if why, remedy := preflight.Skew(p, u.Spec.Bundle.Manifest().Kubernetes); why != "" {
				fail(n, "version", "start the machine, or remove it: paictl node remove "+n.Hostname+"; "+remedy, "the machine doesn't answer, and its kubelet has Kubernetes %s: %s", p.Version, why)
			}
		case !w.Member(n) || engine.IsReady(node):
		case n.ControlPlane && w.Healthy(n):
			fail(n, "control-plane", "see paictl cluster status, and journalctl -u kubelet on the machine", "the node is not Ready")
		case !n.ControlPlane:
			u.notReady[n.Hostname] = true
			u.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: "the node is not Ready", Hint: "see journalctl -u kubelet -u containerd on the machine; it is upgraded last"})
		}
	}
	return nil
}

// olderParts adds a finding if the bundle contains an earlier minor release of etcd, because etcd can't read the data of a later release. It also
// adds a finding for an earlier CoreDNS, because kubeadm can't downgrade CoreDNS.
func (u *upgrade) olderParts(ctx context.Context, w *engine.World, fail failure) error {
	ref, err := u.Spec.Image("etcd")
	if err != nil {
		return err
	}
	_, tag := phases.SplitRef(ref)
	for _, n := range u.Spec.ControlPlane() {
		have, want := parseTag(w.Of(n, engine.PhaseInit).Value("etcd-release")), parseTag(tag)
		if have != nil && want != nil && (want.Major() < have.Major() || want.Major() == have.Major() && want.Minor() < have.Minor()) {
			fail(n, "etcd", "use a bundle with that etcd; or restore a backup that was made with the earlier one: paictl cluster restore", "it runs etcd %s, and etcd %s of the bundle can't read its data", have, want)
		}
	}
	if ref, err = u.Spec.Image("coredns"); err != nil {
		return err
	}
	_, tag = phases.SplitRef(ref)
	res, err := u.Read(ctx, u.Leader, phaseUpgrade, "coredns", u.Spec.SelfAPI(u.Leader)+"self -n kube-system get deployment coredns --ignore-not-found --request-timeout=30s -o 'jsonpath={.spec.template.spec.containers[0].image}'\n")
	if err != nil {
		return err
	}
	_, runs := phases.SplitRef(strings.TrimSpace(string(res.Stdout)))
	if have, want := parseTag(runs), parseTag(tag); have != nil && want != nil && want.LessThan(have) {
		fail(u.Leader, "coredns", "use a bundle with CoreDNS "+runs+" or a later one", "CoreDNS %s runs, and kubeadm can't go back to %s of the bundle", runs, tag)
	}
	return nil
}

// parseTag parses the version in an image tag such as 3.6.8-0. It returns nil if the tag contains no version.
func parseTag(tag string) *utilversion.Version {
	v, err := utilversion.ParseGeneric(tag)
	if err != nil {
		return nil
	}
	return v
}

// oldBackup adds a finding if the cluster has no recent backup. Only a backup makes a downgrade possible, because an older release may be unable to
// read the data that a newer release has written to etcd.
func (u *upgrade) oldBackup(w *engine.World, fail failure) {
	if u.opts.MaxBackupAge <= 0 {
		return
	}
	const remedy = "paictl cluster backup; --without-backup begins anyway"
	text := strings.Trim(w.Of(u.Leader, engine.PhaseInit).Value(BackupNote), `"`)
	at, err := time.Parse(time.RFC3339, text)
	switch age := u.Run.Opts.Clock().Sub(at); {
	case text == "":
		fail(u.Leader, "backup", remedy, "no backup of the cluster was ever made")
	case err != nil:
		fail(u.Leader, "backup", remedy, "when the last backup was made can't be read: %v", err)
	case age > u.opts.MaxBackupAge:
		fail(u.Leader, "backup", remedy, "the last backup of the cluster is %s old", age.Round(time.Minute))
	}
}

// removedAPIs adds a finding for each API that clients use and that the new release doesn't contain.
func (u *upgrade) removedAPIs(ctx context.Context, fail failure) error {
	to, err := utilversion.ParseSemantic(u.Spec.Bundle.Manifest().Kubernetes)
	if err != nil {
		return err
	}
	release := fmt.Sprintf("%d.%d", to.Major(), to.Minor())
	for _, n := range u.Spec.ControlPlane() {
		a, err := engine.Answer(u.Read(ctx, n, phaseUpgrade, "apis", u.Spec.SelfAPI(n)+upgradeScript+"g_removed "+release+"\n"))
		if err != nil {
			return err
		}
		for _, row := range a.All("removed") {
			for len(row) < 3 {
				row = append(row, "")
			}
			what := fmt.Sprintf("%s (%s/%s) is in use, and Kubernetes %s no longer has it", row[2], row[0], row[1], release)
			if u.opts.RemovedAPIs {
				u.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phasePreflight, Message: what})
				continue
			}
			fail(n, "removed-api", "the audit log on the masters, /var/log/kubernetes/audit.log, says by whom; --removed-apis begins anyway", "%s", what)
		}
	}
	return nil
}
