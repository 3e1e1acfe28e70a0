package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/secret"
)

// Each function in this file checks one value. It returns a message that continues the text "FIELD: ", or "" if the value is valid.

func badIPv4(s string) string {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return fmt.Sprintf("%q is not an IP address", s)
	case !a.Is4():
		return fmt.Sprintf("%q is an IPv6 address; paictl's clusters use IPv4", s)
	case a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() && s != "127.0.0.1" || s == "255.255.255.255":
		return fmt.Sprintf("%q is not the address of a machine", s)
	}
	return ""
}

func badDNSServer(s string) (message, remedy string) {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return fmt.Sprintf("%q is not an IP address", s), "write the address of a DNS server"
	case a.IsLoopback():
		return fmt.Sprintf("%s is a local stub that pods cannot reach", s),
			"name the servers that it uses; \"resolvectl dns\" on a machine lists them"
	case a.IsUnspecified() || a.IsMulticast():
		return fmt.Sprintf("%q is not the address of a DNS server", s), "write the address of a DNS server"
	}
	return "", ""
}

func badCIDR(s string) string {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return fmt.Sprintf("%q is not an address range such as 10.244.0.0/16", s)
	case !p.Addr().Is4():
		return fmt.Sprintf("%q is an IPv6 range; paictl's clusters use IPv4", s)
	case p.Masked() != p:
		return fmt.Sprintf("%q has bits set behind the prefix; the range is %s", s, p.Masked())
	}
	return ""
}

// badHostname checks whether a host name can be the name of a node. Kubernetes requires the form of RFC 1123.
func badHostname(s string) (message, remedy string) {
	if s == "localhost" || strings.HasPrefix(s, "localhost.") {
		return fmt.Sprintf("%s is the name of each machine for itself", s), "give the machine another name, for instance with: hostnamectl set-hostname gpu-01"
	}
	if len(validation.IsDNS1123Subdomain(s)) == 0 {
		if len(s) > validation.LabelValueMaxLength {
			return fmt.Sprintf("the host name %q has %d characters; Kubernetes uses it as a label, which allows %d", s, len(s), validation.LabelValueMaxLength),
				"give the machine a shorter name"
		}
		return "", ""
	}
	if strings.ToLower(s) != s && len(validation.IsDNS1123Subdomain(strings.ToLower(s))) == 0 {
		return fmt.Sprintf("the host name %q has capital letters, which Kubernetes does not allow", s), "write it as " + strings.ToLower(s)
	}
	return fmt.Sprintf("%q is not a valid host name for Kubernetes (RFC 1123: a-z, 0-9, - and dots)", s),
		"give the machine a valid name, for instance with: hostnamectl set-hostname gpu-01"
}

func badPort(p int) string {
	if p < 1 || p > 65535 {
		return fmt.Sprintf("%d is not a port (1 to 65535)", p)
	}
	return ""
}

// kubeletLabels lists the labels that the kubelet sets. The kubelet restores them after a change.
var kubeletLabels = []string{"kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os"}

func badLabel(key, value string) string {
	if slices.Contains(kubeletLabels, key) {
		return fmt.Sprintf("the label %s belongs to Kubernetes, which sets it itself", key)
	}
	if e := validation.IsQualifiedName(key); len(e) > 0 {
		return fmt.Sprintf("the label key %q is not valid: %s", key, e[0])
	}
	if e := validation.IsValidLabelValue(value); len(e) > 0 {
		return fmt.Sprintf("the value %q of the label %s is not valid: %s", value, key, e[0])
	}
	return ""
}

func badTaint(taint string) string {
	rest, effect, ok := cutLast(taint, ":")
	if !ok {
		return fmt.Sprintf("the taint %q has no effect", taint)
	}
	if !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
		return fmt.Sprintf("the effect %q of the taint %q is not NoSchedule, PreferNoSchedule or NoExecute", effect, taint)
	}
	key, value, _ := strings.Cut(rest, "=")
	if e := validation.IsQualifiedName(key); len(e) > 0 {
		return fmt.Sprintf("the taint key %q is not valid: %s", key, e[0])
	}
	if e := validation.IsValidLabelValue(value); len(e) > 0 {
		return fmt.Sprintf("the taint value %q is not valid: %s", value, e[0])
	}
	return ""
}

// taintKey returns the key and the effect of a taint. A node can't have two taints with the same key and effect.
func taintKey(taint string) string {
	rest, effect, _ := cutLast(taint, ":")
	key, _, _ := strings.Cut(rest, "=")
	return key + ":" + effect
}

const taintRemedy = "write key=value:Effect or key:Effect, such as dedicated=team-a:NoSchedule"

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func badQuantity(s string) string {
	q, err := resource.ParseQuantity(s)
	switch {
	case err != nil:
		return fmt.Sprintf("%q is not a quantity", s)
	case q.Sign() <= 0:
		return fmt.Sprintf("%q is not greater than zero", s)
	}
	return ""
}

func badJumpHosts(s string) string {
	for hop := range strings.SplitSeq(s, ",") {
		hop = strings.TrimSpace(hop)
		if user, _, ok := cutLast(strings.TrimPrefix(hop, "ssh://"), "@"); ok && strings.Contains(user, ":") {
			return fmt.Sprintf("%q contains a password; jump hosts accept the machine's own password, or a key", secret.Address(hop))
		}
		if hop == "" || strings.ContainsAny(hop, " \t\n'\"\\") {
			return fmt.Sprintf("%q is not [user@]host[:port]", secret.Address(hop))
		}
	}
	return ""
}

// overlap reports whether two ranges have an address in common. It returns false if one of the ranges can't be parsed.
func overlap(a, b string) bool {
	p, err1 := netip.ParsePrefix(a)
	q, err2 := netip.ParsePrefix(b)
	return err1 == nil && err2 == nil && p.Overlaps(q)
}

func contains(cidr, ip string) bool {
	p, err1 := netip.ParsePrefix(cidr)
	a, err2 := netip.ParseAddr(ip)
	return err1 == nil && err2 == nil && p.Contains(a)
}

// nodeBlocks returns the number of machines that fit into a pod range. Each machine gets a /24, which is kubeadm's default.
func nodeBlocks(podCIDR string) int {
	p, err := netip.ParsePrefix(podCIDR)
	if err != nil || !p.Addr().Is4() || p.Bits() > 24 {
		return 0
	}
	return 1 << (24 - p.Bits())
}
