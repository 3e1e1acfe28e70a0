package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// base prepares the operating system: kernel modules and settings, swap, time
// synchronisation and the names of all machines in /etc/hosts.
type base struct{ want *desired }

const (
	phaseBase     = "base"
	sysctlFile    = paths.Sysctl
	oldSysctlFile = "/etc/sysctl.d/90-paictl.conf" // of earlier releases
)

func (*base) name() string              { return phaseBase }
func (*base) traits() traits            { return traits{upgrade: upgradeAfter} }
func (*base) applies(*Node) bool        { return true }
func (*base) waits(*Node, *plan) []step { return nil }
func (*base) verify(*Node) string       { return "" }

// keepsSwap reports whether the operator's kubelet settings allow swap.
func (p *base) keepsSwap() bool {
	v, ok := p.want.Config.Kubernetes.Kubernetes.Extra.Kubelet["failSwapOn"].(bool)
	return ok && !v
}

func (p *base) resources() resources {
	modules := []module{
		{name: "overlay"},
		{name: "br_netfilter", probe: "/proc/sys/net/bridge/bridge-nf-call-iptables"},
	}
	sysctls := map[string]string{
		"net.ipv4.ip_forward":                 "1",
		"net.bridge.bridge-nf-call-iptables":  "1",
		"net.bridge.bridge-nf-call-ip6tables": "1",
	}
	maps.Copy(sysctls, p.want.Config.Kubernetes.Kubernetes.Extra.Sysctl)

	var load, set, hosts strings.Builder
	for _, m := range modules {
		load.WriteString(m.name + "\n")
	}
	for _, k := range slices.Sorted(maps.Keys(sysctls)) {
		fmt.Fprintf(&set, "%s = %s\n", k, sysctls[k])
	}
	// Sorted by address, so that another order in layout.yaml doesn't change the file.
	for _, n := range slices.SortedFunc(slices.Values(p.want.Nodes), byAddress) {
		fmt.Fprintf(&hosts, "%s %s\n", n.HostIP, n.Hostname)
	}
	return resources{
		modules: modules,
		sysctls: sysctls,
		files: []file{
			{path: "/etc/modules-load.d/paictl.conf", mode: 0o644, body: []byte(load.String())},
			{path: sysctlFile, mode: 0o644, body: []byte(set.String())},
		},
		gone:   []string{oldSysctlFile},
		blocks: []block{{path: "/etc/hosts", body: []byte(hosts.String())}},
	}
}

func (p *base) detect(*Node) (string, error) {
	res := p.resources()
	later := fmt.Sprintf("d_sysctl_later %s %s\n", shell.Quote(sysctlFile), shell.QuoteAll(slices.Sorted(maps.Keys(res.sysctls))))
	return res.detect() + later + "d_swap\nd_timesync\n", nil
}

func (p *base) diff(n *Node, w *world) ([]Change, error) {
	a := w.of(n, phaseBase)
	cs := p.resources().diff(a)
	if !p.keepsSwap() && a.Value("swap") == "on" {
		cs = append(cs, Change{Action: "run", Target: "swapoff", Detail: "kubelet refuses to start while swap is on"})
	}
	if a.Value("timesync") == "off" {
		cs = append(cs, Change{Action: "enable", Target: "time synchronisation", Detail: "systemd-timesyncd"})
	}
	return cs, nil
}

func (p *base) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	res := p.resources()
	for _, c := range cs {
		switch c.Target {
		case "swapoff":
			res.after += "p_swapoff\n"
		case "time synchronisation":
			res.after += "p_timesync\n"
		}
	}
	return r.applyResources(ctx, n, phaseBase, res, cs)
}
