package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/version"
)

var kubernetesVersion = regexp.MustCompile(`^v1\.[0-9]+\.[0-9]+$`)

// MaxNameServers is the number of name servers that resolvers in pods use. The kubelet drops further name servers.
const MaxNameServers = 3

func (k *checker) checkKubernetes() {
	s, r, p := k.c.Kubernetes.Kubernetes, k.kube, where("kubernetes")
	switch {
	case !kubernetesVersion.MatchString(s.Version):
		r.fail(p.With("version"), RuleVersion, fmt.Sprintf("%q is not a version such as %s", s.Version, version.Kubernetes), "write "+version.Kubernetes)
	case s.Version != version.Kubernetes:
		r.warn(p.With("version"), RuleVersion, fmt.Sprintf("this paictl is tested with %s", version.Kubernetes), "use a bundle of the same version, or write "+version.Kubernetes)
	}
	if e := validation.IsDNS1123Label(s.ClusterName); len(e) > 0 {
		r.fail(p.With("cluster-name"), "kubernetes/cluster-name", fmt.Sprintf("%q is not a name: %s", s.ClusterName, e[0]), "use a-z, 0-9 and -")
	}
	if e := validation.IsDNS1123Subdomain(s.DNSDomain); len(e) > 0 {
		r.fail(p.With("dns-domain"), "kubernetes/dns-domain", fmt.Sprintf("%q is not a domain", s.DNSDomain), "the default is "+defaultDNSDomain)
	}
	k.checkAPI()
	message, remedy := k.c.BadEtcdFolder()
	r.failIf(message, p.With("etcd-data-path"), "kubernetes/etcd-data-path", remedy)
	r.failIf(badRegistry(s.DockerRegistry), p.With("docker-registry"), "kubernetes/docker-registry", "the default is "+defaultImages)
	k.checkNetworkPlugin()
	if s.Bundle != "" && r.doc != nil {
		r.warnMissing(p.With("bundle"), "kubernetes/no-bundle", s.Bundle, fmt.Sprintf("there is no folder %s", s.Bundle), "make it with: paictl bundle build -o "+hint.Quote(s.Bundle))
	}
	if len(s.ClusterDNS) == 0 {
		r.warn(p.With("cluster-dns"), "kubernetes/no-dns", "no DNS server is named", "name at least one; otherwise cluster DNS uses /etc/resolv.conf of each machine")
	}
	if extra := s.ClusterDNS[min(len(s.ClusterDNS), MaxNameServers):]; len(extra) > 0 {
		r.warn(p.With("cluster-dns", MaxNameServers), "kubernetes/many-dns", fmt.Sprintf("pods use at most %d name servers, so %s will not be asked", MaxNameServers, strings.Join(extra, ", ")),
			fmt.Sprintf("keep the %d that you want to be asked", MaxNameServers))
	}
	for i, d := range s.ClusterDNS {
		message, remedy := badDNSServer(d)
		r.failIf(message, p.With("cluster-dns", i), "kubernetes/cluster-dns", remedy)
	}
}

func (k *checker) checkAPI() {
	s, r, p := k.c.Kubernetes.Kubernetes, k.kube, where("kubernetes")
	if message := badPort(s.APIServerPort); message != "" {
		r.fail(p.With("api-servers-port"), "kubernetes/api-servers-port", message, fmt.Sprintf("the default is %d", defaultAPIPort))
	} else if user, taken := k.c.fixedPortUser(s.APIServerPort); taken {
		r.fail(p.With("api-servers-port"), "kubernetes/reserved-port", fmt.Sprintf("port %d is used by %s", s.APIServerPort, user), fmt.Sprintf("the default is %d", defaultAPIPort))
	} else if IsNodePort(s.APIServerPort) {
		r.fail(p.With("api-servers-port"), "kubernetes/reserved-port", fmt.Sprintf("port %d is in the range of node ports (30000 to 32767)", s.APIServerPort), fmt.Sprintf("the default is %d", defaultAPIPort))
	}
	masters := k.c.ControlPlane()
	isMachine := slices.IndexFunc(k.c.Layout.MachineList, func(m machine) bool { return m.HostIP == s.LoadBalanceIP })
	if s.LoadBalanceIP != "" && isMachine < 0 { // a machine's address has its own finding
		r.failIf(badIPv4(s.LoadBalanceIP), p.With("load-balance-ip"), "kubernetes/load-balance-ip", "write the API's address: the first master's, or a load balancer's")
	}
	isMaster := slices.ContainsFunc(masters, func(m machine) bool { return m.HostIP == s.LoadBalanceIP })
	k.checkEndpoint(masters)
	k.checkVIP()
	switch {
	case len(masters) == 1 && isMachine >= 0 && !isMaster:
		r.fail(p.With("load-balance-ip"), "kubernetes/load-balance-ip", fmt.Sprintf("%s is the address of %s, which is not a master", s.LoadBalanceIP, k.c.Layout.MachineList[isMachine].Hostname), "write the master's address, "+masters[0].HostIP)
	}
	for i, san := range s.APIServerCertSANs {
		if _, err := netip.ParseAddr(san); err != nil && len(validation.IsDNS1123Subdomain(san)) > 0 && len(validation.IsWildcardDNS1123Subdomain(san)) > 0 {
			r.fail(p.With("api-server-cert-sans", i), "kubernetes/cert-san", fmt.Sprintf("%q is neither a host name nor an address", san), "write a name such as api.example.org")
		}
	}
}

