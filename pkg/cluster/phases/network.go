package phases

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"text/template"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
)

// network connects the pods. It runs flannel as a DaemonSet. On each machine, a unit converts flannel's subnet into the configuration of the standard
// CNI plugins. If network-plugin is a path, paictl applies the manifest at that path instead. If it is "none", the operator installs another plugin.
type network struct{ want *engine.Desired }

// Names and paths of the network.
const (
	PhaseNetwork  = "network"
	NetworkNone   = "none"
	FlannelPlugin = "flannel"
	cniConfDir    = "/etc/cni/net.d"
	networkFile   = confDir + "/network.yaml"
	CNIScript     = "/usr/local/libexec/paictl/flannel-cni"
	cniService    = "/etc/systemd/system/paictl-cni.service"
	cniPath       = "/etc/systemd/system/paictl-cni.path"

	metadataScript  = "/usr/local/libexec/paictl/pod-metadata"
	MetadataService = "/etc/systemd/system/paictl-pod-metadata.service"
)

// PodMetadata is the script that blocks the pods' access to the metadata services of clouds.
//
//go:embed files/pod-metadata.sh
var PodMetadata []byte

//go:embed files/paictl-pod-metadata.service
var podMetadataService string

//go:embed files/flannel.yaml.tmpl
var flannelTemplate string

// FlannelCNI is the script that writes the configuration of the CNI plugins.
//
//go:embed files/flannel-cni.sh
var FlannelCNI []byte

//go:embed files/paictl-cni.service
var flannelCNIService []byte

//go:embed files/paictl-cni.path
var flannelCNIPath []byte

func (*network) Name() string { return PhaseNetwork }
func (*network) Traits() engine.Traits {
	return engine.Traits{Upgrade: engine.UpgradeAfter, Repairs: true}
}

func (p *network) Applies(*engine.Node) bool {
	return p.want.Config == nil || p.want.Config.Kubernetes.Kubernetes.NetworkPlugin != NetworkNone
}

func (p *network) plugin() string { return p.want.Config.Kubernetes.Kubernetes.NetworkPlugin }

func (p *network) Waits(n *engine.Node, _ *engine.Plan) []engine.Step {
	if n.ControlPlane {
		return []engine.Step{{Host: n.Hostname, Phase: engine.PhaseInit, Must: true}}
	}
	return nil
}

func (p *network) resources(n *engine.Node) (engine.Resources, error) {
	res := p.metadata()
	if p.plugin() == FlannelPlugin {
		res.Files = append(res.Files, []engine.File{
			{Path: CNIScript, Mode: 0o755, Body: FlannelCNI},
			{Path: cniService, Mode: 0o644, Body: flannelCNIService},
			{Path: cniPath, Mode: 0o644, Body: flannelCNIPath},
		}...)
		res.Units = append(res.Units, []engine.Unit{
			{Name: "paictl-cni.path", Reads: []string{cniPath}},
			{Name: "paictl-cni.service", Reads: []string{CNIScript, cniService}, Later: true},
		}...)
	}
	if !n.ControlPlane {
		return res, nil
	}
	manifest, err := p.Manifest()
	if err != nil {
		return res, err
	}
	res.Files = append(res.Files, engine.File{Path: networkFile, Mode: 0o644, Body: manifest})
	return res, nil
}

// metadata returns the unit that blocks the pods' access to the cloud's metadata service. If the configuration allows access, the unit stays
// installed and allows access.
func (p *network) metadata() engine.Resources {
	start := podMetadataService
	if p.want.Config.Kubernetes.Kubernetes.MetadataAddress == config.MetadataOpen {
		start = strings.ReplaceAll(start, "pod-metadata close", "pod-metadata open")
	}
	return engine.Resources{
		Files: []engine.File{{Path: metadataScript, Mode: 0o755, Body: PodMetadata}, {Path: MetadataService, Mode: 0o644, Body: []byte(start)}},
		Units: []engine.Unit{{Name: "paictl-pod-metadata.service", Reads: []string{metadataScript, MetadataService}}},
	}
}

