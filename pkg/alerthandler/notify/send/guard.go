package send

import (
	"fmt"
	"net/netip"
	"syscall"
)

// inside returns the networks that no server on the Internet uses. Their addresses belong to this machine, the cluster or the site, or translate to
// such addresses.
func inside() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/96", "::1/128", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2001:db8::/32", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// guard blocks connections to addresses inside the site, except in allowed networks. It checks the IP address of each connection after the name was
// resolved. So redirects and changed DNS records can't bypass the check.
type guard struct {
	inside, allowed []netip.Prefix
	// cluster holds the networks of pods and services, which may have public addresses. The configuration can't allow them.
	cluster []netip.Prefix
}

// control implements the field Control of net.Dialer.
func (g *guard) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address can't be checked: %w", err)
	}
	return g.check(ap.Addr())
}

// check returns an error for an address inside the site. The configuration can't allow cluster, loopback or link-local addresses. Cloud providers
// serve credentials at link-local addresses.
func (g *guard) check(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
		return fmt.Errorf("%s is refused: a webhook may not reach the machine itself", a)
	}
	for _, p := range g.cluster {
		if p.Contains(a) {
			return fmt.Errorf("%s is refused: a webhook may not reach pods and services of the cluster", a)
		}
	}
	for _, p := range g.allowed {
		if p.Contains(a) {
			return nil
		}
	}
	for _, p := range g.inside {
		if p.Contains(a) {
			return fmt.Errorf("%s is refused: it is inside the cluster or the site, and notifications.webhookNetworks doesn't allow it", a)
		}
	}
	return nil
}
