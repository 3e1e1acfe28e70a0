package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/hint"
)

// firstSubnet is the first subnet to try. If this machine uses it, the search continues with the following subnets.
var firstSubnet = netip.MustParsePrefix("10.77.0.0/24")

// bridge returns the name of the sandbox's bridge. The name of an interface can have at most 15 characters.
func (s *Sandbox) bridge() string { return bridgePrefix + s.state.Name }

const bridgePrefix = "pb-"

func (s *Sandbox) table() string {
	return "paictl_sandbox_" + strings.ReplaceAll(s.state.Name, "-", "_")
}

// alias returns the bridge's alias. It marks the bridge as a part of this sandbox.
func (s *Sandbox) alias() string { return aliasPrefix + s.dir }

const aliasPrefix = "paictl-sandbox:"

// lockSubnets waits until no other process is choosing a subnet. The caller must hold the lock until the bridge exists, because the bridge reserves
// the subnet. lockSubnets locks a folder that exists on every machine, so that it leaves no file behind.
func lockSubnets() (unlock func(), err error) {
	run, err := os.Open("/run")
	if err != nil {
		return nil, fmt.Errorf("lock the choice of a subnet: %w", err)
	}
	if err := unix.Flock(int(run.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the choice of a subnet: %w", err), run.Close())
	}
	return func() { _ = run.Close() }, nil
}

// chooseSubnet returns the requested subnet, or an error if this machine already uses that subnet. If the argument is empty, it returns the first
// free subnet.
func chooseSubnet(want string) (netip.Prefix, error) {
	taken, err := machinePrefixes()
	if err != nil {
		return netip.Prefix{}, err
	}
	if want != "" {
		p, err := netip.ParsePrefix(want)
		if err != nil || !p.Addr().Is4() || p.Bits() != 24 || p.Masked() != p {
			return p, invalid("give one such as 10.77.0.0/24", "the subnet %q isn't an IPv4 network with 24 bits", want)
		}
		if other, ok := overlap(p, taken); ok {
			return p, invalid("give another --subnet, or none", "the subnet %s overlaps %s, which this machine uses", p, other)
		}
		return p, nil
	}
	p, ok := firstFree(firstSubnet, 100, taken)
	if !ok {
		return p, hint.Errorf("name a free one with --subnet", "no free subnet was found from %s on", firstSubnet)
	}
	return p, nil
}

// firstFree increases the second octet of the network first until the network doesn't overlap with a network in the list taken.
func firstFree(first netip.Prefix, tries int, taken []netip.Prefix) (netip.Prefix, bool) {
	a := first.Addr().As4()
	for i := range tries {
		b := a
		b[1] += byte(i)
		p := netip.PrefixFrom(netip.AddrFrom4(b), first.Bits())
		if _, hit := overlap(p, taken); !hit {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func overlap(p netip.Prefix, taken []netip.Prefix) (netip.Prefix, bool) {
	for _, t := range taken {
		if t.Overlaps(p) {
			return t, true
		}
	}
	return netip.Prefix{}, false
}

// machinePrefixes returns the networks of this machine's interfaces, routes and name servers.
func machinePrefixes() ([]netip.Prefix, error) {
	var out []netip.Prefix
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("read this machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Masked())
		}
	}
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("read this machine's routes: %w", err)
	}
	out = append(out, parseRoutes(string(routes))...)
	for _, ns := range nameServers() {
		out = append(out, netip.PrefixFrom(ns, ns.BitLen()))
	}
	return out, nil
}

// parseRoutes parses /proc/net/route. Columns 1 and 7 contain the destination and the mask as hexadecimal little-endian numbers. parseRoutes omits
// the default route.
func parseRoutes(text string) []netip.Prefix {
	var out []netip.Prefix
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		dest, ok1 := littleEndian(f[1])
		mask, ok2 := littleEndian(f[7])
		if !ok1 || !ok2 {
			continue
		}
		if bits, _ := net.IPMask(mask[:]).Size(); bits > 0 {
			out = append(out, netip.PrefixFrom(netip.AddrFrom4(dest), bits))
		}
	}
	return out
}

func littleEndian(hex string) (out [4]byte, ok bool) {
	var v uint32
	if _, err := fmt.Sscanf(hex, "%08X", &v); err != nil {
		return out, false
	}
	return [4]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}, true
}

// resolvConf returns this machine's resolver configuration for hosts. Hosts can't reach a resolver on loopback, so resolvConf returns the resolvers
// to which it forwards.
func resolvConf() string {
	b, _ := os.ReadFile("/etc/resolv.conf")
	if strings.Contains(string(b), "nameserver 127.") {
		if behind, err := os.ReadFile("/run/systemd/resolve/resolv.conf"); err == nil {
			b = behind
		}
	}
	var keep strings.Builder
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "nameserver 127.") && !strings.HasPrefix(line, "#") {
			keep.WriteString(line)
		}
	}
	return keep.String()
}

