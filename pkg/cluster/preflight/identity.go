package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/shell"
)

// checkHostname fails if the machine's host name differs from the name in the layout, because certificates, node objects and logs contain that
// name. A fully qualified host name may extend the name in the layout.
func checkHostname(s *Host) []Finding {
	have, want := s.Facts.Hostname, s.Hostname
	if sameName(have, want) || s.namesake() != nil {
		return nil // checkUnique reports a namesake
	}
	f := s.fail("hostname", fmt.Sprintf("the machine's host name is %s, but layout.yaml says %s", have, want),
		fmt.Sprintf("on the machine: hostnamectl set-hostname %s; or in layout.yaml: hostname: %s", want, have))
	if !isLabel(strings.SplitN(have, ".", 2)[0]) {
		f.Remedy = fmt.Sprintf("on the machine: hostnamectl set-hostname %s (%s is not a valid name, see RFC 1123)", want, have)
	}
	// These names are installer defaults, so no program depends on these names.
	if slices.Contains([]string{"localhost", "localhost.localdomain", "debian", "ubuntu", "(none)"}, have) && !s.Touched {
		f.Remedy = "on the machine: hostnamectl set-hostname " + want
		f = f.FixedBy("p_hostname " + shell.Quote(want))
	}
	return []Finding{f}
}

func sameName(have, want string) bool {
	return have == want || strings.HasPrefix(have, want+".")
}

// namesake returns another host that should have this host's name according to the layout. It returns nil if this host has the right name.
func (s *Host) namesake() *Host {
	if sameName(s.Facts.Hostname, s.Hostname) {
		return nil
	}
	for _, o := range s.others {
		if o != s && o.Facts.Hostname == s.Facts.Hostname && sameName(o.Facts.Hostname, o.Hostname) {
			return o
		}
	}
	return nil
}

// isLabel reports whether s is a label of a host name according to RFC 1123. Kubernetes requires lowercase.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// checkAddress fails if no interface has the address hostip, because the kubelet registers the node with hostip. It also fails if an interface has
// another host's address.
func checkAddress(s *Host) []Finding {
	if len(s.Facts.Addresses) == 0 { // without "ip" the addresses are unknown
		return nil
	}
	var out []Finding
	var have []string
	found := false
	for _, a := range s.Facts.Addresses {
		ip := bareAddress(a.CIDR)
		found = found || ip == s.HostIP
		have = append(have, fmt.Sprintf("%s (%s)", ip, a.Interface))
		if o := s.at[ip]; o != nil && o != s && !sameMachine(s, o) {
			out = append(out, s.fail("unique-address", fmt.Sprintf("%s has the address %s, which is %s's in layout.yaml", a.Interface, ip, o.Hostname),
				fmt.Sprintf("remove it from the machine: ip addr del %s dev %s; or correct hostip in layout.yaml", a.CIDR, a.Interface)))
		}
	}
	if !found {
		if len(have) > 6 {
			have = append(have[:6], "…")
		}
		out = append(out, s.fail("address", fmt.Sprintf("no interface has the address %s; the machine has %s", s.HostIP, strings.Join(have, ", ")),
			"set hostip in layout.yaml to the address under which the other machines reach this one"))
	}
	return out
}

func bareAddress(cidr string) string {
	ip, _, _ := strings.Cut(cidr, "/")
	if a, err := netip.ParseAddr(ip); err == nil {
		return a.String()
	}
	return ip
}

// checkMachineID fails if the machine has no machine id. systemd, the kubelet and DHCP clients need the id.
func checkMachineID(s *Host) []Finding {
	if s.Facts.MachineID != "" && s.Facts.MachineID != "uninitialized" {
		return nil
	}
	f := s.fail("machine-id", "the machine has no machine id (/etc/machine-id is empty)", "systemd-machine-id-setup")
	if s.Probe.Value("init") == "systemd" {
		f = f.FixedBy("systemd-machine-id-setup >/dev/null")
	}
	return []Finding{f}
}

// sameMachine reports whether two hosts in the layout are the same machine. Clones have the same machine id, but different boot ids.
func sameMachine(a, b *Host) bool {
	boot := a.Probe.Value("boot")
	return boot != "" && boot == b.Probe.Value("boot") && a.Facts.MachineID == b.Facts.MachineID &&
		a.Facts.Hostname == b.Facts.Hostname
}

// checkUnique fails if two entries in the layout are the same machine, if machines are clones, or if machines have the same name. It reports each
// problem only once, for the host that should be changed.
func checkUnique(all []*Host) []Finding {
	// Put hosts that aren't selected first, so that the finding is about a selected host.
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b *Host) int { return boolInt(a.Selected) - boolInt(b.Selected) })
	var out []Finding
	ids := map[string]*Host{}
	for _, s := range order {
		first, seen := ids[s.Facts.MachineID]
		switch {
		case s.Facts.MachineID == "" || s.Facts.MachineID == "uninitialized":
		case !seen:
			ids[s.Facts.MachineID] = s
		case !s.Selected:
		case sameMachine(first, s):
			out = append(out, s.fail("unique-machine", fmt.Sprintf("%s and %s are the same machine, %s", s.HostIP, first.HostIP, first.Hostname),
				fmt.Sprintf("correct hostip of %s in layout.yaml, or remove the entry", s.Hostname)))
			continue // the shared name is a consequence
		default:
			out = append(out, s.fail("unique-machine-id", fmt.Sprintf("the machine has the machine id of %s (%s): one is a copy of the other", first.Hostname, s.Facts.MachineID),
				"on the machine: rm -f /etc/machine-id /var/lib/dbus/machine-id && systemd-machine-id-setup && reboot"))
		}
		if o := s.namesake(); o != nil && s.Selected {
			out = append(out, s.fail("unique-hostname", fmt.Sprintf("the machine's host name is %s, as is that of %s (%s); layout.yaml says %s",
				s.Facts.Hostname, o.Hostname, o.HostIP, s.Hostname),
				"on the machine: hostnamectl set-hostname "+s.Hostname))
		}
	}
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
