package preflight

import (
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/config"
)

// checkDNS warns about the machine's DNS settings that exceed the limits of pods. Without cluster-dns, pods use the machine's settings. With
// cluster-dns, there are no findings.
func checkDNS(s *Host) []Finding {
	k := s.Cluster.Kubernetes
	if _, own := k.Extra.Kubelet["resolvConf"]; own || len(k.ClusterDNS) > 0 {
		return nil
	}
	var out []Finding
	if dns := s.Facts.DNS; len(dns) > config.MaxNameServers {
		out = append(out, s.warn("dns", fmt.Sprintf("pods use at most %d name servers, so %s will not be asked", config.MaxNameServers, strings.Join(dns[config.MaxNameServers:], ", ")),
			"name the servers in cluster-dns of kubernetes-configuration.yaml, or remove some from the machine's settings"))
	}
	if rest := beyond(strings.Fields(s.Probe.Value("search")), k.DNSDomain); len(rest) > 0 {
		out = append(out, s.warn("dns", fmt.Sprintf("pods use at most %d search domains and %d characters, the cluster's included, so %s will not be searched", maxSearch, maxSearchChars, strings.Join(rest, ", ")),
			"shorten the machine's search list"))
	}
	return out
}

// Kubernetes' limits for the search list of a pod.
const (
	maxSearch      = 32
	maxSearchChars = 2048
)

// beyond returns the machine's search domains that exceed the limits of a pod; see files/kubelet-resolv-conf.sh.
func beyond(domains []string, own string) []string {
	left := maxSearchChars - 75 - 3*len(own) // NAMESPACE.svc.OWN svc.OWN OWN, with a namespace of 63 characters
	for i, d := range domains {
		if left -= len(d) + 1; i >= maxSearch-3 || left < 0 {
			return domains[i:]
		}
	}
	return nil
}
