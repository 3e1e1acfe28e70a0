package services

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openpai/paictl/pkg/services/catalogue"
)

const (
	// apiServers selects the mirror pods of the API servers' static pods. kubeadm sets these labels.
	apiServers = "component=kube-apiserver,tier=control-plane"
	// masters selects the nodes of the API servers. Nodes can't set this label on themselves.
	masters          = "node-role.kubernetes.io/control-plane"
	kubeletAuthority = "--kubelet-certificate-authority="
	// prometheus is the service that verifies kubelets.
	prometheus = "prometheus"
)

// settleKubelets configures Prometheus to verify kubelets if the API servers verify kubelets. settleKubelets changes nothing if no API server is
// visible.
func (p *Platform) settleKubelets(ctx context.Context, d *Desired) error {
	if !d.Catalogue.VerifiesKubelets() {
		return nil
	}
	seen, verified, err := p.kubeletsVerified(ctx)
	if err != nil {
		return err
	}
	if !seen {
		if verified, err = p.verifiedSoFar(ctx, d.Catalogue.Get(prometheus)); err != nil {
			return err
		}
		stays := "stays switched on"
		if !verified {
			stays = "stays switched off"
		}
		d.Notes = append(d.Notes, Note{
			Message: "no static pod of an API server is seen on a master, so that it is unknown whether the API servers verify kubelets: Prometheus's verification of kubelets " + stays,
			Remedy:  "see whether the masters have their pods: kubectl -n kube-system get pods -l " + apiServers,
		})
	}
	if !verified {
		d.Catalogue.LeaveKubeletsUnverified()
	}
	return nil
}

// verifiedSoFar reports whether the release of Prometheus verifies kubelets. Without a release it returns true, so that a new cluster is as secure as
// possible.
func (p *Platform) verifiedSoFar(ctx context.Context, s *catalogue.Service) (bool, error) {
	have, err := p.Releases.Get(ctx, s.Namespace, s.Name)
	if err != nil {
		return false, fmt.Errorf("check whether Prometheus verifies kubelets: %w", err)
	}
	if have == nil {
		return true, nil
	}
	skips, set, _ := unstructured.NestedBool(have.Values, "kubelet", "insecureSkipVerify")
	return set && !skips, nil // releases of an earlier paictl use the chart's default, which doesn't verify
}

// kubeletsVerified reports whether an API server is visible, and whether at least one API server verifies kubelets. "cluster up" enables this
// verification after all kubelets use certificates of the cluster. Approved certificate requests aren't sufficient evidence. Only pods on masters
// count, because any node can create mirror pods.
func (p *Platform) kubeletsVerified(ctx context.Context) (seen, verified bool, err error) {
	pods, err := p.Client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: apiServers})
	if err != nil {
		return false, false, fmt.Errorf("check whether the API servers verify kubelets: %w", err)
	}
	nodes, err := p.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: masters})
	if err != nil {
		return false, false, fmt.Errorf("find the masters: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; !static || !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.Name == pod.Spec.NodeName }) {
			continue
		}
		seen, verified = true, verified || verifiesKubelets(pod)
	}
	return seen, verified, nil
}

func verifiesKubelets(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool { return strings.HasPrefix(arg, kubeletAuthority) })
	})
}
