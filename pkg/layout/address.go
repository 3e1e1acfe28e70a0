package layout

import (
	"cmp"
	"net/netip"
)

// CompareAddresses orders IP addresses by their value, so 10.0.0.9 comes before 10.0.0.10. Strings that aren't addresses come last, in lexical order.
func CompareAddresses(a, b string) int {
	x, errA := netip.ParseAddr(a)
	y, errB := netip.ParseAddr(b)
	switch {
	case errA == nil && errB == nil:
		return x.Compare(y)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return cmp.Compare(a, b)
}
