package config

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/layout"
)

// checkExisting applies the rules for a cluster that paictl did not install. The machines and networks already exist, so unusual values are at most
// warnings.
func (k *checker) checkExisting() {
	k.checkMasters()
	k.checkNodeAddresses()
	s, r, p := k.c.Kubernetes.Kubernetes, k.kube, where("kubernetes")
	if e := validation.IsDNS1123Label(s.ClusterName); len(e) > 0 {
		r.fail(p.With("cluster-name"), "kubernetes/cluster-name", fmt.Sprintf("%q is not a name: %s", s.ClusterName, e[0]), "use a-z, 0-9 and -")
	}
	if e := validation.IsDNS1123Subdomain(s.DNSDomain); len(e) > 0 {
		r.fail(p.With("dns-domain"), "kubernetes/dns-domain", fmt.Sprintf("%q is not a domain", s.DNSDomain), "the default is "+defaultDNSDomain)
	}
	for _, n := range []struct{ field, cidr string }{{"service-cluster-ip-range", s.ServiceClusterIPRange}, {"pod-cidr", s.PodCIDR}} {
		if _, err := netip.ParsePrefix(n.cidr); n.cidr != "" && err != nil {
			r.fail(p.With(n.field), "network/cidr", fmt.Sprintf("%q is not an address range such as %s", n.cidr, defaultPodCIDR), "write the range that the cluster has, or remove the line")
		}
	}
	for _, field := range []string{"cluster-dns", "api-vip", "api-server-cert-sans", "etcd-data-path", "docker-registry", "network-plugin", "metadata-address", "bundle", "gpu-driver", "extra"} {
		if r.doc.Has("kubernetes", field) {
			r.warn(p.With(field), "kubernetes/not-managed", "has no effect: paictl did not install this Kubernetes (managed: false)", "remove it, or set it where Kubernetes was installed")
		}
	}
}

// checkMasters warns if the configuration contains no machine for the platform's services, or no machine for jobs.
func (k *checker) checkMasters() {
	machines, p := k.c.Layout.MachineList, fieldPath{"machine-list"}
	if len(machines) == 0 {
		return
	}
	if !slices.ContainsFunc(machines, func(m machine) bool { return m.HasRole(layout.RoleMaster) }) {
		k.layout.fail(p, "layout/no-master", "no machine runs the platform's services", "give at least one machine the role master")
		return
	}
	if !slices.ContainsFunc(machines, k.c.runsWorkloads) {
		k.layout.warn(p, "layout/no-worker", "no machine runs jobs", "give at least one machine the role worker")
	}
}

// checkNodeAddresses warns only once about each kind of problem, because thousands of nodes may have the same problem.
func (k *checker) checkNodeAddresses() {
	r, p := k.layout, fieldPath{"machine-list"}
	first, without, twice := map[string]string{}, []string(nil), []string(nil)
	for i, m := range k.c.Layout.MachineList {
		if m.HostIP == "" {
			without = append(without, m.Hostname)
			continue
		}
		if _, err := netip.ParseAddr(m.HostIP); err != nil {
			r.fail(p.With(i, "hostip"), "layout/hostip", fmt.Sprintf("%q is not an IP address", m.HostIP), "write the address of the node, or remove the line")
			continue
		}
		if other, ok := first[m.HostIP]; ok {
			twice = append(twice, fmt.Sprintf("%s and %s (%s)", other, m.Hostname, m.HostIP))
			continue
		}
		first[m.HostIP] = m.Hostname
	}
	if len(without) > 0 {
		r.warn(p, "layout/hostip", "no address is known of "+some(without), "")
	}
	if len(twice) > 0 {
		r.warn(p, "layout/duplicate-hostip", "nodes share an address: "+some(twice), "")
	}
}
