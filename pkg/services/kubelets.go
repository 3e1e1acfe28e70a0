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
	// apiServers selects the mirror pods of the API servers' static pods, by kubeadm's labels.
	apiServers = "component=kube-apiserver,tier=control-plane"
	// masters selects their nodes. No node can give itself this label.
	masters          = "node-role.kubernetes.io/control-plane"
	kubeletAuthority = "--kubelet-certificate-authority="
	// prometheus is the service that has a setting for kubelets.
	prometheus = "prometheus"
)

// settleKubelets makes Prometheus verify kubelets if the API servers do. If no API server is visible, it isn't known whether
// they verify kubelets, and nothing is changed.
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

// verifiedSoFar reports whether the release of Prometheus verifies kubelets. It returns true without a release, because a
// new cluster must not be less secure.
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

// kubeletsVerified reports whether an API server is visible, and whether one verifies kubelets. "cluster up" makes an API server
// verify them only after all kubelets have certificates of the cluster; approved requests don't prove that. Any node can pretend
// that a pod is its static one, so only pods on masters count.
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
