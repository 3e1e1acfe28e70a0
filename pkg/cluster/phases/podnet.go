package phases

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// A node's pods keep the same subnet as long as the node object exists. If the object is deleted and created again, it gets another subnet. The
// machine isn't notified, and its bridge cni0 keeps the old address. The CNI plugin then fails to add pods to the bridge, although the node is
// Ready. The functions in this file detect and repair this state.

const (
	podBridge  = "interface cni0"
	podFlannel = "flannel"
)

// Differs reports whether address is in another network than subnet. address may also be a subnet. Differs returns false if an argument is invalid.
func Differs(address, subnet string) bool {
	a, errA := netip.ParsePrefix(address)
	s, errS := netip.ParsePrefix(subnet)
	return errA == nil && errS == nil && a.Masked() != s.Masked()
}

// podSubnet returns the subnet of the node's pods in the API. If the API has no subnet for the node, it returns flannel's subnet.
func (p *network) podSubnet(n *engine.Node, w *engine.World) (string, error) {
	nodes, err := w.Nodes()
	if err != nil {
		return "", err
	}
	if have := nodes[n.Hostname].Spec.PodCIDR; have != "" {
		return have, nil
	}
	given, _ := PodNetwork(w.Of(n, PhaseNetwork))
	return given, nil
}

// PodNetwork parses the subnets of flannel and of the pods' bridge from a machine's output.
func PodNetwork(a answer.Answer) (flannel, bridge string) {
	row, _ := a.Row("podnet")
	if len(row) < 2 {
		return "", ""
	}
	return row[1], row[0]
}

// diffPods compares the subnets of the pods' bridge and of flannel with the node's subnet. It returns no changes for a machine that is about to join,
// because the phase join resets the network first.
func (p *network) diffPods(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	if p.plugin() != FlannelPlugin || !StaysMember(w, n) {
		return nil, nil
	}
	want, err := p.podSubnet(n, w)
	if err != nil {
		return nil, err
	}
	given, bridge := PodNetwork(w.Of(n, PhaseNetwork))
	var cs []engine.Change
	if Differs(given, want) {
		cs = append(cs, engine.Change{Action: "restart", Target: podFlannel, Detail: fmt.Sprintf("it has %s, the node's subnet is %s", given, want)})
	}
	if Differs(bridge, want) {
		cs = append(cs, engine.Change{Action: "delete", Target: podBridge, Detail: fmt.Sprintf("it has %s, the node's subnet is %s; its pods start again", bridge, want)})
	}
	return cs, nil
}

func (p *network) repairPods(n *engine.Node, w *engine.World, cs []engine.Change) (string, error) {
	has := func(target string) bool {
		return slices.ContainsFunc(cs, func(c engine.Change) bool { return c.Target == target })
	}
	if !has(podFlannel) && !has(podBridge) {
		return "", nil
	}
	want, err := p.podSubnet(n, w)
	flannel := 0
	if has(podFlannel) {
		flannel = 1
	}
	return fmt.Sprintf("p_pod_network %s %d\n", shell.Quote(want), flannel), err
}
