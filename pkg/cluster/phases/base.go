package phases

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// base prepares the operating system: kernel modules and settings, swap, time synchronization, and the names of all machines in /etc/hosts.
type base struct{ want *engine.Desired }

// Names and paths of the phase base.
const (
	PhaseBase     = "base"
	SysctlFile    = paths.Sysctl
	OldSysctlFile = "/etc/sysctl.d/90-paictl.conf" // written by earlier releases
)

func (*base) Name() string                                   { return PhaseBase }
func (*base) Traits() engine.Traits                          { return engine.Traits{Upgrade: engine.UpgradeAfter} }
func (*base) Applies(*engine.Node) bool                      { return true }
func (*base) Waits(*engine.Node, *engine.Plan) []engine.Step { return nil }
func (*base) Verify(*engine.Node) string                     { return "" }

func (p *base) keepsSwap() bool {
	v, ok := p.want.Config.Kubernetes.Kubernetes.Extra.Kubelet["failSwapOn"].(bool)
	return ok && !v
}

func (p *base) resources() engine.Resources {
	modules := []engine.Module{
		{Name: "overlay"},
		{Name: "br_netfilter", Probe: "/proc/sys/net/bridge/bridge-nf-call-iptables"},
	}
	sysctls := map[string]string{
		"net.ipv4.ip_forward":                 "1",
		"net.bridge.bridge-nf-call-iptables":  "1",
		"net.bridge.bridge-nf-call-ip6tables": "1",
	}
	maps.Copy(sysctls, p.want.Config.Kubernetes.Kubernetes.Extra.Sysctl)

	var load, set, hosts strings.Builder
	for _, m := range modules {
		load.WriteString(m.Name + "\n")
	}
	for _, k := range slices.Sorted(maps.Keys(sysctls)) {
		fmt.Fprintf(&set, "%s = %s\n", k, sysctls[k])
	}
	// Sort the nodes by address, so that the order in layout.yaml doesn't affect the file.
	for _, n := range slices.SortedFunc(slices.Values(p.want.Nodes), engine.ByAddress) {
		fmt.Fprintf(&hosts, "%s %s\n", n.HostIP, n.Hostname)
	}
	return engine.Resources{
		Modules: modules,
		Sysctls: sysctls,
		Files: []engine.File{
			{Path: "/etc/modules-load.d/paictl.conf", Mode: 0o644, Body: []byte(load.String())},
			{Path: SysctlFile, Mode: 0o644, Body: []byte(set.String())},
		},
		Gone:   []string{OldSysctlFile},
		Blocks: []engine.Block{{Path: "/etc/hosts", Body: []byte(hosts.String())}},
	}
}

func (p *base) Detect(*engine.Node) (string, error) {
	res := p.resources()
	later := fmt.Sprintf("d_sysctl_later %s %s\n", shell.Quote(SysctlFile), shell.QuoteAll(slices.Sorted(maps.Keys(res.Sysctls))))
	return res.Detect() + later + "d_swap\nd_timesync\n", nil
}

func (p *base) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	a := w.Of(n, PhaseBase)
	cs := p.resources().Diff(a)
	if !p.keepsSwap() && a.Value("swap") == "on" {
		cs = append(cs, engine.Change{Action: "run", Target: "swapoff", Detail: "kubelet refuses to start while swap is on"})
	}
	if a.Value("timesync") == "off" {
		cs = append(cs, engine.Change{Action: "enable", Target: "time synchronisation", Detail: "systemd-timesyncd"})
	}
	return cs, nil
}

func (p *base) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	res := p.resources()
	for _, c := range cs {
		switch c.Target {
		case "swapoff":
			res.After += "p_swapoff\n"
		case "time synchronisation":
			res.After += "p_timesync\n"
		}
	}
	return r.ApplyResources(ctx, n, PhaseBase, res, cs)
}
