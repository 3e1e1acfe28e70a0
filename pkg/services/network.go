package services

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube"
)

// enforcers lists parts of the names of DaemonSets that enforce NetworkPolicies.
var enforcers = []string{"calico", "canal", "cilium", "antrea", "weave", "kube-router", "ovn", "network-polic", "azure-npm"}

// hasPolicies reports whether the cluster contains NetworkPolicies of the services.
func (p *Platform) hasPolicies(ctx context.Context) bool {
	policies, err := p.Client.NetworkingV1().NetworkPolicies(kube.SystemNamespace).List(ctx, metav1.ListOptions{Limit: 1, LabelSelector: labelPartOf + "=" + manager})
	return err == nil && len(policies.Items) > 0
}

// policyNote returns a note if the services' NetworkPolicies have no effect because flannel doesn't enforce them. policyNote returns nil if the
// policies are effective, if no policies exist, or if their effect is unknown.
func (p *Platform) policyNote(ctx context.Context) *Note {
	if !p.hasPolicies(ctx) {
		return nil
	}
	sets, err := p.Client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	flannel := false
	for i := range sets.Items {
		name := sets.Items[i].Name
		if slices.ContainsFunc(enforcers, func(part string) bool { return strings.Contains(name, part) }) {
			return nil
		}
		flannel = flannel || strings.Contains(name, "flannel")
	}
	if !flannel {
		return nil
	}
	return &Note{
		Message: "networkPolicy.enabled has no effect: flannel doesn't enforce NetworkPolicies, so all pods can connect to the services' ports; only passwords and tokens protect them",
		Remedy:  "run a pod network that enforces them in addition to flannel or instead of it, or accept this: networkPolicy: {enabled: false} in the services' sections",
	}
}
