package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
)

// initialise makes a cluster with "kubeadm init" on one control plane machine, and applies a changed
// configuration to the control plane of an existing cluster, to one machine after the other.
type initialise struct{ want *desired }

const (
	phaseInit       = "init"
	kubeadmConf     = paths.Kubeadm
	auditPolicyFile = confDir + "/audit-policy.yaml"
	encryptionFile  = confDir + "/encryption.yaml"
	adminKubeconfig = "/etc/kubernetes/admin.conf"
)

//go:embed files/audit-policy.yaml
var auditPolicy []byte

func (*initialise) name() string         { return phaseInit }
func (*initialise) traits() traits       { return traits{upgrade: upgradeControlPlane, repairs: true} }
func (*initialise) applies(n *Node) bool { return n.ControlPlane }

// waits orders the machines whose settings change: the next one begins when the one before it is healthy again.
func (p *initialise) waits(n *Node, pl *plan) []step {
	if !reconfigures(pl, n) {
		return nil
	}
	var out []step
	// If the API's address moves to the machines' own, kube-proxy and the pods' network use it at once on all machines.
	if pl.world.addressMoves() && p.want.local() {
		for _, m := range p.want.Nodes {
			out = append(out, step{host: m.Hostname, phase: phaseAPIProxy})
		}
	}
	if pl.world.beginsToVerify(n) { // kubelets need their certificates before API servers verify them
		for _, m := range p.want.Nodes {
			out = append(out, step{host: m.Hostname, phase: phaseKubelet})
		}
	}
	var before []step
	for _, m := range pl.world.controlPlane() {
		if m == n {
			break
		}
		if reconfigures(pl, m) {
			before = []step{{host: m.Hostname, phase: phaseInit, must: true}}
		}
	}
	return append(out, before...)
}

// reconfigures reports whether a run restarts the control plane on a machine.
func reconfigures(pl *plan, n *Node) bool {
	return slices.ContainsFunc(pl.of(n, phaseInit), func(c Change) bool { return c.Target == runReconfigure })
}

func (p *initialise) resources(n *Node) (resources, error) {
	conf, err := p.want.kubeadmConfig(n)
	if err != nil {
		return resources{}, err
	}
	res := resources{
		files: append([]file{
			{path: auditPolicyFile, mode: 0o600, body: auditPolicy},
			{path: kubeadmConf, mode: 0o600, body: conf},
		}, renewal().files...),
		units: renewal().units,
	}
	if p.want.upgrading { // the new release's own kubeadm writes its manifests, before the machine has its kubelet
		res.artifacts, err = p.want.binaries(n, "kubeadm")
	}
	return res, err
}

func (p *initialise) detect(n *Node) (string, error) {
	res, err := p.resources(n)
	return res.detect() + p.want.selfAPI(n) + "d_applied\nd_cluster\nd_renewal\nd_restoring\nd_rotating\nd_recovering\n", err
}

const (
	runInit        = "kubeadm init"
	runReconfigure = "kubeadm init phase control-plane"
	runUpload      = "kubeadm init phase upload-config"
	runForget      = "kubectl delete node"
)

func (p *initialise) diff(n *Node, w *world) ([]Change, error) {
	res, err := p.resources(n)
	if err != nil {
		return nil, err
	}
	want, err := p.want.controlPlaneHash(n)
	if err != nil {
		return nil, err
	}
	a := w.of(n, phaseInit)
	cs := res.diff(a)
	if !w.member(n) || w.expelled(n) {
		if n == w.leader {
			cs = append(cs, Change{Action: "run", Target: runInit, Detail: p.want.Config.Kubernetes.Kubernetes.Version})
			if !p.want.selfSigned { // kubelets ask as soon as they have joined
				cs = append(cs, Change{Action: "set", Target: setMachines}, p.want.approverChange())
			}
		}
		return cs, nil
	}
	cs = append(restorations(a), cs...)
	if isRestoring(a) {
		cs = append(cs, Change{Action: "run", Target: runForget, Detail: "the restore was interrupted before it took the old cluster's machines out"})
	}
	if a.Value("admin") == "absent" {
		cs = append(cs, Change{Action: "create", Target: adminKubeconfig, Detail: "the administrator's credentials are gone"})
	}
	if a.Value("applied") != want {
		if err := p.sameData(n, a); err != nil {
			return nil, err
		}
		cs = append(cs, Change{Action: "run", Target: runReconfigure, Detail: "the control plane's settings have changed"})
	}
	stored, err := p.want.storedHash()
	if err != nil {
		return nil, err
	}
	// A silent API server is asked again by a later run that reaches it.
	if n == w.leader && a.Value("api") == "up" && a.Value("stored") != strconv.Quote(stored) {
		cs = append(cs, Change{Action: "run", Target: runUpload, Detail: "the cluster's copy of the settings, CoreDNS and kube-proxy"})
	}
	return cs, nil
}

// sameData refuses to point etcd at another folder: it would begin there without data.
func (p *initialise) sameData(n *Node, a answer.Answer) error {
	have, want := a.Value("etcd-data"), strings.TrimSuffix(p.want.etcdData(), "/")
	if have == "" || have == want {
		return nil
	}
	return hint.Errorf("write etcd-data-path: "+have+" in kubernetes-configuration.yaml; to move the data if there are several masters: remove each master with node remove and add it again, one after the other",
		"etcd on %s has its data in %s, but the configuration says %s: there it would start empty", n.Hostname, have, want)
}

