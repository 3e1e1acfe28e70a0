package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// warnNotReady names the machines that are NotReady although the run doesn't change anything that
// makes a node Ready. A plan has no change to list for that, but the operator should know it.
// Without paictl's own network plugin a node may be NotReady on purpose.
func (r *run) warnNotReady(p *plan, nodes []*Node) {
	if r.spec.Config.Kubernetes.Kubernetes.NetworkPlugin != flannelPlugin {
		return
	}
	known, err := p.world.nodes()
	if err != nil {
		return // the plan has already failed for this error
	}
	for _, n := range r.alive(nodes) {
		node, ok := known[n.Hostname]
		if !ok || !p.world.stays(n) || p.repairs(n) {
			continue
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				r.emit(Event{
					Kind: EventWarning, Host: n.Hostname, Phase: phaseKubelet,
					Message: "the node is NotReady, although nothing on its machine differs from the configuration: " + c.Message,
					Hint:    "see journalctl -u kubelet -u containerd on " + n.Hostname,
				})
			}
		}
	}
}

// repairs reports whether the run changes something that a machine's node needs to be Ready.
func (p *plan) repairs(n *Node) bool {
	return slices.ContainsFunc(p.phases, func(ph phase) bool { return ph.traits().repairs && len(p.of(n, ph.name())) > 0 })
}
