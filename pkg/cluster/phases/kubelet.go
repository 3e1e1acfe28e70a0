package phases

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
)

// kubelet installs kubelet, kubeadm and kubectl, with the kubelet's unit and settings. "kubeadm init" or "kubeadm join" starts the kubelet.
type kubelet struct{ want *engine.Desired }

// Names and paths of the kubelet.
const (
	PhaseKubelet  = "kubelet"
	confDir       = paths.Conf
	kubeletUnit   = "/etc/systemd/system/kubelet.service"
	KubeletDropIn = confDir + "/kubelet.conf.d/10-paictl.conf"
	ResolvConf    = confDir + "/resolv.conf"
	// MachineResolvConf is a copy of the machine's own DNS settings. Pods use it if the configuration contains no name servers.
	MachineResolvConf = "/run/paictl-resolv.conf"
	ResolvScript      = "/usr/local/libexec/paictl/kubelet-resolv-conf"
	ResolvDropIn      = "/etc/systemd/system/kubelet.service.d/10-paictl-resolv-conf.conf"
	// servingCertificate is the target of the change that requests the kubelet's serving certificate.
	servingCertificate = "certificate of the kubelet's server"
)

// KubeletService is the kubelet's systemd unit.
//
//go:embed files/kubelet.service
var KubeletService []byte

// KubeletResolvConf is the script that writes the resolv.conf for pods.
//
//go:embed files/kubelet-resolv-conf.sh
var KubeletResolvConf []byte

func (*kubelet) Name() string { return PhaseKubelet }
func (*kubelet) Traits() engine.Traits {
	return engine.Traits{Upgrade: engine.UpgradePrograms, Repairs: true}
}
func (*kubelet) Applies(*engine.Node) bool  { return true }
func (*kubelet) Verify(*engine.Node) string { return "" } // Apply checks the kubelet on members

// Waits returns the steps of the previous wave. For a member, it also returns the leader's approver step, because the kubelet may request a
// certificate, and the approver must have the machine in its list by then.
func (p *kubelet) Waits(n *engine.Node, pl *engine.Plan) []engine.Step {
	out := rollout(pl, n, PhaseKubelet, KubeletName)
	if leader := pl.World.Leader; leader != n && len(pl.Of(leader, engine.PhaseApprover)) > 0 && StaysMember(pl.World, n) {
		out = append(out, engine.Step{Host: leader.Hostname, Phase: engine.PhaseApprover, Must: true})
	}
	return out
}

func (p *kubelet) Resources(n *engine.Node) (engine.Resources, error) {
	bins, err := binaries(p.want.Spec, n, "kubelet", "kubeadm", "kubectl")
	if err != nil {
		return engine.Resources{}, err
	}
	settings, err := yaml.Marshal(KubeletSettings(p.want))
	if err != nil {
		return engine.Resources{}, fmt.Errorf("render %s: %w", KubeletDropIn, err)
	}
	res := engine.Resources{
		Artifacts: bins,
		Files: []engine.File{
			{Path: kubeletUnit, Mode: 0o644, Body: KubeletService},
			{Path: KubeletDropIn, Mode: 0o644, Body: settings},
		},
		Units: []engine.Unit{{Name: "kubelet.service", Later: true, Reads: []string{
			kubeletUnit, KubeletDropIn, path.Join(BinDir, "kubelet"),
		}}},
	}
	if k := p.want.Config.Kubernetes.Kubernetes; len(k.ClusterDNS) > 0 {
		var b strings.Builder
		for _, s := range k.ClusterDNS[:min(len(k.ClusterDNS), config.MaxNameServers)] {
			b.WriteString("nameserver " + s + "\n")
		}
		res.Files = append(res.Files, engine.File{Path: ResolvConf, Mode: 0o644, Body: []byte(b.String())})
	} else {
		res.Files = append(res.Files,
			engine.File{Path: ResolvScript, Mode: 0o755, Body: KubeletResolvConf},
			engine.File{Path: ResolvDropIn, Mode: 0o644, Body: []byte("# Written by paictl.\n[Service]\nExecStartPre=" + ResolvScript + " " + k.DNSDomain + "\n")})
		res.Units[0].Reads = append(res.Units[0].Reads, ResolvScript, ResolvDropIn)
	}
	if p.want.Upgrading { // for the new release, kubeadm updates the settings that it wrote at the join
		res.Between = "kubeadm upgrade node phase kubelet-config >&2\nkubeadm upgrade node phase post-upgrade >&2\n"
	}
	return res, nil
}

// podPIDs is the maximum number of processes and threads in a pod.
const podPIDs = 32768

