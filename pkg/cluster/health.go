package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
)

// warnNotReady warns about nodes that are NotReady and that the run doesn't repair. It does nothing if paictl doesn't install the network plugin,
// because a node without a network plugin is NotReady.
func warnNotReady(r *engine.Run, p *engine.Plan, nodes []*engine.Node) {
	if r.Spec.Config.Kubernetes.Kubernetes.NetworkPlugin != phases.FlannelPlugin {
		return
	}
	known, err := p.World.Nodes()
	if err != nil {
		return // the plan has already failed for this error
	}
	for _, n := range r.Working(nodes) {
		node, ok := known[n.Hostname]
		if !ok || !phases.StaysMember(p.World, n) || repairs(p, n) {
			continue
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				r.Emit(engine.Event{
					Kind: engine.EventWarning, Host: n.Hostname, Phase: phases.PhaseKubelet,
					Message: "the node is NotReady, although nothing on its machine differs from the configuration: " + c.Message,
					Hint:    "see journalctl -u kubelet -u containerd on " + n.Hostname,
				})
			}
		}
	}
}

// repairs reports whether the run changes a part of a machine that its node needs to become Ready.
func repairs(p *engine.Plan, n *engine.Node) bool {
	return slices.ContainsFunc(p.Phases, func(ph engine.Phase) bool { return ph.Traits().Repairs && len(p.Of(n, ph.Name())) > 0 })
}
