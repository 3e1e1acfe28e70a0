package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
)

// kubelet installs kubelet, kubeadm and kubectl, the kubelet's unit and its settings. The
// kubelet starts when the machine is initialised or joins.
type kubelet struct{ want *desired }

const (
	phaseKubelet  = "kubelet"
	confDir       = paths.Conf
	kubeletUnit   = "/etc/systemd/system/kubelet.service"
	kubeletDropIn = confDir + "/kubelet.conf.d/10-paictl.conf"
	resolvConf    = confDir + "/resolv.conf"
	// The machine's own settings, used if the configuration names no name servers.
	machineResolvConf = "/run/paictl-resolv.conf"
	resolvScript      = "/usr/local/libexec/paictl/kubelet-resolv-conf"
	resolvDropIn      = "/etc/systemd/system/kubelet.service.d/10-paictl-resolv-conf.conf"
	// servingCertificate is the certificate that clients of the kubelet verify.
	servingCertificate = "certificate of the kubelet's server"
)

//go:embed files/kubelet.service
var kubeletService []byte

//go:embed files/kubelet-resolv-conf.sh
var kubeletResolvConf []byte

func (*kubelet) name() string        { return phaseKubelet }
func (*kubelet) traits() traits      { return traits{upgrade: upgradePrograms, repairs: true} }
func (*kubelet) applies(*Node) bool  { return true }
func (*kubelet) verify(*Node) string { return "" } // apply checks it on members

// waits: a member's kubelet may be about to request a certificate; the approver must know the machine first.
func (p *kubelet) waits(n *Node, pl *plan) []step {
	out := pl.rollout(n, phaseKubelet, kubeletName)
	if leader := pl.world.leader; leader != n && len(pl.of(leader, phaseApprover)) > 0 && pl.world.stays(n) {
		out = append(out, step{host: leader.Hostname, phase: phaseApprover, must: true})
	}
	return out
}

func (p *kubelet) resources(n *Node) (resources, error) {
	bins, err := p.want.binaries(n, "kubelet", "kubeadm", "kubectl")
	if err != nil {
		return resources{}, err
	}
	settings, err := yaml.Marshal(p.want.kubeletSettings())
	if err != nil {
		return resources{}, fmt.Errorf("render %s: %w", kubeletDropIn, err)
	}
	res := resources{
		artifacts: bins,
		files: []file{
			{path: kubeletUnit, mode: 0o644, body: kubeletService},
			{path: kubeletDropIn, mode: 0o644, body: settings},
		},
		units: []unit{{name: "kubelet.service", later: true, reads: []string{
			kubeletUnit, kubeletDropIn, path.Join(binDir, "kubelet"),
		}}},
	}
	if k := p.want.Config.Kubernetes.Kubernetes; len(k.ClusterDNS) > 0 {
		var b strings.Builder
		for _, s := range k.ClusterDNS[:min(len(k.ClusterDNS), config.MaxNameServers)] {
			b.WriteString("nameserver " + s + "\n")
		}
		res.files = append(res.files, file{path: resolvConf, mode: 0o644, body: []byte(b.String())})
	} else {
		res.files = append(res.files,
			file{path: resolvScript, mode: 0o755, body: kubeletResolvConf},
			file{path: resolvDropIn, mode: 0o644, body: []byte("# Written by paictl.\n[Service]\nExecStartPre=" + resolvScript + " " + k.DNSDomain + "\n")})
		res.units[0].reads = append(res.units[0].reads, resolvScript, resolvDropIn)
	}
	if p.want.upgrading { // updates the settings that kubeadm wrote at the join for the new release
		res.between = "kubeadm upgrade node phase kubelet-config >&2\nkubeadm upgrade node phase post-upgrade >&2\n"
	}
	return res, nil
}

// podPIDs is how many processes and threads a pod may have.
const podPIDs = 32768

