package services

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// apiServers selects the pods that stand for the API servers' static pods, as kubeadm labels them.
	apiServers = "component=kube-apiserver,tier=control-plane"
	// masters selects their nodes. No node can give itself this label.
	masters          = "node-role.kubernetes.io/control-plane"
	kubeletAuthority = "--kubelet-certificate-authority="
)

// kubeletsVerified reports whether an API server verifies kubelets. "cluster up" lets the first one begin after all kubelets have certificates of the
// cluster; that someone approves their requests says nothing of it. A node may show a pod as its own static one, so only those of masters count.
func (p *Platform) kubeletsVerified(ctx context.Context) (bool, error) {
	pods, err := p.Client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: apiServers})
	if err != nil {
		return false, fmt.Errorf("look whether the API servers verify kubelets: %w", err)
	}
	nodes, err := p.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: masters})
	if err != nil {
		return false, fmt.Errorf("look which nodes are masters: %w", err)
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		return verifiesKubelets(&pod) && slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.Name == pod.Spec.NodeName })
	}), nil
}

func verifiesKubelets(pod *corev1.Pod) bool {
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; !static {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool { return strings.HasPrefix(arg, kubeletAuthority) })
	})
}