func (k *checker) checkEndpoint(masters []machine) {
	s, r, p := k.c.Kubernetes.Kubernetes, k.kube, where("kubernetes").With("api-endpoint")
	balancer := s.LoadBalanceIP != "" && !slices.ContainsFunc(masters, func(m machine) bool { return m.HostIP == s.LoadBalanceIP })
	if s.APIEndpoint == APIEndpointLocal && balancer {
		r.fail(p, "kubernetes/api-endpoint", fmt.Sprintf("load-balance-ip says %s, which no machine would use", s.LoadBalanceIP), "remove one of the two")
	}
	if s.APIEndpoint == "" || s.APIEndpoint == APIEndpointLocal {
		return
	}
	const fix = "write local, or the HOST:PORT of a load balancer in front of all masters"
	host, port := s.APIEndpoint, ""
	if h, number, err := net.SplitHostPort(s.APIEndpoint); err == nil {
		host, port = h, number
	}
	address, err := netip.ParseAddr(host)
	n, portErr := strconv.Atoi(cmp.Or(port, "1"))
	switch {
	case err != nil && len(validation.IsDNS1123Subdomain(host)) > 0, portErr != nil || badPort(n) != "":
		r.fail(p, "kubernetes/api-endpoint", fmt.Sprintf("%q is neither local nor a HOST:PORT", s.APIEndpoint), fix)
		return
	case err == nil && (address.IsLoopback() || address.IsUnspecified() || !address.Is4()):
		r.fail(p, "kubernetes/api-endpoint", fmt.Sprintf("%s is not an IPv4 address that other machines reach", host), fix)
		return
	case balancer && s.LoadBalanceIP != host:
		r.fail(p, "kubernetes/api-endpoint", fmt.Sprintf("load-balance-ip says %s", s.LoadBalanceIP), "remove one of the two")
		return
	}
	i := slices.IndexFunc(k.c.Layout.MachineList, func(m machine) bool { return m.HostIP == host || m.Hostname == host })
	if i < 0 {
		return
	}
	m := k.c.Layout.MachineList[i]
	isMaster := slices.ContainsFunc(masters, func(o machine) bool { return o.HostIP == m.HostIP })
	switch {
	case isMaster && len(masters) > 1:
		r.warn(p, "kubernetes/no-load-balancer", fmt.Sprintf("%d masters, but all machines use only the API of %s: when it is down, so is the cluster", len(masters), host), fix)
	case !isMaster && port == "":
		r.fail(p, "kubernetes/api-endpoint", fmt.Sprintf("%s is the address of %s, which is not a master", host, m.Hostname), fix)
	}
}

// checkVIP checks the setting api-vip. Only a check on the machines can determine whether the address is free and in the masters' network.
func (k *checker) checkVIP() {
	s, r, p := k.c.Kubernetes.Kubernetes, k.kube, where("kubernetes").With("api-vip")
	if s.APIVIP == "" {
		return
	}
	const rule, fix = "kubernetes/api-vip", "write a free IPv4 address in the masters' network"
	address, err := netip.ParseAddr(s.APIVIP)
	if err != nil || !address.Is4() || !address.IsGlobalUnicast() {
		r.fail(p, rule, fmt.Sprintf("%q is not an IPv4 address that a machine can have", s.APIVIP), fix)
		return
	}
	if !k.c.EndpointIsLocal() {
		r.fail(p, rule, fmt.Sprintf("machines use the API at %s, beside which there is no virtual address", k.c.Endpoint()), "set api-endpoint: local; or remove api-vip")
		return
	}
	if i := slices.IndexFunc(k.c.Layout.MachineList, func(m machine) bool { return m.HostIP == s.APIVIP }); i >= 0 {
		r.fail(p, rule, fmt.Sprintf("%s is the address of %s", s.APIVIP, k.c.Layout.MachineList[i].Hostname), fix)
	}
	if slices.Contains(s.ClusterDNS, s.APIVIP) {
		r.fail(p, rule, fmt.Sprintf("%s is the address of a DNS server", s.APIVIP), fix)
	}
}

