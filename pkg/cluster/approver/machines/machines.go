// Package machines defines the ConfigMap with the addresses of a cluster's machines.
// In: names and addresses of the layout. Out: the data of the ConfigMap, and its parsed content.
//
// "cluster up" writes the ConfigMap, and pai-csr-approver reads it. The addresses in a Node object aren't trustworthy, because the kubelet writes
// them.
package machines

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The namespace and name of the ConfigMap. Its keys are node names. Its values are the addresses of each node, separated by commas.
const (
	Namespace = "kube-system"
	Name      = "paictl-machines"
)

// Value returns the ConfigMap's value for a machine with these addresses.
func Value(addresses ...string) string { return strings.Join(addresses, ",") }

// Addresses parses a value of the ConfigMap.
func Addresses(value string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, text := range strings.Split(value, ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%q is not an address", text)
		}
		out = append(out, a.Unmap())
	}
	return out, nil
}

// Difference describes how the current content differs from the desired content, or returns "" if they are equal.
func Difference(want, have map[string]string) string {
	var added, gone, changed []string
	for name, w := range want {
		h, known := have[name]
		switch {
		case !known:
			added = append(added, name)
		case h != w:
			changed = append(changed, name)
		}
	}
	for name := range have {
		if _, wanted := want[name]; !wanted {
			gone = append(gone, name)
		}
	}
	var out []string
	for _, group := range []struct {
		names []string
		what  string
	}{{added, "added"}, {changed, "changed"}, {gone, "removed"}} {
		if len(group.names) > 0 {
			slices.Sort(group.names)
			out = append(out, some(group.names)+" "+group.what)
		}
	}
	return strings.Join(out, ", ")
}

func some(names []string) string {
	const most = 3
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
