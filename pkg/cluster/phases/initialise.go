package phases

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
)

// initialise creates a cluster with "kubeadm init" on one control plane machine. In an existing cluster, it applies changed settings to the control
// plane machines, one after the other.
type initialise struct{ want *engine.Desired }

// Paths of files on masters.
const (
	auditPolicyFile = confDir + "/audit-policy.yaml"
	EncryptionFile  = confDir + "/encryption.yaml"
	AdminKubeconfig = "/etc/kubernetes/admin.conf"
)

// AuditPolicy is the API server's audit policy, which selects the requests to record.
//
//go:embed files/audit-policy.yaml
var AuditPolicy []byte

func (*initialise) Name() string { return engine.PhaseInit }
func (*initialise) Traits() engine.Traits {
	return engine.Traits{Upgrade: engine.UpgradeControlPlane, Repairs: true}
}
func (*initialise) Applies(n *engine.Node) bool { return n.ControlPlane }

// Waits returns the steps that must end before a machine's settings change. Machines change one after the other. The next machine begins when the
// previous machine is healthy again.
func (p *initialise) Waits(n *engine.Node, pl *engine.Plan) []engine.Step {
	if !reconfigures(pl, n) {
		return nil
	}
	var out []engine.Step
	// If the API's address changes to local addresses, kube-proxy and the pods' network use them on all machines at once. All proxies must therefore
	// run before this change.
	if addressMoves(pl.World) && p.want.Local() {
		for _, m := range p.want.Nodes {
			out = append(out, engine.Step{Host: m.Hostname, Phase: phaseAPIProxy})
		}
	}
	if beginsToVerify(pl.World, n) { // kubelets need their certificates before API servers verify them
		for _, m := range p.want.Nodes {
			out = append(out, engine.Step{Host: m.Hostname, Phase: PhaseKubelet})
		}
	}
	var before []engine.Step
	for _, m := range pl.World.ControlPlane() {
		if m == n {
			break
		}
		if reconfigures(pl, m) {
			before = []engine.Step{{Host: m.Hostname, Phase: engine.PhaseInit, Must: true}}
		}
	}
	return append(out, before...)
}

func reconfigures(pl *engine.Plan, n *engine.Node) bool {
	return slices.ContainsFunc(pl.Of(n, engine.PhaseInit), func(c engine.Change) bool { return c.Target == runReconfigure })
}

func (p *initialise) resources(n *engine.Node) (engine.Resources, error) {
	conf, err := KubeadmConfig(p.want, n)
	if err != nil {
		return engine.Resources{}, err
	}
	res := engine.Resources{
		Files: append([]engine.File{
			{Path: auditPolicyFile, Mode: 0o600, Body: AuditPolicy},
			{Path: engine.KubeadmConf, Mode: 0o600, Body: conf},
		}, renewal().Files...),
		Units: renewal().Units,
	}
	if p.want.Upgrading { // the new release's kubeadm writes the manifests before the machine has the new kubelet
		res.Artifacts, err = binaries(p.want.Spec, n, "kubeadm")
	}
	return res, err
}

func (p *initialise) Detect(n *engine.Node) (string, error) {
	res, err := p.resources(n)
	return res.Detect() + p.want.SelfAPI(n) + "d_applied\nd_cluster\nd_renewal\nd_restoring\nd_rotating\nd_recovering\n", err
}

// The targets of the phase's changes.
const (
	runInit        = "kubeadm init"
	runReconfigure = "kubeadm init phase control-plane"
	RunUpload      = "kubeadm init phase upload-config"
	runForget      = "kubectl delete node"
)

func (p *initialise) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	res, err := p.resources(n)
	if err != nil {
		return nil, err
	}
	want, err := ControlPlaneHash(p.want, n)
	if err != nil {
		return nil, err
	}
	a := w.Of(n, engine.PhaseInit)
	cs := res.Diff(a)
	if !w.Member(n) || w.Expelled(n) {
		if n == w.Leader {
			cs = append(cs, engine.Change{Action: "run", Target: runInit, Detail: p.want.Config.Kubernetes.Kubernetes.Version})
			if !p.want.SelfSigned { // kubelets request certificates as soon as they have joined
				cs = append(cs, engine.Change{Action: "set", Target: setMachines}, approverChange())
			}
		}
		return cs, nil
	}
	cs = append(restorations(a), cs...)
	if IsRestoring(a) {
		cs = append(cs, engine.Change{Action: "run", Target: runForget, Detail: "the restore was interrupted before it took the old cluster's machines out"})
	}
	if a.Value("admin") == "absent" {
		cs = append(cs, engine.Change{Action: "create", Target: AdminKubeconfig, Detail: "the administrator's credentials are gone"})
	}
	if a.Value("applied") != want {
		if err := p.sameData(n, a); err != nil {
			return nil, err
		}
		cs = append(cs, engine.Change{Action: "run", Target: runReconfigure, Detail: "the control plane's settings have changed"})
	}
	stored, err := storedHash(p.want)
	if err != nil {
		return nil, err
	}
	// If the API server didn't respond, the stored settings are unknown. A later run compares them.
	if n == w.Leader && a.Value("api") == "up" && a.Value("stored") != strconv.Quote(stored) {
		cs = append(cs, engine.Change{Action: "run", Target: RunUpload, Detail: "the cluster's copy of the settings, CoreDNS and kube-proxy"})
	}
	return cs, nil
}

