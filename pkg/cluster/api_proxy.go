package cluster

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
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
)

// apiProxy gives each machine an address of the API that outlives any master: a program that forwards connections to a ready
// master. It is a service and not a pod, since the kubelet needs the API before it runs pods.
type apiProxy struct{ want *desired }

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

func (*apiProxy) name() string       { return phaseAPIProxy }
func (*apiProxy) traits() traits     { return traits{upgrade: upgradeAfter} }
func (*apiProxy) applies(*Node) bool { return true }

func (p *apiProxy) waits(n *Node, pl *plan) []step {
	return pl.rollout(n, phaseAPIProxy, proxyUnit)
}

func (p *apiProxy) resources(n *Node) (resources, error) {
	bins, err := p.want.binaries(n, proxyProgram)
	if err != nil {
		return resources{}, err
	}
	var servers strings.Builder
	servers.WriteString("# Written by paictl: the masters of layout.yaml. " + proxyProgram + " reads it again when it changes.\n")
	for _, m := range p.want.ControlPlane() {
		servers.WriteString(p.want.ownEndpoint(m) + "\n")
	}
	unitFile := strings.ReplaceAll(proxyUnitFile, "LISTEN", config.LocalAPI())
	return resources{
		artifacts: bins,
		files: []file{
			{path: apiServers, mode: 0o644, body: []byte(servers.String())},
			{path: proxyService, mode: 0o644, body: []byte(unitFile)},
		},
		// The program reads the list of servers itself, so that connections don't break when a master is added or removed.
		units: []unit{{name: proxyUnit, reads: []string{proxyService, path.Join(binDir, proxyProgram)}}},
	}, nil
}

func (p *apiProxy) detect(n *Node) (string, error) {
	res, err := p.resources(n)
	return res.detect() + fmt.Sprintf("d_gone %s\n", proxyService), err
}

func (p *apiProxy) diff(n *Node, w *world) ([]Change, error) {
	a := w.of(n, phaseAPIProxy)
	// An installed proxy stays, and is kept up to date: pods of the machine may use it for a while after the API's address has moved.
	if !p.want.local() && a.Value("gone", proxyService) != "there" {
		return nil, nil
	}
	res, err := p.resources(n)
	return res.diff(a), err
}

func (p *apiProxy) carries(n *Node, _ *world, cs []Change) []bundle.Artifact {
	res, _ := p.resources(n) // diff has called it before, without an error
	return sources(res.uploads(cs))
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

// kubeletServer returns the address at which a member's kubelet must reach the API. A kubelet on a master uses its own API
// server, as kubeadm requires.
func (d *desired) kubeletServer(n *Node) string {
	if n.ControlPlane {
		return d.ownEndpoint(n)
	}
	return d.endpoint()
}

// moves returns the change that points a member's kubelet at the current address of the API.
func (d *desired) moves(n *Node, w *world) []Change {
	a := w.of(n, phaseJoin)
	has, due := strings.TrimPrefix(a.Value("kubelet-server"), "https://"), a.Value("kubelet-moves") == "yes"
	if has == "" || !due && (has == d.kubeletServer(n) || n.ControlPlane && has == d.endpoint()) {
		return nil
	}
	detail := "it reaches the API at " + d.kubeletServer(n) + ", no longer at " + has
	if has == d.kubeletServer(n) {
		detail = "it reaches the API at " + has + ": its restart was interrupted"
	}
	return []Change{{Action: "restart", Target: kubeletName, Detail: detail}}
}

// isMove reports whether changes of the phase join move a kubelet to another address.
func isMove(cs []Change) bool {
	return slices.ContainsFunc(cs, func(c Change) bool { return c.Target == kubeletName })
}

// move returns the shell code that makes this change.
func (p *join) move(n *Node) string {
	wait := 0
	if p.want.Config.Kubernetes.Kubernetes.NetworkPlugin == flannelPlugin {
		wait = 1
	}
	return nodeReady(n) + kubeletScript + kubeadmScript + fmt.Sprintf("k_move %s %d\n", shell.Quote("https://"+p.want.kubeletServer(n)), wait)
}

// addressMoves reports whether this run moves the whole cluster to another address of the API.
func (w *world) addressMoves() bool {
	if w.leader == nil || w.founding() {
		return false
	}
	has := strings.TrimPrefix(w.of(w.leader, phaseJoin).Value("server"), "https://")
	return has != "" && has != w.want.endpoint()
}

// withoutProxy refuses to point kube-proxy and the pods' network at the machines' own addresses while a node runs that doesn't have
// such an address yet: the node was set aside in this run or can't be reached, and its services would freeze.
func (r *run) withoutProxy() error {
	w := r.planned.world
	if !w.addressMoves() || !r.want.local() {
		return nil
	}
	nodes, err := w.nodes()
	if err != nil {
		return err
	}
	for _, n := range r.spec.Nodes {
		node, known := nodes[n.Hostname]
		if known && r.isAside(n) && isReady(node) {
			return hint.Errorf("repair the machine and run the same command again; or switch it off, or remove it from the cluster; or set api-endpoint to the address that is used so far",
				"the API's address is about to change to %s, at which %s finds nothing: its node runs, but it was set aside in this run", r.want.endpoint(), n.Hostname)
		}
	}
	return nil
}

// refuseMove refuses to move the API's address if some of the machines would be left without one: all of them have to be in the run,
// and each member must reach the new address.
func (r *run) refuseMove(ctx context.Context, w *world) error {
	whole := len(r.opts.Limit)+len(r.only) == 0
	if !w.addressMoves() {
		if len(r.only) > 0 && slices.ContainsFunc(r.spec.Nodes, func(n *Node) bool { return w.member(n) && len(r.want.moves(n, w)) > 0 }) {
			return hint.Errorf("run it without --phases", "kubelets are about to use another address of the API, %s", r.want.endpoint())
		}
		return nil
	}
	if !whole {
		return hint.Errorf("run it without --limit and --phases; or undo the change of masters, api-endpoint or load-balance-ip",
			"the API's address is about to change to %s, for all machines", r.want.endpoint())
	}
	if r.want.local() {
		return nil // each machine gets it in this run
	}
	members := slices.DeleteFunc(r.alive(r.spec.Nodes), func(n *Node) bool { return !w.member(n) })
	var mu sync.Mutex
	var without []string
	errs := r.each(ctx, members, func(ctx context.Context, n *Node) error {
		// It verifies with the cluster's own authority and a name that every API server has: the certificates get the new name later.
		res, err := r.read(ctx, n, phaseInit, "endpoint", fmt.Sprintf(
			"if kubectl --kubeconfig=/dev/null --server=%s --certificate-authority=\"$R/etc/kubernetes/pki/ca.crt\" --tls-server-name=kubernetes --request-timeout=10s get --raw /readyz >/dev/null 2>&1; then echo reached; fi\n",
			shell.Quote("https://"+r.want.endpoint())))
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
	if err := r.setAsideAll(ctx, phaseInit, errs); err != nil || len(without) == 0 {
		return err
	}
	slices.Sort(without)
	return hint.Errorf("correct api-endpoint or load-balance-ip in kubernetes-configuration.yaml (with several masters both may be absent), or set up the load balancer and its routes",
		"the API's address is to become %s, but no API server of this cluster is ready there, seen from %s: nothing was changed", r.want.endpoint(), strings.Join(without, ", "))
}
