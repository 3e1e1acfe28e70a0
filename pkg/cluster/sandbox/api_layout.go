package sandbox

import (
	"net/netip"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
)

// NodesOf returns a node to simulate for each machine of a layout, with the hardware of the machine's SKU. The functions labels and taints return the
// labels and taints of a machine's roles.
func NodesOf(l layout.Layout, labels func(layout.Machine) map[string]string, taints func(layout.Machine) []string) ([]Node, error) {
	var out []Node
	for _, m := range l.MachineList {
		sku, ok := l.MachineSKU[m.SKU]
		if !ok {
			return nil, hint.Errorf("define it under machine-sku, or correct machine-type", "the machine %s has the SKU %q, which the layout doesn't define", m.Hostname, m.SKU)
		}
		if sku.CPU.VCore < 1 || sku.Mem == "" {
			return nil, hint.Errorf("fill them in (paictl config validate lists everything that is missing)", "the SKU %q has no cpu.vcore or no mem", m.SKU)
		}
		addr, err := netip.ParseAddr(m.HostIP)
		if err != nil {
			return nil, hint.Errorf("write an IP address", "the machine %s has the hostip %q", m.Hostname, m.HostIP)
		}
		n := Node{Name: m.Hostname, Address: addr, CPU: sku.CPU.VCore, Memory: sku.Mem, Arch: sku.Arch, Roles: m.Roles,
			Labels: labels(m), Taints: taints(m)}
		if sku.GPU != nil {
			n.GPUs, n.GPUType = sku.GPU.Leaves(), sku.GPU.Type
		}
		out = append(out, n)
	}
	return out, nil
}
