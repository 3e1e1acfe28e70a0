package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
)

// apiProxy gives each machine an address of the API that outlives any master: a program that passes connections on to a master
// which is ready. It is a service and no pod, since the kubelet needs the API before it runs pods.
type apiProxy struct{ spec *Spec }

const (
	phaseAPIProxy = "api-proxy"
	proxyProgram  = "pai-api-proxy"
	proxyUnit     = proxyProgram + ".service"
	proxyService  = "/etc/systemd/system/" + proxyUnit
	kubeletName   = "kubelet.service"
	apiServers    = confDir + "/api-servers"
)

//go:embed files/pai-api-proxy.service
var proxyUnitFile string

func (*apiProxy) name() string              { return phaseAPIProxy }
func (*apiProxy) waits(*Node, *plan) []step { return nil }

func (p *apiProxy) applies(*Node) bool { return p.spec.Config == nil || p.spec.local() }

func (p *apiProxy) resources(n *Node) (resources, error) {
	bins, err := p.spec.binaries(n, proxyProgram)
	if err != nil {
		return resources{}, err
	}
	var servers strings.Builder
	servers.WriteString("# Written by paictl: the masters of layout.yaml. " + proxyProgram + " reads it again when it changes.\n")
	for _, m := range p.spec.ControlPlane() {
		servers.WriteString(p.spec.ownEndpoint(m) + "\n")
	}
	unitFile := strings.ReplaceAll(proxyUnitFile, "LISTEN", config.LocalAPI())
	return resources{
		artifacts: bins,
		files: []file{
			{path: apiServers, mode: 0o644, body: []byte(servers.String())},
			{path: proxyService, mode: 0o644, body: []byte(unitFile)},
		},
		// It reads the list of servers itself, so that no connection breaks when a master comes or goes.
		units: []unit{{name: proxyUnit, reads: []string{proxyService, path.Join(binDir, proxyProgram)}}},
	}, nil
}

func (p *apiProxy) detect(n *Node) (string, error) {
	res, err := p.resources(n)
	return res.detect(), err
}

func (p *apiProxy) diff(n *Node, w *world) ([]Change, error) {
	res, err := p.resources(n)
	return res.diff(w.of(n, phaseAPIProxy)), err
}

func (p *apiProxy) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	return r.applyResources(ctx, n, phaseAPIProxy, res, cs)
}

func (p *apiProxy) verify(*Node) string {
	host, port, _ := net.SplitHostPort(config.LocalAPI())
	return fmt.Sprintf(`
i=0
until timeout 5 bash -c 'exec 3<>"/dev/tcp/$1/$2"' proxy %[1]s %[2]s 2>/dev/null; do
	i=$((i + 1))
	[ "$i" -lt 60 ] || { echo "%[3]s does not listen at %[1]s:%[2]s -> see journalctl -u %[3]s on the host" >&2; exit 1; }
	sleep 0.5
done
`, host, port, proxyProgram)
}

// kubeletServer is the address at which a member's kubelet shall reach the API. One on a master asks its own API server, as kubeadm wants it.
func (s *Spec) kubeletServer(n *Node) string {
	if n.ControlPlane {
		return s.ownEndpoint(n)
	}
	return s.endpoint()
}

// moves returns the changes that bring a member's kubelet to the API's address of now, and take away the proxy that it no longer needs.
func (s *Spec) moves(n *Node, w *world) []Change {
	a := w.of(n, phaseJoin)
	var out []Change
	has := strings.TrimPrefix(a.Value("kubelet-server"), "https://")
	if has != "" && has != s.kubeletServer(n) && (!n.ControlPlane || has != s.endpoint()) {
		out = append(out, Change{Action: "restart", Target: kubeletName, Detail: "it reaches the API at " + s.kubeletServer(n) + ", no longer at " + has})
	}
	if !s.local() && a.Value("gone", proxyService) == "there" {
		out = append(out, Change{Action: "delete", Target: proxyService, Detail: "the API is reached at " + s.endpoint()})
	}
	return out
}

// isMove reports whether changes of the phase join are those of moves.
func isMove(cs []Change) bool {
	return slices.ContainsFunc(cs, func(c Change) bool { return c.Target == kubeletName || c.Target == proxyService })
}

// move is shell that makes those changes. The proxy goes last, when the node is Ready without it.
func (p *join) move(n *Node, cs []Change) string {
	wait := 0
	if p.spec.Config.Kubernetes.Kubernetes.NetworkPlugin == flannelPlugin {
		wait = 1
	}
	var b strings.Builder
	b.WriteString(nodeReady(n) + kubeletScript + kubeadmScript)
	for _, c := range cs {
		switch c.Target {
		case kubeletName:
			fmt.Fprintf(&b, "k_server kubelet.conf %s\nsystemctl restart %s\nnote change %s\nv_kubelet %d\n",
				shell.Quote("https://"+p.spec.kubeletServer(n)), kubeletName, kubeletName, wait)
		case proxyService:
			fmt.Fprintf(&b, "k_no_proxy %s %s %s\n", proxyUnit, shell.Quote(apiServers), shell.Quote(path.Join(binDir, proxyProgram)))
		}
	}
	return b.String()
}