// Manifest returns the manifest to apply to the cluster.
func (p *network) Manifest() ([]byte, error) {
	k := p.want.Config.Kubernetes.Kubernetes
	if p.plugin() != FlannelPlugin {
		b, err := os.ReadFile(p.want.Config.NetworkManifest())
		return b, hint.Wrap(err, "network-plugin in kubernetes-configuration.yaml is flannel, none, or the path of a manifest")
	}
	image, err := p.want.Image("flannel")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	t, err := template.New("flannel").Parse(flannelTemplate)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(p.want.Endpoint())
	if err != nil {
		return nil, err
	}
	err = t.Execute(&b, map[string]string{
		"PodCIDR": k.PodCIDR, "Image": ImageRef(p.want.Spec, image), "APIHost": host, "APIPort": port,
	})
	return b.Bytes(), err
}

func (p *network) Detect(n *engine.Node) (string, error) {
	res, err := p.resources(n)
	if p.plugin() == FlannelPlugin {
		return res.Detect() + "pod_network\n", err
	}
	return res.Detect() + ":\n", err
}

const runApplyNetwork = "kubectl apply"

func (p *network) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	res, err := p.resources(n)
	if err != nil {
		return nil, err
	}
	cs := res.Diff(w.Of(n, PhaseNetwork))
	repair, err := p.diffPods(n, w)
	if err != nil {
		return nil, err
	}
	cs = append(cs, repair...)
	if n != w.Leader || !w.Founding() && !w.Healthy(n) {
		return cs, nil
	}
	if manifest := res.Files[len(res.Files)-1]; w.Of(n, engine.PhaseInit).Value("network") != strconv.Quote(engine.Hash(manifest.Body)) {
		cs = append(cs, engine.Change{Action: "run", Target: runApplyNetwork, Detail: "network plugin " + p.plugin()})
	}
	return cs, nil
}

func (p *network) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	repair, err := p.repairPods(n, r.Planned.World, cs)
	if err != nil {
		return err
	}
	for _, c := range cs {
		if c.Target != runApplyNetwork {
			continue
		}
		sum := engine.Hash(res.Files[len(res.Files)-1].Body)
		res.Setup += p.want.SelfAPI(n) + KubeadmScript
		res.After += fmt.Sprintf(`
self apply -f "$R%s" >&2
k_remember network %s
note change "network plugin"
`, networkFile, sum)
	}
	// In a restored cluster, flannel may have written its file before the unit that watches this file was installed.
	started := "\n[ ! -f \"$R/run/flannel/subnet.env\" ] || systemctl start paictl-cni.service\n"
	a, err := engine.Answer(r.Script(ctx, n, PhaseNetwork, "apply", res.Script(cs)+started+repair))
	if err != nil {
		return err
	}
	if k := a.Value("restarted"); k != "" && k != "0" {
		r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: PhaseNetwork,
			Message: "pods with unreachable addresses of another subnet were stopped and start again: " + k})
	}
	return nil
}

// Verify returns shell code that waits until the node of a master is Ready. A Ready node means that the network works. For other machines, the phase
// join waits.
func (p *network) Verify(n *engine.Node) string {
	if !n.ControlPlane || p.plugin() != FlannelPlugin {
		return ""
	}
	return "[ -f \"$S/member\" ] || exit 0\n" + waitReady(n)
}

// NodeReady returns shell code that defines two functions. The function ready prints whether the machine's node is Ready, or the reason why it
// isn't. It uses the kubelet's credentials. The function never_ready ends the script with an error after a timeout.
func NodeReady(n *engine.Node) string {
	return fmt.Sprintf(`
node=%s
ready() {
	kubectl --kubeconfig "$R/etc/kubernetes/kubelet.conf" get node "$node" --request-timeout=10s \
		-o 'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status}{"\t"}{.message}{end}' 2>&1 || true
}
never_ready() {
	echo "node $node is not Ready after three minutes: $(printf %%s "$1" | tr '\t\n' '  ' | cut -c1-300) -> see journalctl -u kubelet on the host" >&2
	exit 1
}
`, shell.Quote(n.Hostname))
}

func waitReady(n *engine.Node) string {
	return NodeReady(n) + `
i=0
while :; do
	s=$(ready)
	case $s in True*) break ;; esac
	i=$((i + 1))
	[ "$i" -lt 360 ] || never_ready "$s"
	sleep 0.5
done
`
}