// sameData returns an error if the configuration changes etcd's data folder, because etcd would start without data in a new folder.
func (p *initialise) sameData(n *engine.Node, a answer.Answer) error {
	have, want := a.Value("etcd-data"), strings.TrimSuffix(EtcdData(p.want.Spec), "/")
	if have == "" || have == want {
		return nil
	}
	return hint.Errorf("write etcd-data-path: "+have+" in kubernetes-configuration.yaml; to move the data if there are several masters: remove each master with node remove and add it again, one after the other",
		"etcd on %s has its data in %s, but the configuration says %s: there it would start empty", n.Hostname, have, want)
}

func (p *initialise) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	want, err := ControlPlaneHash(p.want, n)
	if err != nil {
		return err
	}
	stored, err := storedHash(p.want)
	if err != nil {
		return err
	}
	res.Setup += p.want.SelfAPI(n) + fmt.Sprintf("NODE=%s API=%s\n", shell.Quote(n.Hostname), shell.Quote("https://"+p.want.Endpoint()))
	for _, c := range cs {
		switch c.Target {
		case restoreRenewal:
			res.Setup += CertificatesScript + "c_restore\n"
		case AdminKubeconfig:
			res.Setup += "kubeadm init phase kubeconfig admin --config \"$R" + engine.KubeadmConf + "\" >&2\n"
		case runInit:
			before, after, ignored := "rm -rf \"$S/restore\"\n", "", IgnoredChecks(p.want.Spec)
			if p.want.Restore != nil {
				history, err := uploadRestore(ctx, r, n)
				if err != nil {
					return err
				}
				if before, after, err = p.restore(n, p.want.Restore, history); err != nil {
					return err
				}
				before, ignored = RestoreScript+before, ignoredWith(p.want.Spec, dirCheck(EtcdData(p.want.Spec)))
			}
			res.After += fmt.Sprintf("%s%sp_encryption\nk_init %s %s\nk_stored %s\n%s", Clear(p.want.Spec), before, shell.Quote(ignored), want, stored, after)
		case runForget:
			res.After += RestoreScript + forget(p.want.Spec, n)
		case runReconfigure:
			apart := ""
			if p.want.Upgrading {
				apart = "apart"
			}
			res.After += CertificatesScript + p.keepVIP(r.Planned.World) + fmt.Sprintf("ETCD_DIR=%s\nk_reconfigure %s %s\n", shell.Quote(strings.TrimSuffix(EtcdData(p.want.Spec), "/")), want, apart)
		case RunUpload:
			res.After += "k_upload\n"
			if p.want.Upgrading {
				res.After += fmt.Sprintf("k_upgraded %s\n", shell.Quote(p.want.Config.Kubernetes.Kubernetes.Version))
			}
			res.After += fmt.Sprintf("k_stored %s\n", stored)
		}
	}
	approve, err := approve(p.want.Spec, cs)
	if err != nil {
		return err
	}
	res.Setup += approverScript
	res.After += approve
	if slices.ContainsFunc(cs, func(c engine.Change) bool { return c.Target == runReconfigure || c.Target == RunUpload }) {
		if err := withoutProxy(r); err != nil {
			return err
		}
	}
	if n == r.Leader && reconfigures(r.Planned, n) {
		warnUnverified(r, n)
	}
	if err := r.Stage(ctx, n, engine.PhaseInit, res.Uploads(cs)); err != nil {
		return err
	}
	out, err := r.Script(ctx, n, engine.PhaseInit, "apply", KubeadmScript+res.Script(cs))
	if err != nil || !slices.ContainsFunc(cs, func(c engine.Change) bool { return c.Target == runForget || c.Target == runInit }) {
		return err
	}
	return founded(r, n, out.Stdout)
}

// keepVIP returns shell code that keeps the old virtual address in the API servers' certificates while the address changes. Clients use the old
// address until the new address is set.
func (p *initialise) keepVIP(w *engine.World) string {
	has, _ := foundVIP(w)
	if vip := p.want.Config.Kubernetes.Kubernetes.APIVIP; vip == "" || has.address == "" || has.address == vip {
		return ""
	}
	return "k_keep " + shell.Quote(has.address) + "\n"
}

// Clear returns shell code that removes the remains of an interrupted "kubeadm init" or "kubeadm join".
func Clear(s *engine.Spec) string {
	return fmt.Sprintf("ETCD_DIR=%s\nk_clear\n", shell.Quote(strings.TrimSuffix(EtcdData(s), "/")))
}

// Verify returns shell code that waits for the API server, first at the machine's own address, and then at the shared address. The next phases need
// both addresses.
func (p *initialise) Verify(n *engine.Node) string {
	return KubeadmScript + p.want.SelfAPI(n) + fmt.Sprintf(`
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
`, shell.Quote(p.want.Endpoint()), shell.Quote(endpointRemedy(p.want)))
}

func endpointRemedy(d *engine.Desired) string {
	if d.Local() {
		return "see journalctl -u " + proxyProgram + " on the host"
	}
	return "look at the load balancer of api-endpoint or load-balance-ip: it must forward that port to all masters"
}
