// Package existing reads the properties of a Kubernetes cluster that paictl did not install.
// In: a connection whose user needs permission only to read nodes. Out: the values that pkg/config needs to generate a configuration. A value is
// empty if the API doesn't report it, or if the user has no permission to read it.
package existing

import (
	"context"
	"fmt"
	"regexp"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
)

// pageSize limits the number of nodes in one response of the API. 500 nodes have about 10 MiB.
const pageSize = 500

// Read reads the properties of the cluster. It returns an error only if the nodes cannot be listed.
func Read(ctx context.Context, c *kube.Cluster) (config.Existing, error) {
	e := config.Existing{Server: c.Server}
	if entry := c.Raw.Contexts[c.Context]; entry != nil {
		e.Name = entry.Cluster
	}
	var err error
	if e.Nodes, err = nodes(ctx, c.Client); err != nil {
		return e, c.Explain(fmt.Errorf("list the nodes: %w", err))
	}
	e.Version = release(c.Client, e.Nodes)
	readKubeadm(ctx, c.Client, &e)
	if e.ServiceRange == "" {
		e.ServiceRange = serviceRange(ctx, c.Client)
	}
	if e.DNSDomain == "" {
		e.DNSDomain = dnsDomain(ctx, c.Client)
	}
	_, err = c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, store.ConfigMapName, metav1.GetOptions{})
	e.Configured = err == nil
	return e, ctx.Err()
}

func nodes(ctx context.Context, client kubernetes.Interface) ([]corev1.Node, error) {
	var out []corev1.Node
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

// release returns the Kubernetes release of the API server. If this release is unknown, it returns the release of a kubelet, because a kubelet is
// never newer than the API server.
func release(client kubernetes.Interface, nodes []corev1.Node) string {
	if v, err := client.Discovery().ServerVersion(); err == nil && v.GitVersion != "" {
		return v.GitVersion
	}
	for _, n := range nodes {
		if v := n.Status.NodeInfo.KubeletVersion; v != "" {
			return v
		}
	}
	return ""
}

type kubeadmConfiguration struct {
	ClusterName string `yaml:"clusterName"`
	Networking  struct {
		DNSDomain     string `yaml:"dnsDomain"`
		PodSubnet     string `yaml:"podSubnet"`
		ServiceSubnet string `yaml:"serviceSubnet"`
	} `yaml:"networking"`
}

// readKubeadm reads the values in kubeadm's ConfigMap. It leaves e unchanged if the ConfigMap can't be read.
func readKubeadm(ctx context.Context, client kubernetes.Interface, e *config.Existing) {
	m, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		return
	}
	var k kubeadmConfiguration
	if yaml.Unmarshal([]byte(m.Data["ClusterConfiguration"]), &k) != nil {
		return
	}
	e.ServiceRange, e.PodCIDR, e.DNSDomain = k.Networking.ServiceSubnet, k.Networking.PodSubnet, k.Networking.DNSDomain
	if k.ClusterName != "" {
		e.Name = k.ClusterName
	}
}

// serviceRange returns the range of service addresses, or "" if the range is unknown. Kubernetes 1.33 and later report the range.
func serviceRange(ctx context.Context, client kubernetes.Interface) string {
	r, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	for _, cidr := range r.Spec.CIDRs {
		return cidr
	}
	return ""
}

var corednsDomain = regexp.MustCompile(`(?m)^\s*kubernetes\s+([a-z0-9]([a-z0-9.-]*[a-z0-9])?)[\s{]`)

// dnsDomain returns the cluster domain in the configuration of CoreDNS, or "" if the domain is unknown.
func dnsDomain(ctx context.Context, client kubernetes.Interface) string {
	m, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	found := corednsDomain.FindStringSubmatch(m.Data["Corefile"])
	if found == nil {
		return ""
	}
	return found[1]
}
