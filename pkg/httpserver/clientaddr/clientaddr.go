// Package clientaddr groups addresses of clients by their network.
// In: addresses of requests. Out: names of networks, so that limits can count the clients of a network together.
package clientaddr

import "net/netip"

// Network returns the network that limits count as one client: an IPv4 address, or the /64 of an IPv6 address, because one customer usually has a
// whole /64.
func Network(a netip.Addr) string {
	return within(a, 64)
}

// Site returns the network that limits count as one customer: an IPv4 address, or the /48 of an IPv6 address, because many customers have a whole
// /48.
func Site(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return within(a, 48)
}

func within(a netip.Addr, bits int) string {
	if a = a.Unmap().WithZone(""); a.Is6() {
		if p, err := a.Prefix(bits); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// NetworkOf returns the Network of an address that is given as text. It returns a text that isn't an address unchanged.
func NetworkOf(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return Network(a)
}
