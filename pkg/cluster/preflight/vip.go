package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// CheckVIP is the name of the check for the API's virtual address. The engine uses the same name for its check whether the address is free.
const CheckVIP = "api-vip"

// checkVIP fails unless one of the master's networks contains the virtual address, because other machines find the address by ARP. It also fails if
// no machine can have the address.
func checkVIP(s *Host) []Finding {
	vip, err := netip.ParseAddr(s.Cluster.Kubernetes.APIVIP)
	if err != nil || !s.ControlPlane { // the address isn't set, or "config validate" reports it
		return nil
	}
	var have []string
	for _, a := range s.Facts.Addresses {
		p, err := netip.ParsePrefix(a.CIDR)
		if err != nil || !p.Addr().Is4() || p.Addr() == vip {
			continue
		}
		if p.Bits() < 31 && p.Contains(vip) {
			if what := reserved(p, vip); what != "" {
				return []Finding{s.fail(CheckVIP, fmt.Sprintf("api-vip %s is %s of %s, which no machine can have", vip, what, p.Masked()),
					"set api-vip in kubernetes-configuration.yaml to a free address of the masters' network")}
			}
			return nil
		}
		have = append(have, p.Masked().String())
	}
	slices.Sort(have)
	return []Finding{s.fail(CheckVIP, fmt.Sprintf("api-vip %s is in no network of this master, which has %s", vip, strings.Join(slices.Compact(have), ", ")),
		"set api-vip in kubernetes-configuration.yaml to a free address of a network that all masters have; if their networks differ, use a load balancer (api-endpoint: HOST:PORT)")}
}

// reserved returns the reason why no machine in the network can have an address, or "" if a machine can have it.
func reserved(network netip.Prefix, a netip.Addr) string {
	if a == network.Masked().Addr() {
		return "the network's own address"
	}
	if !network.Contains(a.Next()) {
		return "the broadcast address"
	}
	return ""
}