// kubeletSettings is a drop-in over the configuration that kubeadm writes, so that a
// changed setting reaches machines that joined long ago.
func (d *desired) kubeletSettings() map[string]any {
	k := d.Config.Kubernetes.Kubernetes
	conf := map[string]any{
		"apiVersion":         "kubelet.config.k8s.io/v1beta1",
		"kind":               "KubeletConfiguration",
		"rotateCertificates": true,
		"seccompDefault":     true, // pods without a profile get the runtime's own
		// Lines that log-manager hasn't read yet must outlive a fast writer: the kubelet keeps five files, and
		// checks every three seconds instead of ten, so that a writer doesn't fill the disk between checks.
		"containerLogMaxSize":         "32Mi",
		"containerLogMonitorInterval": "3s",
		// All pods together get the machine's resources less these, so that a job without a limit can't take
		// the memory of the kubelet, containerd and sshd. The scheduler also sees only the rest.
		"systemReserved": map[string]any{"cpu": "100m", "memory": "256Mi", "pid": "1000"},
		"kubeReserved":   map[string]any{"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "1Gi", "pid": "1000"},
		// A pod that starts endless processes can't keep others from starting theirs. Eight GPUs, each with dozens of loaders of a
		// hundred threads, need less.
		"podPidsLimit": podPIDs,
	}
	if !d.selfSigned {
		conf["serverTLSBootstrap"] = true // the cluster signs its server's certificate, so that it can be verified
	}
	conf["resolvConf"] = machineResolvConf
	if len(k.ClusterDNS) > 0 {
		conf["resolvConf"] = resolvConf
	}
	return merge(conf, k.Extra.Kubelet)
}

func (p *kubelet) detect(n *Node) (string, error) {
	res, err := p.resources(n)
	if err != nil {
		return "", err
	}
	var version string
	for _, a := range res.artifacts {
		if a.src.Name == "kubelet" {
			version = fmt.Sprintf("d_kubernetes %s %s\n", shell.Quote(a.path), a.src.SHA256)
		}
	}
	return res.detect() + version + servingScript + "d_serving\n", nil
}

// wanted returns the resources of a machine. If the machine is a member and stays one, its kubelet
// must run; otherwise "kubeadm init" or "kubeadm join" starts it.
func (p *kubelet) wanted(n *Node, w *world) (resources, error) {
	res, err := p.resources(n)
	if err == nil && w.stays(n) {
		res.units[0].later = false
	}
	return res, err
}

func (p *kubelet) diff(n *Node, w *world) ([]Change, error) {
	res, err := p.wanted(n, w)
	if err != nil {
		return nil, err
	}
	a := w.of(n, phaseKubelet)
	cs := res.diff(a)
	// This also applies if an earlier run set the kubelet up, and the certificate didn't arrive.
	if !p.want.selfSigned && a.Value("serving") != "yes" && w.stays(n) && w.healthy(w.leader) {
		cs = append(cs, Change{Action: "request", Target: servingCertificate, Detail: "signed by the cluster"})
	}
	return cs, nil
}

func (p *kubelet) carries(n *Node, w *world, cs []Change) []bundle.Artifact {
	res, _ := p.wanted(n, w) // diff has called it before, without an error
	return sources(res.uploads(cs))
}

func (p *kubelet) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	res, err := p.wanted(n, r.planned.world)
	if err != nil {
		return err
	}
	if err := r.applyResources(ctx, n, phaseKubelet, res, cs); err != nil {
		return err
	}
	verify := ""
	if !res.units[0].later && slices.ContainsFunc(cs, func(c Change) bool { return c.Target == res.units[0].name }) {
		verify = p.staysUp(n)
	}
	if slices.ContainsFunc(cs, func(c Change) bool { return c.Target == servingCertificate }) {
		verify += p.want.serving(n)
	}
	if verify == "" {
		return nil
	}
	_, err = r.read(ctx, n, phaseKubelet, "verify", verify)
	return err
}

//go:embed scripts/kubelet.sh
var kubeletScript string

// staysUp returns shell code that waits until the kubelet, which has just started, stays up and reports
// its node as Ready. Without paictl's own network plugin it can't know whether the node can become Ready.
func (p *kubelet) staysUp(n *Node) string {
	wait := 0
	if p.want.Config.Kubernetes.Kubernetes.NetworkPlugin == flannelPlugin {
		wait = 1
	}
	return nodeReady(n) + kubeletScript + fmt.Sprintf("v_kubelet %d\n", wait)
}
