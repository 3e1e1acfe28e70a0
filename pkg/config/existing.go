package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/layout"
)

// Existing describes a Kubernetes cluster that paictl did not install. Only Nodes is required. Values that the cluster's API doesn't report are
// empty.
type Existing struct {
	Name    string // the name of the cluster, as its kubeconfig or kubeadm calls it
	Version string // v1.30.2+k3s1
	Server  string // https://10.0.0.1:6443
	Nodes   []corev1.Node
	// ServiceRange, PodCIDR and DNSDomain are empty if the API does not report them.
	ServiceRange, PodCIDR, DNSDomain string
	// Masters lists additional nodes for the platform's services. Nodes of the control plane always run these services.
	Masters []string
	// Configured means that the cluster already stores a configuration of paictl.
	Configured bool
}

// GenerateExisting generates the four files for an existing cluster. It ignores the quick-start file in g and the options for machines. It writes
// either all files or no file.
func GenerateExisting(e Existing, g Generation) (*Generated, error) {
	if !g.DryRun && !g.Force {
		if err := refuseExisting(g.OutDir); err != nil {
			return nil, err
		}
	}
	c, findings, err := e.configuration(g.OutDir)
	if err != nil {
		return nil, err
	}
	findings = append(findings, Validate(c, g.Checks...)...)
	if err := findings.Err(); err != nil {
		return nil, err
	}
	out, err := g.render(&Generated{Cluster: c, Warnings: findings.Warnings()})
	if err != nil {
		return nil, err
	}
	return out, g.write(out)
}

func (e Existing) configuration(dir string) (*Cluster, Findings, error) {
	managed := false
	c := &Cluster{Dir: dir}
	c.Kubernetes.Kubernetes.Managed = &managed
	r := &reporter{file: filepath.Join(dir, LayoutFile)}
	nodes := usableNodes(e.Nodes, r)
	if err := e.addMachines(c, nodes, r); err != nil {
		return nil, nil, err
	}
	kube := &reporter{file: filepath.Join(dir, KubernetesFile)}
	e.addKubernetes(c, nodes, kube)
	c.Services.Cluster.Common.ClusterID = clusterIDOf(e.Name)
	c.fillDefaults()
	return c, append(r.findings, kube.findings...), nil
}

func (e Existing) addKubernetes(c *Cluster, nodes []corev1.Node, r *reporter) {
	k := &c.Kubernetes.Kubernetes
	k.Version = e.Version
	k.ClusterName = nameOf(cmp.Or(clusterIDOf(e.Name), defaultClusterID))
	k.DNSDomain = e.DNSDomain
	k.LoadBalanceIP, k.APIServerPort = apiAddress(e.Server)
	k.ServiceClusterIPRange = firstRange(e.ServiceRange)
	k.PodCIDR = firstRange(e.PodCIDR)
	if e.Configured {
		r.warn(nil, "kubernetes/configured", "the cluster already has a configuration of paictl", "to use it, run: paictl config pull -o DIR")
	}
	if k.PodCIDR == "" {
		if k.PodCIDR = rangeOfNodes(nodes); k.PodCIDR != "" {
			r.warn(where("kubernetes", "pod-cidr"), "network/guessed-range", fmt.Sprintf("%s is guessed from the ranges of the nodes", k.PodCIDR), "correct it if the cluster's pods have other addresses")
		}
	}
	for _, f := range []struct{ field, value, what string }{{"pod-cidr", k.PodCIDR, "pods"}, {"service-cluster-ip-range", k.ServiceClusterIPRange, "services"}} {
		if f.value == "" {
			r.warn(where("kubernetes", f.field), "network/unknown-range", "the API does not say which addresses "+f.what+" have", "write "+f.field+", where you know it")
		}
	}
}

// clusterIDOf converts the name of a cluster in a kubeconfig to a cluster ID. It uses the last part of a name such as
// arn:aws:eks:eu-west-1:1234:cluster/lab. It returns "" for common names such as kubernetes.
func clusterIDOf(name string) string {
	name = name[strings.LastIndex(name, "/")+1:]
	if slices.Contains([]string{"kubernetes", "default", "cluster", "local"}, name) {
		return ""
	}
	id := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name), "-_")
	if badClusterID(id) != "" {
		return ""
	}
	return id
}

// apiAddress returns the IP address and port of the API. It returns zero values if the server is a name, or if the address is valid only on the
// operator's machine.
func apiAddress(server string) (ip string, port int) {
	u, err := url.Parse(server)
	if err != nil {
		return "", 0
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err != nil || !a.Is4() || a.IsLoopback() {
		return "", 0
	}
	if port, err = strconv.Atoi(u.Port()); err != nil {
		port = 443
	}
	return a.String(), port
}

// firstRange returns the first IPv4 range in a comma-separated list. If the list contains no IPv4 range, it returns the first range.
func firstRange(list string) string {
	first := ""
	for s := range strings.SplitSeq(list, ",") {
		p, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			continue
		}
		if p = p.Masked(); p.Addr().Is4() {
			return p.String()
		}
		first = cmp.Or(first, p.String())
	}
	return first
}

// rangeOfNodes returns the smallest IPv4 range that contains the pod ranges of all nodes, or "" if no such range exists. The range is at least a /16,
// because later nodes get neighboring addresses.
func rangeOfNodes(nodes []corev1.Node) string {
	var all netip.Prefix
	for _, n := range nodes {
		p, err := netip.ParsePrefix(firstRange(strings.Join(append([]string{n.Spec.PodCIDR}, n.Spec.PodCIDRs...), ",")))
		if err != nil || !p.Addr().Is4() {
			return ""
		}
		if !all.IsValid() {
			all = netip.PrefixFrom(p.Addr(), min(p.Bits(), 16)).Masked()
		}
		for !all.Contains(p.Addr()) || all.Bits() > p.Bits() {
			all = netip.PrefixFrom(all.Addr(), all.Bits()-1).Masked()
		}
	}
	if !all.IsValid() || all.Bits() < 8 {
		return ""
	}
	return all.String()
}

// existingRoles returns the roles for a cluster whose control plane paictl doesn't manage. taints contains the taints of the control plane's
// machines.
func existingRoles(taints []string) Roles {
	roles := DefaultRoles()
	master := roles.Roles[layout.RoleMaster]
	master.Description, master.Components, master.Taints = "runs the platform's own services", nil, taints
	roles.Roles[layout.RoleMaster] = master
	return roles
}
