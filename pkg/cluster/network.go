package cluster

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

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
)

// network connects the pods: flannel as a DaemonSet and, on each machine, a unit that turns
// flannel's subnet into the configuration of the standard CNI plugins. With network-plugin "none"
// the operator installs another plugin; with a path paictl applies that manifest.
type network struct{ want *desired }

const (
	phaseNetwork  = "network"
	networkNone   = "none"
	flannelPlugin = "flannel"
	cniConfDir    = "/etc/cni/net.d"
	networkFile   = confDir + "/network.yaml"
	cniScript     = "/usr/local/libexec/paictl/flannel-cni"
	cniService    = "/etc/systemd/system/paictl-cni.service"
	cniPath       = "/etc/systemd/system/paictl-cni.path"

	metadataScript  = "/usr/local/libexec/paictl/pod-metadata"
	metadataService = "/etc/systemd/system/paictl-pod-metadata.service"
)

//go:embed files/pod-metadata.sh
var podMetadata []byte

//go:embed files/paictl-pod-metadata.service
var podMetadataService string

//go:embed files/flannel.yaml.tmpl
var flannelTemplate string

//go:embed files/flannel-cni.sh
var flannelCNI []byte

//go:embed files/paictl-cni.service
var flannelCNIService []byte

//go:embed files/paictl-cni.path
var flannelCNIPath []byte

func (*network) name() string   { return phaseNetwork }
func (*network) traits() traits { return traits{upgrade: upgradeAfter, repairs: true} }

func (p *network) applies(*Node) bool {
	return p.want.Config == nil || p.want.Config.Kubernetes.Kubernetes.NetworkPlugin != networkNone
}

func (p *network) plugin() string { return p.want.Config.Kubernetes.Kubernetes.NetworkPlugin }

func (p *network) waits(n *Node, _ *plan) []step {
	if n.ControlPlane {
		return []step{{host: n.Hostname, phase: phaseInit, must: true}}
	}
	return nil
}

func (p *network) resources(n *Node) (resources, error) {
	res := p.metadata()
	if p.plugin() == flannelPlugin {
		res.files = append(res.files, []file{
			{path: cniScript, mode: 0o755, body: flannelCNI},
			{path: cniService, mode: 0o644, body: flannelCNIService},
			{path: cniPath, mode: 0o644, body: flannelCNIPath},
		}...)
		res.units = append(res.units, []unit{
			{name: "paictl-cni.path", reads: []string{cniPath}},
			{name: "paictl-cni.service", reads: []string{cniScript, cniService}, later: true},
		}...)
	}
	if !n.ControlPlane {
		return res, nil
	}
	manifest, err := p.manifest()
	if err != nil {
		return res, err
	}
	res.files = append(res.files, file{path: networkFile, mode: 0o644, body: manifest})
	return res, nil
}

// metadata keeps pods from the cloud's metadata service. If the configuration opens the service, the unit stays and opens it.
func (p *network) metadata() resources {
	start := podMetadataService
	if p.want.Config.Kubernetes.Kubernetes.MetadataAddress == config.MetadataOpen {
		start = strings.ReplaceAll(start, "pod-metadata close", "pod-metadata open")
	}
	return resources{
		files: []file{{path: metadataScript, mode: 0o755, body: podMetadata}, {path: metadataService, mode: 0o644, body: []byte(start)}},
		units: []unit{{name: "paictl-pod-metadata.service", reads: []string{metadataScript, metadataService}}},
	}
}

// manifest returns the manifest to apply to the cluster.
func (p *network) manifest() ([]byte, error) {
	k := p.want.Config.Kubernetes.Kubernetes
	if p.plugin() != flannelPlugin {
		b, err := os.ReadFile(p.want.Config.NetworkManifest())
		return b, hint.Wrap(err, "network-plugin in kubernetes-configuration.yaml is flannel, none, or the path of a manifest")
	}
	image, err := p.want.image("flannel")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	t, err := template.New("flannel").Parse(flannelTemplate)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(p.want.endpoint())
	if err != nil {
		return nil, err
	}
	err = t.Execute(&b, map[string]string{
		"PodCIDR": k.PodCIDR, "Image": p.want.imageRef(image), "APIHost": host, "APIPort": port,
	})
	return b.Bytes(), err
}

func (p *network) detect(n *Node) (string, error) {
	res, err := p.resources(n)
	if p.plugin() == flannelPlugin {
		return res.detect() + "pod_network\n", err
	}
	return res.detect() + ":\n", err
}

const runApplyNetwork = "kubectl apply"

func (p *network) diff(n *Node, w *world) ([]Change, error) {
	res, err := p.resources(n)
	if err != nil {
		return nil, err
	}
	cs := res.diff(w.of(n, phaseNetwork))
	repair, err := p.diffPods(n, w)
	if err != nil {
		return nil, err
	}
	cs = append(cs, repair...)
	if n != w.leader || !w.founding() && !w.healthy(n) {
		return cs, nil
	}
	if manifest := res.files[len(res.files)-1]; w.of(n, phaseInit).Value("network") != strconv.Quote(hash(manifest.body)) {
		cs = append(cs, Change{Action: "run", Target: runApplyNetwork, Detail: "network plugin " + p.plugin()})
	}
	return cs, nil
}

func (p *network) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	repair, err := p.repairPods(n, r.planned.world, cs)
	if err != nil {
		return err
	}
	for _, c := range cs {
		if c.Target != runApplyNetwork {
			continue
		}
		sum := hash(res.files[len(res.files)-1].body)
		res.setup += p.want.selfAPI(n) + kubeadmScript
		res.after += fmt.Sprintf(`
self apply -f "$R%s" >&2
k_remember network %s
note change "network plugin"
`, networkFile, sum)
	}
	// In a restored cluster flannel may have written its file before the unit that watches it was installed.
	started := "\n[ ! -f \"$R/run/flannel/subnet.env\" ] || systemctl start paictl-cni.service\n"
	out, err := r.script(ctx, n, phaseNetwork, "apply", res.script(cs)+started+repair)
	if err != nil {
		return err
	}
	a, err := answer.Parse(out.Stdout)
	if err != nil {
		return err
	}
	if k := a.Value("restarted"); k != "" && k != "0" {
		r.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phaseNetwork,
			Message: "pods with unreachable addresses of another subnet were stopped and start again: " + k})
	}
	return nil
}

// verify waits until a control plane machine that is a member is Ready, which means that the
// network works there. For the others the phase join waits.
func (p *network) verify(n *Node) string {
	if !n.ControlPlane || p.plugin() != flannelPlugin {
		return ""
	}
	return "[ -f \"$S/member\" ] || exit 0\n" + waitReady(n)
}

// nodeReady returns shell code with two functions: one prints whether its own node is Ready, and
// the reason if not, using the kubelet's own credentials; the other ends the script if the node
// wasn't Ready for too long.
func nodeReady(n *Node) string {
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

// waitReady returns shell code that waits until its own node is Ready.
func waitReady(n *Node) string {
	return nodeReady(n) + `
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