// KubeletSettings returns a drop-in that overrides the configuration from kubeadm. With the drop-in, changed settings also reach existing members.
func KubeletSettings(d *engine.Desired) map[string]any {
	k := d.Config.Kubernetes.Kubernetes
	conf := map[string]any{
		"apiVersion":         "kubelet.config.k8s.io/v1beta1",
		"kind":               "KubeletConfiguration",
		"rotateCertificates": true,
		"seccompDefault":     true, // pods without a profile get the runtime's own
		// The kubelet must keep log lines until log-manager has read them, even if a program writes fast. Therefore it keeps five files of this size. It
		// checks the size every three seconds instead of ten, so that a program can't fill the disk between two checks.
		"containerLogMaxSize":         "32Mi",
		"containerLogMonitorInterval": "3s",
		// Pods can't use these resources. These resources are reserved for the kubelet, containerd and sshd, because a job without a limit could
		// otherwise use all memory. The scheduler also subtracts these resources.
		"systemReserved": map[string]any{"cpu": "100m", "memory": "256Mi", "pid": "1000"},
		"kubeReserved":   map[string]any{"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "1Gi", "pid": "1000"},
		// The limit prevents a pod with endless processes from blocking other pods. It allows eight GPUs with dozens of loaders of a hundred threads each.
		"podPidsLimit": podPIDs,
	}
	if !d.SelfSigned {
		conf["serverTLSBootstrap"] = true // the cluster signs the serving certificate, so that clients can verify it
	}
	conf["resolvConf"] = MachineResolvConf
	if len(k.ClusterDNS) > 0 {
		conf["resolvConf"] = ResolvConf
	}
	return merge(conf, k.Extra.Kubelet)
}

func (p *kubelet) Detect(n *engine.Node) (string, error) {
	res, err := p.Resources(n)
	if err != nil {
		return "", err
	}
	var version string
	for _, a := range res.Artifacts {
		if a.Src.Name == "kubelet" {
			version = fmt.Sprintf("d_kubernetes %s %s\n", shell.Quote(a.Path), a.Src.SHA256)
		}
	}
	return res.Detect() + version + servingScript + "d_serving\n", nil
}

// wanted returns the desired resources of a machine. The kubelet must run if the machine is a member and doesn't join again. Otherwise "kubeadm init"
// or "kubeadm join" starts the kubelet.
func (p *kubelet) wanted(n *engine.Node, w *engine.World) (engine.Resources, error) {
	res, err := p.Resources(n)
	if err == nil && StaysMember(w, n) {
		res.Units[0].Later = false
	}
	return res, err
}

func (p *kubelet) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	res, err := p.wanted(n, w)
	if err != nil {
		return nil, err
	}
	a := w.Of(n, PhaseKubelet)
	cs := res.Diff(a)
	// Also request a certificate if an earlier run configured the kubelet but the kubelet got no certificate.
	if !p.want.SelfSigned && a.Value("serving") != "yes" && StaysMember(w, n) && w.Healthy(w.Leader) {
		cs = append(cs, engine.Change{Action: "request", Target: servingCertificate, Detail: "signed by the cluster"})
	}
	return cs, nil
}

func (p *kubelet) Carries(n *engine.Node, w *engine.World, cs []engine.Change) []bundle.Artifact {
	res, _ := p.wanted(n, w) // diff has called it before, without an error
	return engine.Sources(res.Uploads(cs))
}

func (p *kubelet) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	res, err := p.wanted(n, r.Planned.World)
	if err != nil {
		return err
	}
	if err := r.ApplyResources(ctx, n, PhaseKubelet, res, cs); err != nil {
		return err
	}
	verify := ""
	if !res.Units[0].Later && slices.ContainsFunc(cs, func(c engine.Change) bool { return c.Target == res.Units[0].Name }) {
		verify = p.staysUp(n)
	}
	if slices.ContainsFunc(cs, func(c engine.Change) bool { return c.Target == servingCertificate }) {
		verify += serving(p.want, n)
	}
	if verify == "" {
		return nil
	}
	_, err = r.Read(ctx, n, PhaseKubelet, "verify", verify)
	return err
}

// KubeletScript defines the shell functions that check whether the kubelet starts.
//
//go:embed scripts/kubelet.sh
var KubeletScript string

// staysUp returns shell code that waits until the started kubelet keeps running and its node is Ready. Without paictl's network plugin, it doesn't
// wait for Ready, because the node may never become Ready.
func (p *kubelet) staysUp(n *engine.Node) string {
	wait := 0
	if p.want.Config.Kubernetes.Kubernetes.NetworkPlugin == FlannelPlugin {
		wait = 1
	}
	return NodeReady(n) + KubeletScript + fmt.Sprintf("v_kubelet %d\n", wait)
}