func nameServers() []netip.Addr {
	var out []netip.Addr
	for line := range strings.Lines(resolvConf()) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "nameserver" {
			if a, err := netip.ParseAddr(f[1]); err == nil && !a.IsLoopback() {
				out = append(out, a)
			}
		}
	}
	return out
}

// link is an interface in the output of "ip -json link".
type link struct {
	Name  string `json:"ifname"`
	Alias string `json:"ifalias"`
}

// bridgeOwner returns the directory of the sandbox that owns the bridge with this sandbox's name. It returns "" if the bridge belongs to another
// program. The second result reports whether the bridge exists.
func (s *Sandbox) bridgeOwner(ctx context.Context) (dir string, there bool, err error) {
	if !exists("/sys/class/net/" + s.bridge()) {
		return "", false, nil
	}
	out, err := run(ctx, nil, "ip", "-json", "link", "show", "dev", s.bridge())
	if err != nil {
		return "", false, fmt.Errorf("look at the bridge %s: %w", s.bridge(), err)
	}
	var links []link
	if err := json.Unmarshal([]byte(out), &links); err != nil || len(links) != 1 {
		return "", false, fmt.Errorf("look at the bridge %s: unexpected answer of ip: %w", s.bridge(), err)
	}
	dir, ours := strings.CutPrefix(links[0].Alias, aliasPrefix)
	if !ours {
		dir = ""
	}
	return dir, true, nil
}

// ownBridge reports whether the sandbox's bridge exists. It returns an error if another sandbox or program owns the bridge.
func (s *Sandbox) ownBridge(ctx context.Context) (there bool, err error) {
	owner, there, err := s.bridgeOwner(ctx)
	switch {
	case err != nil || !there || owner == s.dir:
		return there, err
	case owner == "":
		return true, hint.Errorf("give this sandbox another --name", "the interface %s exists, but belongs to no sandbox", s.bridge())
	}
	return true, hint.Errorf("give this sandbox another --name, or remove the other one (paictl sandbox down --dir "+owner+")",
		"the interface %s exists and belongs to the sandbox in %s", s.bridge(), owner)
}

func (s *Sandbox) bridgeUp(ctx context.Context) error {
	there, err := s.ownBridge(ctx)
	if err != nil {
		return err
	}
	if !there {
		s.progress(fmt.Sprintf("making the network %s on bridge %s", s.state.Subnet, s.bridge()))
		// A single command creates the bridge and sets its owner, so that an interruption of this process can't leave a bridge without an owner.
		batch := fmt.Sprintf("link add name %s type bridge\nlink set dev %[1]s alias %s\n", s.bridge(), s.alias())
		if _, err := runInput(ctx, nil, batch, "ip", "-batch", "-"); err != nil {
			return fmt.Errorf("make the bridge: %w", err)
		}
	}
	batch := fmt.Sprintf("addr replace %s/%d dev %s\nlink set dev %[3]s up\n", s.state.gateway(), s.state.Subnet.Bits(), s.bridge())
	if _, err := runInput(ctx, nil, batch, "ip", "-batch", "-"); err != nil {
		return fmt.Errorf("set up the bridge %s: %w", s.bridge(), err)
	}
	return nil
}

func (s *Sandbox) networkUp(ctx context.Context) error {
	if err := s.bridgeUp(ctx); err != nil {
		return err
	}
	if _, err := runInput(ctx, nil, s.rules(), "nft", "-f", "-"); err != nil {
		return fmt.Errorf("set up address translation: %w", err)
	}
	want := map[string]int{"net/ipv4/ip_forward": 1}
	if s.state.Kind == Full {
		want["fs/inotify/max_user_instances"] = inotifyInstances
	}
	return raiseSysctls(s.dir, want, s.progress)
}

// rules returns nftables rules that replace the sandbox's table in a single transaction.
func (s *Sandbox) rules() string {
	return fmt.Sprintf(`table ip %[1]s
delete table ip %[1]s
table ip %[1]s {
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr %[2]s oifname != %[3]q masquerade
	}
}
`, s.table(), s.state.Subnet, s.bridge())
}

func (s *Sandbox) networkDown(ctx context.Context) error {
	owner, there, err := s.bridgeOwner(ctx)
	if err != nil {
		return err
	}
	if there && owner != s.dir {
		return nil // neither a bridge nor a table of this sandbox can exist
	}
	if there {
		if _, err := run(ctx, nil, "ip", "link", "delete", "dev", s.bridge()); err != nil {
			return fmt.Errorf("remove the bridge: %w", err)
		}
	}
	remove := fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\n", s.table())
	if _, err := runInput(ctx, nil, remove, "nft", "-f", "-"); err != nil {
		return fmt.Errorf("remove the address translation: %w", err)
	}
	return restoreSysctls(s.dir)
}
