package cluster

import (
	"context"
	_ "embed"
	"fmt"
)

// initialise makes the first control plane machine a cluster by "kubeadm init", and brings
// a changed configuration to the control plane of a cluster that exists.
type initialise struct{ spec *Spec }

const (
	phaseInit       = "init"
	kubeadmConf     = confDir + "/kubeadm.yaml"
	auditPolicyFile = confDir + "/audit-policy.yaml"
	encryptionFile  = confDir + "/encryption.yaml"
)

//go:embed files/audit-policy.yaml
var auditPolicy []byte

func (*initialise) name() string              { return phaseInit }
func (*initialise) applies(n *Node) bool      { return n.ControlPlane }
func (*initialise) waits(*Node, *plan) []step { return nil }

func (p *initialise) resources(n *Node) (resources, error) {
	conf, err := p.spec.kubeadmConfig(n)
	if err != nil {
		return resources{}, err
	}
	return resources{
		files: append([]file{
			{path: auditPolicyFile, mode: 0o600, body: auditPolicy},
			{path: kubeadmConf, mode: 0o600, body: conf},
		}, renewal().files...),
		units: renewal().units,
	}, nil
}

func (p *initialise) detect(n *Node) (string, error) {
	res, err := p.resources(n)
	body := res.detect() + "d_member\nd_renewal\n"
	if n.First {
		body += "d_cluster\n"
	}
	return body, err
}

const (
	runInit        = "kubeadm init"
	runReconfigure = "kubeadm init phase control-plane"
)

func (p *initialise) diff(n *Node, w *world) ([]Change, error) {
	res, err := p.resources(n)
	if err != nil {
		return nil, err
	}
	want, err := p.spec.controlPlaneHash(n)
	if err != nil {
		return nil, err
	}
	a := w.of(n, phaseInit)
	cs := append(restorations(a), res.diff(a)...)
	switch {
	case n.First && a.value("member") != "yes":
		return append(cs, Change{Action: "run", Target: runInit, Detail: p.spec.Config.Kubernetes.Kubernetes.Version}), nil
	case a.value("member") == "yes" && a.value("applied") != want:
		return append(cs, Change{Action: "run", Target: runReconfigure, Detail: "the control plane's settings have changed"}), nil
	}
	return cs, nil
}

func (p *initialise) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	want, err := p.spec.controlPlaneHash(n)
	if err != nil {
		return err
	}
	for _, c := range cs {
		switch c.Target {
		case restoreRenewal:
			res.setup += certificatesScript + "c_restore\n"
		case runInit:
			res.after += fmt.Sprintf("p_encryption\nk_init %s %s\n", quote(p.spec.ignoredChecks()), want)
		case runReconfigure:
			first := 0
			if n.First {
				first = 1
			}
			res.after += fmt.Sprintf("k_reconfigure %d %s\n", first, want)
		}
	}
	_, err = r.script(ctx, n, phaseInit, "apply", kubeadmScript+res.script(cs))
	return err
}

// verify waits for the API server: what follows needs it.
func (*initialise) verify(*Node) string {
	return `
[ -f "$KUBECONFIG" ] || exit 0
i=0
until kubectl get --raw /readyz >/dev/null 2>&1; do
	i=$((i + 1))
	[ "$i" -lt 240 ] || { echo "the API server is not ready after two minutes -> see journalctl -u kubelet and /var/log/pods on the host" >&2; exit 1; }
	sleep 0.5
done
`
}
