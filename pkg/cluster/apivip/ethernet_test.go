package apivip

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/openpai/paictl/test/tier"
)

func TestPacketsAreReadAsTheyWereWritten(t *testing.T) {
	p := packet{
		op: arpReply, senderMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, targetMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2},
		sender: netip.MustParseAddr("10.0.0.1"), target: netip.MustParseAddr("10.0.0.2"),
	}
	b := p.encode()
	assert.Equal(t, []byte{0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2}, b)
	got, ok := decode(append(b, make([]byte, 18)...)) // as an Ethernet pads it
	assert.True(t, ok)
	assert.Equal(t, p, got)
	for _, bad := range [][]byte{nil, b[:27], append([]byte{0, 6}, b[2:]...)} {
		_, ok := decode(bad)
		assert.False(t, ok)
	}
}

func TestTheInterfaceIsTheOneWhoseNetworkHasTheAddress(t *testing.T) {
	addr := func(index int, cidr string) netlink.Addr {
		a, err := netlink.ParseAddr(cidr)
		require.NoError(t, err)
		a.LinkIndex = index
		return *a
	}
	all := []netlink.Addr{addr(1, "127.0.0.1/8"), addr(2, "192.168.1.5/24"), addr(3, "10.0.0.5/24"), addr(4, "10.0.0.6/24"), addr(5, "10.1.0.1/32"), addr(3, "10.0.0.9/32")}
	for _, tt := range []struct {
		vip, own string
		index    int
	}{
		{"10.0.0.9", "10.0.0.5", 3},
		{"10.0.0.9", "10.0.0.6", 4},
		{"10.0.0.9", "192.168.1.5", 3}, // a network other than that of the machine's own address
		{"192.168.1.9", "10.0.0.5", 2},
		{"10.1.0.1", "10.0.0.5", 0},
		{"10.2.0.1", "10.0.0.5", 0},
	} {
		assert.Equal(t, tt.index, choose(all, netip.MustParseAddr(tt.vip), netip.MustParseAddr(tt.own)), "%v", tt)
	}
}

// twoMachines creates two network namespaces, with the addresses 10.99.0.1 and 10.99.0.2, and a cable between them. Each returned function runs its
// argument in one of the namespaces.
func twoMachines(t *testing.T) [2]func(func()) {
	t.Helper()
	tier.More(t, "network namespaces")
	runtime.LockOSThread() // never unlocked: the thread ends with the test, in any namespace
	home, err := netns.Get()
	require.NoError(t, err)
	var spaces [2]netns.NsHandle
	var in [2]func(func())
	for i := range spaces {
		spaces[i], err = netns.New()
		if errors.Is(err, os.ErrPermission) {
			t.Skip("needs root, to make network namespaces")
		}
		require.NoError(t, err)
		in[i] = func(do func()) {
			require.NoError(t, netns.Set(spaces[i]))
			do()
			require.NoError(t, netns.Set(home))
		}
	}
	require.NoError(t, netns.Set(home))
	t.Cleanup(func() {
		for _, s := range spaces {
			_ = s.Close()
		}
		_ = home.Close()
	})
	in[0](func() {
		require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(spaces[1])}))
	})
	for i, cidr := range []string{"10.99.0.1/24", "10.99.0.2/24"} {
		in[i](func() {
			l, err := netlink.LinkByName("eth0")
			require.NoError(t, err)
			a, err := netlink.ParseAddr(cidr)
			require.NoError(t, err)
			require.NoError(t, netlink.AddrAdd(l, a))
			require.NoError(t, netlink.LinkSetUp(l))
		})
	}
	return in
}

// until waits for a condition. It checks the condition on the current thread, because only this thread is in the namespace.
func until(t *testing.T, happened func() bool) {
	t.Helper()
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for end := time.Now().Add(10 * time.Second); !happened(); <-ticks.C {
		require.True(t, time.Now().Before(end), "it never happened")
	}
}

func addresses(t *testing.T) []string {
	t.Helper()
	all, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	require.NoError(t, err)
	var out []string
	for _, a := range all {
		out = append(out, a.IPNet.String())
	}
	return out
}

