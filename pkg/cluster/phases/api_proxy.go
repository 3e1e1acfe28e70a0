package phases

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
)

// apiProxy runs a program on each machine that forwards connections from a local address to a ready master. The program is a service and not a pod,
// because the kubelet needs the API before it can run pods.
type apiProxy struct{ want *engine.Desired }

// Names and paths of the API proxy.
const (
	phaseAPIProxy = "api-proxy"
	proxyProgram  = "pai-api-proxy"
	proxyUnit     = proxyProgram + ".service"
	ProxyService  = "/etc/systemd/system/" + proxyUnit
	KubeletName   = "kubelet.service"
	APIServers    = confDir + "/api-servers"
)

//go:embed files/pai-api-proxy.service
var proxyUnitFile string

func (*apiProxy) Name() string              { return phaseAPIProxy }
func (*apiProxy) Traits() engine.Traits     { return engine.Traits{Upgrade: engine.UpgradeAfter} }
func (*apiProxy) Applies(*engine.Node) bool { return true }

func (p *apiProxy) Waits(n *engine.Node, pl *engine.Plan) []engine.Step {
	return rollout(pl, n, phaseAPIProxy, proxyUnit)
}

func (p *apiProxy) resources(n *engine.Node) (engine.Resources, error) {
	bins, err := binaries(p.want.Spec, n, proxyProgram)
	if err != nil {
		return engine.Resources{}, err
	}
	var servers strings.Builder
	servers.WriteString("# Written by paictl: the masters of layout.yaml. " + proxyProgram + " reads it again when it changes.\n")
	for _, m := range p.want.ControlPlane() {
		servers.WriteString(p.want.OwnEndpoint(m) + "\n")
	}
	unitFile := strings.ReplaceAll(proxyUnitFile, "LISTEN", config.LocalAPI())
	return engine.Resources{
		Artifacts: bins,
		Files: []engine.File{
			{Path: APIServers, Mode: 0o644, Body: []byte(servers.String())},
			{Path: ProxyService, Mode: 0o644, Body: []byte(unitFile)},
		},
		// A change of the list doesn't restart the unit, because the program reloads the list itself. Existing connections therefore survive.
		Units: []engine.Unit{{Name: proxyUnit, Reads: []string{ProxyService, path.Join(BinDir, proxyProgram)}}},
	}, nil
}

func (p *apiProxy) Detect(n *engine.Node) (string, error) {
	res, err := p.resources(n)
	return res.Detect() + fmt.Sprintf("d_gone %s\n", ProxyService), err
}

func (p *apiProxy) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	a := w.Of(n, phaseAPIProxy)
	// Update an installed proxy even if the API's address is no longer local, because the machine's pods may still use the proxy for a while.
	if !p.want.Local() && a.Value("gone", ProxyService) != "there" {
		return nil, nil
	}
	res, err := p.resources(n)
	return res.Diff(a), err
}

func (p *apiProxy) Carries(n *engine.Node, _ *engine.World, cs []engine.Change) []bundle.Artifact {
	res, _ := p.resources(n) // Diff has called resources before, without an error
	return engine.Sources(res.Uploads(cs))
}

func (p *apiProxy) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	return r.ApplyResources(ctx, n, phaseAPIProxy, res, cs)
}