// badRegistry returns a message if a registry doesn't have the form host[:port][/path] without a scheme, or "".
func badRegistry(s string) string {
	switch {
	case s == "":
		return "the registry is missing"
	case strings.Contains(s, "://"):
		return fmt.Sprintf("%q has a scheme", secret.Address(s))
	case strings.ContainsAny(s, " \t\n\"'@") || strings.HasSuffix(s, "/") || strings.ToLower(s) != s:
		return fmt.Sprintf("%q is not a registry such as registry.example.org:5000/images", secret.Address(s))
	}
	return ""
}

// checkNetworks checks the form and size of the ranges of services and pods. It also checks that they don't overlap each other or any known address.
func (k *checker) checkNetworks() {
	s, r, p := k.c.Kubernetes.Kubernetes, k.kube, where("kubernetes")
	ranges := []struct{ field, cidr string }{{"service-cluster-ip-range", s.ServiceClusterIPRange}, {"pod-cidr", s.PodCIDR}}
	for _, n := range ranges {
		if message := badCIDR(n.cidr); message != "" {
			r.fail(p.With(n.field), "network/cidr", message, "write a range such as "+defaultPodCIDR)
			return
		}
	}
	if overlap(s.ServiceClusterIPRange, s.PodCIDR) {
		r.fail(p.With("pod-cidr"), "network/overlap", fmt.Sprintf("%s overlaps service-cluster-ip-range %s", s.PodCIDR, s.ServiceClusterIPRange), "choose two ranges that share no address")
	}
	for _, n := range ranges {
		k.checkRange(n.field, n.cidr)
	}
	prefix := netip.MustParsePrefix(s.ServiceClusterIPRange)
	if prefix.Bits() < 12 || prefix.Bits() > 28 {
		r.fail(p.With("service-cluster-ip-range"), "network/service-range-size", fmt.Sprintf("a /%d is not a size that Kubernetes supports for services", prefix.Bits()), "use a /12 to /28, such as "+defaultServiceRange)
	}
	if blocks, machines := nodeBlocks(s.PodCIDR), len(k.c.Layout.MachineList); blocks < machines {
		r.fail(p.With("pod-cidr"), "network/pod-range-size", fmt.Sprintf("%s has room for %s (a /24 each), but there are %d", s.PodCIDR, plural.Of(blocks, "machine"), machines), "use a larger range")
	}
}

func (k *checker) checkRange(field, cidr string) {
	r, p := k.kube, where("kubernetes", field)
	for i, m := range k.c.Layout.MachineList {
		if contains(cidr, m.HostIP) {
			r.fail(p, "network/overlaps-machine", fmt.Sprintf("%s contains the address %s of %s%s", cidr, m.HostIP, m.Hostname, lineOf(k.layout.doc, where("machine-list", i, "hostip"))), "choose a range that is not used in the machines' network")
			break // further findings would add no information
		}
	}
	for _, d := range k.c.Kubernetes.Kubernetes.ClusterDNS {
		if contains(cidr, d) {
			r.fail(p, "network/overlaps-dns", fmt.Sprintf("%s contains the DNS server %s", cidr, d), "choose a range that is not used in the machines' network")
		}
	}
	if ip := k.c.Kubernetes.Kubernetes.LoadBalanceIP; contains(cidr, ip) && !slices.ContainsFunc(k.c.Layout.MachineList, func(m machine) bool { return m.HostIP == ip }) {
		r.fail(p, "network/overlaps-api", fmt.Sprintf("%s contains load-balance-ip %s", cidr, ip), "choose a range that is not used in the machines' network")
	}
	if vip := k.c.Kubernetes.Kubernetes.APIVIP; contains(cidr, vip) {
		r.fail(p, "network/overlaps-api", fmt.Sprintf("%s contains api-vip %s", cidr, vip), "choose a range that is not used in the machines' network")
	}
	for _, special := range []string{"127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "0.0.0.0/8"} {
		if overlap(cidr, special) {
			r.fail(p, "network/special-range", fmt.Sprintf("%s overlaps %s, which is reserved", cidr, special), "use a private range: in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")
		}
	}
}