func TestTheAddressOnARealNetwork(t *testing.T) {
	in := twoMachines(t)
	vip := netip.MustParseAddr("10.99.0.100")
	first := &ethernet{address: vip, own: netip.MustParseAddr("10.99.0.1"), lifetime: time.Second}
	second := &ethernet{address: vip, own: netip.MustParseAddr("10.99.0.2"), lifetime: time.Second}
	var mac string
	other := func(e *ethernet) (out string) {
		out, err := e.other(t.Context())
		require.NoError(t, err)
		return out
	}
	in[0](func() {
		require.NoError(t, first.remove(), "what isn't there is removed already")
		assert.Empty(t, other(first))
		require.NoError(t, first.put())
		require.NoError(t, first.put(), "again, for longer")
		require.NoError(t, first.announce())
		assert.Equal(t, []string{"10.99.0.1/24", "10.99.0.100/32"}, addresses(t))
		assert.Empty(t, other(first), "this machine itself is no other one")
		l, err := first.device()
		require.NoError(t, err)
		mac = l.Attrs().HardwareAddr.String()
	})
	in[1](func() { assert.Equal(t, mac, other(second)) })
	in[0](func() {
		require.NoError(t, first.remove())
		assert.Equal(t, []string{"10.99.0.1/24"}, addresses(t))
		require.NoError(t, first.put())
	})
	in[1](func() {
		// The test doesn't extend the lifetime of the address, as if the program had been killed.
		until(t, func() bool { return other(second) == "" })
	})
	in[0](func() {
		assert.Equal(t, []string{"10.99.0.1/24"}, addresses(t))
		l, err := netlink.LinkByName("eth0")
		require.NoError(t, err)
		require.NoError(t, netlink.AddrAdd(l, first.netlink()))
		require.NoError(t, first.remove())
		assert.Contains(t, addresses(t), "10.99.0.100/32", "one that a person gave the machine stays")
	})
}

func TestAnInterfaceWithoutALinkCannotHaveTheAddress(t *testing.T) {
	in := twoMachines(t)
	first := &ethernet{address: netip.MustParseAddr("10.99.0.100"), own: netip.MustParseAddr("10.99.0.1"), lifetime: 10 * time.Second}
	in[0](func() { require.NoError(t, first.put()) })
	in[1](func() { // the cable's other end
		l, err := netlink.LinkByName("eth0")
		require.NoError(t, err)
		require.NoError(t, netlink.LinkSetDown(l))
	})
	in[0](func() {
		const want = "eth0, the interface of 10.99.0.100, has no link: it is down, or no cable is in it"
		until(t, func() bool { _, err := first.device(); return err != nil })
		require.EqualError(t, first.put(), want)
		require.EqualError(t, first.announce(), want)
		_, err := first.other(t.Context())
		require.EqualError(t, err, want)
		require.NoError(t, first.remove())
		assert.Equal(t, []string{"10.99.0.1/24"}, addresses(t))
	})
}

func TestAnAnnouncementReachesWhoKnewAnotherMachine(t *testing.T) {
	in := twoMachines(t)
	vip := netip.MustParseAddr("10.99.0.100")
	first := &ethernet{address: vip, own: netip.MustParseAddr("10.99.0.1"), lifetime: 10 * time.Second}
	known := func() string {
		l, err := netlink.LinkByName("eth0")
		require.NoError(t, err)
		all, err := netlink.NeighList(l.Attrs().Index, netlink.FAMILY_V4)
		require.NoError(t, err)
		for _, n := range all {
			if n.IP.Equal(vip.AsSlice()) {
				return n.HardwareAddr.String()
			}
		}
		return ""
	}
	in[1](func() {
		l, err := netlink.LinkByName("eth0")
		require.NoError(t, err)
		require.NoError(t, netlink.NeighAdd(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_STALE, IP: vip.AsSlice(), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 0x99}}))
		assert.Equal(t, "02:00:00:00:00:99", known())
	})
	var mac string
	in[0](func() {
		l, err := first.device()
		require.NoError(t, err)
		mac = l.Attrs().HardwareAddr.String()
		require.NoError(t, first.put())
	})
	until(t, func() bool {
		var now string
		in[0](func() { require.NoError(t, first.announce()) })
		in[1](func() { now = known() })
		return now == mac
	})
}
