package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"text/template"

	"github.com/openpai/paictl/pkg/hint"
)

// network connects the pods: flannel as a DaemonSet and, on each machine, a unit that turns
// the subnet flannel was given into the configuration of the standard CNI plugins. With
// network-plugin "none" the operator brings another; with a path that manifest is applied.
type network struct{ spec *Spec }

const (
	phaseNetwork  = "network"
	networkNone   = "none"
	flannelPlugin = "flannel"
	cniConfDir    = "/etc/cni/net.d"
	networkFile   = confDir + "/network.yaml"
	cniScript     = "/usr/local/libexec/paictl/flannel-cni"
	cniService    = "/etc/systemd/system/paictl-cni.service"
	cniPath       = "/etc/systemd/system/paictl-cni.path"
)

//go:embed files/flannel.yaml.tmpl
var flannelTemplate string

//go:embed files/flannel-cni.sh
var flannelCNI []byte

//go:embed files/paictl-cni.service
var flannelCNIService []byte

//go:embed files/paictl-cni.path
var flannelCNIPath []byte

func (*network) name() string { return phaseNetwork }

func (p *network) applies(*Node) bool {
	return p.spec.Config == nil || p.spec.Config.Kubernetes.Kubernetes.NetworkPlugin != networkNone
}

func (p *network) plugin() string { return p.spec.Config.Kubernetes.Kubernetes.NetworkPlugin }

func (p *network) waits(n *Node, _ *plan) []step {
	if n.First {
		return []step{{host: n.Hostname, phase: phaseInit, must: true}}
	}
	return nil
}

func (p *network) resources(n *Node) (resources, error) {
	var res resources
	if p.plugin() == flannelPlugin {
		res.files = []file{
			{path: cniScript, mode: 0o755, body: flannelCNI},
			{path: cniService, mode: 0o644, body: flannelCNIService},
			{path: cniPath, mode: 0o644, body: flannelCNIPath},
		}
		res.units = []unit{
			{name: "paictl-cni.path", reads: []string{cniPath}},
			{name: "paictl-cni.service", reads: []string{cniScript, cniService}, later: true},
		}
	}
	if !n.First {
		return res, nil
	}
	manifest, err := p.manifest()
	if err != nil {
		return res, err
	}
	res.files = append(res.files, file{path: networkFile, mode: 0o644, body: manifest})
	return res, nil
}

// manifest returns what is applied to the cluster.
func (p *network) manifest() ([]byte, error) {
	k := p.spec.Config.Kubernetes.Kubernetes
	if p.plugin() != flannelPlugin {
		b, err := os.ReadFile(p.spec.Config.NetworkManifest())
		return b, hint.Wrap(err, "network-plugin in kubernetes-configuration.yaml is flannel, none, or the path of a manifest")
	}
	image, err := p.spec.image("flannel")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	t, err := template.New("flannel").Parse(flannelTemplate)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(p.spec.endpoint())
	if err != nil {
		return nil, err
	}
	err = t.Execute(&b, map[string]string{
		"PodCIDR": k.PodCIDR, "Image": p.spec.imageRef(image), "APIHost": host, "APIPort": port,
	})
	return b.Bytes(), err
}

func (p *network) detect(n *Node) (string, error) {
	res, err := p.resources(n)
	return res.detect() + ":\n", err
}

const runApplyNetwork = "kubectl apply"

func (p *network) diff(n *Node, w *world) ([]Change, error) {
	res, err := p.resources(n)
	if err != nil {
		return nil, err
	}
	cs := res.diff(w.of(n, phaseNetwork))
	if !n.First {
		return cs, nil
	}
	if manifest := res.files[len(res.files)-1]; w.of(n, phaseInit).value("network") != hash(manifest.body) {
		cs = append(cs, Change{Action: "run", Target: runApplyNetwork, Detail: "network plugin " + p.plugin()})
	}
	return cs, nil
}

func (p *network) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	for _, c := range cs {
		if c.Target != runApplyNetwork {
			continue
		}
		sum := hash(res.files[len(res.files)-1].body)
		res.after += fmt.Sprintf(`
kubectl apply -f "$R%s" >&2
kubectl create configmap -n kube-system paictl --from-literal=network=%s --dry-run=client -o yaml | kubectl apply -f - >&2
note change "network plugin"
`, networkFile, sum)
	}
	_, err = r.script(ctx, n, phaseNetwork, "apply", res.script(cs))
	return err
}

// verify waits until the first machine is Ready, which says that the network works there.
// The others are waited for when they join.
func (p *network) verify(n *Node) string {
	if !n.First || p.plugin() != flannelPlugin {
		return ""
	}
	return waitReady(n)
}

// waitReady is shell that waits until the node that it runs on is Ready, asking with the
// kubelet's own credentials.
func waitReady(n *Node) string {
	return fmt.Sprintf(`
node=%s
ready() {
	kubectl --kubeconfig "$R/etc/kubernetes/kubelet.conf" get node "$node" --request-timeout=10s \
		-o 'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status}{"\t"}{.message}{end}' 2>&1 || true
}
i=0
while :; do
	s=$(ready)
	case $s in True*) break ;; esac
	i=$((i + 1))
	if [ "$i" -ge 360 ]; then
		echo "node $node is not Ready after three minutes: $(printf %%s "$s" | tr '\t\n' '  ' | cut -c1-300) -> see journalctl -u kubelet on the host" >&2
		exit 1
	fi
	sleep 0.5
done
`, quote(n.Hostname))
}
