package apivip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ethernet manages the virtual address on an Ethernet interface whose network contains the address.
type ethernet struct {
	address, own netip.Addr
	lifetime     time.Duration
}

// device returns the interface to which the virtual address belongs. It prefers the interface with the machine's own address, if the network of that
// interface contains the virtual address.
func (e *ethernet) device() (netlink.Link, error) {
	all, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("read the machine's addresses: %w", err)
	}
	index := choose(all, e.address, e.own)
	if index == 0 {
		return nil, fmt.Errorf("no interface of this machine has a network that %s is in", e.address)
	}
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return nil, fmt.Errorf("read the interface of %s: %w", e.address, err)
	}
	if len(l.Attrs().HardwareAddr) != 6 {
		return nil, fmt.Errorf("%s, the interface of %s, is not an Ethernet interface", l.Attrs().Name, e.address)
	}
	if l.Attrs().RawFlags&unix.IFF_RUNNING == 0 || l.Attrs().RawFlags&unix.IFF_LOWER_UP == 0 {
		return nil, fmt.Errorf("%s, the interface of %s, has no link: it is down, or no cable is in it", l.Attrs().Name, e.address)
	}
	return l, nil
}

// choose returns the index of the interface for the virtual address, or 0 if no interface has a matching network.
func choose(all []netlink.Addr, vip, own netip.Addr) int {
	found := 0
	for _, a := range all {
		ip, ok := netip.AddrFromSlice(a.IP.To4())
		bits, _ := a.Mask.Size()
		if !ok || ip == vip || bits >= 31 || !netip.PrefixFrom(ip, bits).Contains(vip) {
			continue
		}
		if ip == own {
			return a.LinkIndex
		}
		if found == 0 {
			found = a.LinkIndex
		}
	}
	return found
}

// netlink returns the virtual address with the mask /32. With this mask, the address adds no route, and connections don't use it as their source.
func (e *ethernet) netlink() *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: e.address.AsSlice(), Mask: net.CIDRMask(32, 32)}}
}

func (e *ethernet) put() error {
	l, err := e.device()
	if err != nil {
		return err
	}
	a := e.netlink()
	a.ValidLft = int(e.lifetime / time.Second)
	a.PreferedLft = a.ValidLft
	if err := netlink.AddrReplace(l, a); err != nil {
		return fmt.Errorf("set %s at %s: %w", e.address, l.Attrs().Name, err)
	}
	return nil
}

// remove removes the address from all interfaces, because device may now return another interface. It removes only an address with a lifetime,
// because a user has configured any other address.
func (e *ethernet) remove() error {
	all, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("read the machine's addresses: %w", err)
	}
	for _, a := range all {
		if bits, _ := a.Mask.Size(); bits != 32 || !a.IP.Equal(e.address.AsSlice()) || a.Flags&unix.IFA_F_PERMANENT != 0 {
			continue
		}
		l, err := netlink.LinkByIndex(a.LinkIndex)
		if err != nil {
			return fmt.Errorf("read the interface of %s: %w", e.address, err)
		}
		if err := netlink.AddrDel(l, e.netlink()); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("remove %s from %s: %w", e.address, l.Attrs().Name, err)
		}
	}
	return nil
}

// announce sends gratuitous ARP packets in two forms, because some switches and hosts accept only one form.
func (e *ethernet) announce() error {
	l, err := e.device()
	if err != nil {
		return err
	}
	mac := l.Attrs().HardwareAddr
	s, err := openARP(l.Attrs().Index)
	if err != nil {
		return err
	}
	defer s.close()
	for _, p := range []packet{
		{op: arpRequest, senderMAC: mac, sender: e.address, target: e.address},
		{op: arpReply, senderMAC: mac, sender: e.address, targetMAC: mac, target: e.address},
	} {
		if err := s.send(p); err != nil {
			return err
		}
	}
	return nil
}

// probes is the number of ARP probes for another machine with the address. probeWait is the wait after each probe.
const (
	probes    = 3
	probeWait = 150 * time.Millisecond
)

// other sends probes according to RFC 5227. The sender address of a probe is 0.0.0.0, so that other machines don't update their ARP caches.
func (e *ethernet) other(ctx context.Context) (string, error) {
	l, err := e.device()
	if err != nil {
		return "", err
	}
	mac := l.Attrs().HardwareAddr
	s, err := openARP(l.Attrs().Index)
	if err != nil {
		return "", err
	}
	defer s.close()
	for i := 0; i < probes && ctx.Err() == nil; i++ {
		if err := s.send(packet{op: arpRequest, senderMAC: mac, sender: netip.IPv4Unspecified(), target: e.address}); err != nil {
			return "", err
		}
		for end := time.Now().Add(probeWait); time.Now().Before(end); {
			p, ok, err := s.receive(time.Until(end))
			if err != nil {
				return "", err
			}
			if ok && p.sender == e.address && p.senderMAC.String() != mac.String() {
				return p.senderMAC.String(), nil
			}
		}
	}
	return "", nil
}