func (p *apiProxy) Verify(*engine.Node) string {
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

// kubeletServer returns the HOST:PORT at which a member's kubelet must reach the API. On a master, kubeadm requires the master's own API server.
func kubeletServer(d *engine.Desired, n *engine.Node) string {
	if n.ControlPlane {
		return d.OwnEndpoint(n)
	}
	return d.Endpoint()
}

// moves returns the change after which a member's kubelet uses the current address of the API, or nil if the kubelet already uses the address.
func moves(d *engine.Desired, n *engine.Node, w *engine.World) []engine.Change {
	a := w.Of(n, engine.PhaseJoin)
	has, due := strings.TrimPrefix(a.Value("kubelet-server"), "https://"), a.Value("kubelet-moves") == "yes"
	if has == "" || !due && (has == kubeletServer(d, n) || n.ControlPlane && has == d.Endpoint()) {
		return nil
	}
	detail := "it reaches the API at " + kubeletServer(d, n) + ", no longer at " + has
	if has == kubeletServer(d, n) {
		detail = "it reaches the API at " + has + ": its restart was interrupted"
	}
	return []engine.Change{{Action: "restart", Target: KubeletName, Detail: detail}}
}

// isMove reports whether the changes of the phase join include a new API address for a kubelet.
func isMove(cs []engine.Change) bool {
	return slices.ContainsFunc(cs, func(c engine.Change) bool { return c.Target == KubeletName })
}

func (p *join) move(n *engine.Node) string {
	wait := 0
	if p.want.Config.Kubernetes.Kubernetes.NetworkPlugin == FlannelPlugin {
		wait = 1
	}
	return NodeReady(n) + KubeletScript + KubeadmScript + fmt.Sprintf("k_move %s %d\n", shell.Quote("https://"+kubeletServer(p.want, n)), wait)
}

func addressMoves(w *engine.World) bool {
	if w.Leader == nil || w.Founding() {
		return false
	}
	has := strings.TrimPrefix(w.Of(w.Leader, engine.PhaseJoin).Value("server"), "https://")
	return has != "" && has != w.Want.Endpoint()
}

// withoutProxy returns an error if the run would break a node. kube-proxy and the pods' network are about to use the API at local addresses. A
// running node without a proxy at such an address would no longer update its services. The run has skipped that node or can't reach it.
func withoutProxy(r *engine.Run) error {
	w := r.Planned.World
	if !addressMoves(w) || !r.Want.Local() {
		return nil
	}
	nodes, err := w.Nodes()
	if err != nil {
		return err
	}
	for _, n := range r.Spec.Nodes {
		node, known := nodes[n.Hostname]
		if known && r.IsAside(n) && engine.IsReady(node) {
			return hint.Errorf("repair the machine and run the same command again; or switch it off, or remove it from the cluster; or set api-endpoint to the address that is used so far",
				"the API's address is about to change to %s, at which %s finds nothing: its node runs, but it was set aside in this run", r.Want.Endpoint(), n.Hostname)
		}
	}
	return nil
}

// RefuseMove returns an error if the API's address is about to change and some machines couldn't reach the API afterwards. The run must
// include all machines, and each member must be able to reach the new address.
func RefuseMove(ctx context.Context, r *engine.Run, w *engine.World) error {
	whole := len(r.Opts.Limit)+len(r.Only) == 0
	if !addressMoves(w) {
		if len(r.Only) > 0 && slices.ContainsFunc(r.Spec.Nodes, func(n *engine.Node) bool { return w.Member(n) && len(moves(r.Want, n, w)) > 0 }) {
			return hint.Errorf("run it without --phases", "kubelets are about to use another address of the API, %s", r.Want.Endpoint())
		}
		return nil
	}
	if !whole {
		return hint.Errorf("run it without --limit and --phases; or undo the change of masters, api-endpoint or load-balance-ip",
			"the API's address is about to change to %s, for all machines", r.Want.Endpoint())
	}
	if r.Want.Local() {
		return nil // each machine gets its own address in this run
	}
	members := slices.DeleteFunc(r.Working(r.Spec.Nodes), func(n *engine.Node) bool { return !w.Member(n) })
	var mu sync.Mutex
	var without []string
	errs := r.Each(ctx, members, func(ctx context.Context, n *engine.Node) error {
		// Verify the server with the cluster's CA and a name that every API server's certificate contains. The new address isn't in the certificates yet.
		res, err := r.Read(ctx, n, engine.PhaseInit, "endpoint", fmt.Sprintf(
			"if kubectl --kubeconfig=/dev/null --server=%s --certificate-authority=\"$R/etc/kubernetes/pki/ca.crt\" --tls-server-name=kubernetes --request-timeout=10s get --raw /readyz >/dev/null 2>&1; then echo reached; fi\n",
			shell.Quote("https://"+r.Want.Endpoint())))
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(res.Stdout)) != "reached" {
			mu.Lock()
			without = append(without, n.Hostname)
			mu.Unlock()
		}
		return nil
	})
	if err := r.SetAsideAll(ctx, engine.PhaseInit, errs); err != nil || len(without) == 0 {
		return err
	}
	slices.Sort(without)
	return hint.Errorf("correct api-endpoint or load-balance-ip in kubernetes-configuration.yaml (with several masters both may be absent), or set up the load balancer and its routes",
		"the API's address is to become %s, but no API server of this cluster is ready there, seen from %s: nothing was changed", r.Want.Endpoint(), strings.Join(without, ", "))
}