func (p *initialise) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	want, err := p.want.controlPlaneHash(n)
	if err != nil {
		return err
	}
	stored, err := p.want.storedHash()
	if err != nil {
		return err
	}
	res.setup += p.want.selfAPI(n) + fmt.Sprintf("NODE=%s API=%s\n", shell.Quote(n.Hostname), shell.Quote("https://"+p.want.endpoint()))
	for _, c := range cs {
		switch c.Target {
		case restoreRenewal:
			res.setup += certificatesScript + "c_restore\n"
		case adminKubeconfig:
			res.setup += "kubeadm init phase kubeconfig admin --config \"$R" + kubeadmConf + "\" >&2\n"
		case runInit:
			before, after, ignored := "rm -rf \"$S/restore\"\n", "", p.want.ignoredChecks()
			if p.want.restore != nil {
				history, err := r.uploadRestore(ctx, n)
				if err != nil {
					return err
				}
				if before, after, err = p.restore(n, p.want.restore, history); err != nil {
					return err
				}
				before, ignored = restoreScript+before, p.want.ignoredWith(dirCheck(p.want.etcdData()))
			}
			res.after += fmt.Sprintf("%s%sp_encryption\nk_init %s %s\nk_stored %s\n%s", p.want.clear(), before, shell.Quote(ignored), want, stored, after)
		case runForget:
			res.after += restoreScript + p.want.forget(n)
		case runReconfigure:
			apart := ""
			if p.want.upgrading {
				apart = "apart"
			}
			res.after += certificatesScript + p.keepVIP(r.planned.world) + fmt.Sprintf("ETCD_DIR=%s\nk_reconfigure %s %s\n", shell.Quote(strings.TrimSuffix(p.want.etcdData(), "/")), want, apart)
		case runUpload:
			res.after += "k_upload\n"
			if p.want.upgrading {
				res.after += fmt.Sprintf("k_upgraded %s\n", shell.Quote(p.want.Config.Kubernetes.Kubernetes.Version))
			}
			res.after += fmt.Sprintf("k_stored %s\n", stored)
		}
	}
	approve, err := p.want.approve(cs)
	if err != nil {
		return err
	}
	res.setup += approverScript
	res.after += approve
	if slices.ContainsFunc(cs, func(c Change) bool { return c.Target == runReconfigure || c.Target == runUpload }) {
		if err := r.withoutProxy(); err != nil {
			return err
		}
	}
	if n == r.leader && reconfigures(r.planned, n) {
		r.warnUnverified(n)
	}
	if err := r.stage(ctx, n, phaseInit, res.uploads(cs)); err != nil {
		return err
	}
	out, err := r.script(ctx, n, phaseInit, "apply", kubeadmScript+res.script(cs))
	if err != nil || !slices.ContainsFunc(cs, func(c Change) bool { return c.Target == runForget || c.Target == runInit }) {
		return err
	}
	return r.founded(n, out.Stdout)
}

// keepVIP returns shell code that keeps a virtual address in the certificates that is about to change: it stays in use until the new one is set.
func (p *initialise) keepVIP(w *world) string {
	has, _ := w.vip()
	if vip := p.want.Config.Kubernetes.Kubernetes.APIVIP; vip == "" || has.address == "" || has.address == vip {
		return ""
	}
	return "k_keep " + shell.Quote(has.address) + "\n"
}

// clear returns shell code that removes the remains of an interrupted attempt.
func (s *Spec) clear() string {
	return fmt.Sprintf("ETCD_DIR=%s\nk_clear\n", shell.Quote(strings.TrimSuffix(s.etcdData(), "/")))
}

// verify waits for the API server, first at the machine's own address and then at the address that
// all machines use: the next phases need it.
func (p *initialise) verify(n *Node) string {
	return kubeadmScript + p.want.selfAPI(n) + fmt.Sprintf(`
[ -f "$KUBECONFIG" ] && [ -f "$S/member" ] || exit 0
i=0 since=$(date +%%s)
until self get --raw /readyz --request-timeout=10s >/dev/null 2>&1; do
	i=$((i + 1))
	[ "$i" -lt 240 ] || { k_causes "$since"; echo "the API server is not ready after two minutes -> see journalctl -u kubelet and /var/log/pods on the host" >&2; exit 1; }
	sleep 0.5
done
i=0
until kubectl get --raw /readyz --request-timeout=5s >/dev/null 2>&1; do
	i=$((i + 1))
	[ "$i" -lt 120 ] || { echo "the API server answers on this machine, but not at the API's address "%[1]s" -> "%[2]s >&2; exit 1; }
	sleep 0.5
done
`, shell.Quote(p.want.endpoint()), shell.Quote(p.want.endpointRemedy()))
}

// endpointRemedy is the remedy if the API doesn't answer at the address of all machines.
func (d *desired) endpointRemedy() string {
	if d.local() {
		return "see journalctl -u " + proxyProgram + " on the host"
	}
	return "look at the load balancer of api-endpoint or load-balance-ip: it must forward that port to all masters"
}
