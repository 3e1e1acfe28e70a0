package checks

import (
	"slices"
	"strings"
	"time"
)

const (
	// MaxSkew is the maximum difference between a machine's clock and the clocks of the other machines. With a larger difference, etcd, leases and
	// tokens fail. k0sctl uses the same limit.
	MaxSkew = 30 * time.Second
	// MaxLead limits how far the operator's clock may be behind the machines' clocks. kubeadm backdates its certificates by the same five minutes.
	MaxLead = 5 * time.Minute
)

// Clock is a reading of a host's clock, with the times of the request and of the response by the operator's clock.
type Clock struct {
	Host                      string
	Says, QueriedAt, Answered time.Time
}

// reading is the difference between a host's clock and the operator's clock. It is positive if the host's clock is ahead. The exact value is
// unknown, but it is between least and most, because the host read its clock between the request and the response.
type reading struct {
	of          *Clock
	least, most time.Duration
}

func (r reading) middle() time.Duration { return (r.least + r.most) / 2 }

// ahead returns the minimum lead of r over o. The result is negative if r is behind o, and 0 if the readings are too uncertain.
func (r reading) ahead(o reading) time.Duration {
	switch {
	case r.least > o.most:
		return r.least - o.most
	case r.most < o.least:
		return r.most - o.least
	}
	return 0
}

// Clocks compares each clock with the median of all clocks. A slow response only makes a reading less precise, so it never causes a finding. The
// finding about the operator's clock has no host.
func Clocks(all []Clock) []Finding {
	var rs []reading
	for i := range all {
		c := &all[i]
		rs = append(rs, reading{c, c.Says.Sub(c.Answered), c.Says.Sub(c.QueriedAt)})
	}
	if len(rs) == 0 {
		return nil
	}
	ref := median(rs)
	var out []Finding
	for _, r := range rs {
		skew := r.ahead(ref)
		if skew.Abs() <= MaxSkew {
			continue
		}
		direction := "ahead of"
		if skew < 0 {
			direction = "behind"
		}
		f := problem("clock", "on the machine: timedatectl set-ntp true (with no time server in reach: timedatectl set-time, then hwclock --systohc)",
			"the clock is %s %s the other machines' (it says %s)", (r.middle() - ref.middle()).Abs().Round(time.Second), direction, r.of.Says.Format(time.RFC3339))
		f.Host = r.of.Host
		out = append(out, f)
	}
	if ref.least > MaxLead || ref.most < -MaxLead {
		out = append(out, warning("clock", "set the clock of this computer: by its time the cluster's certificates may not be valid",
			"the clock here differs by %s from the machines'", ref.middle().Abs().Round(time.Second)))
	}
	return out
}

// median returns the median reading. Of two middle readings, it returns the reading that is nearer to the operator's clock. With two machines, one
// clock therefore counts as right.
func median(rs []reading) reading {
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, func(a, b reading) int { return int(max(-1, min(1, a.middle()-b.middle()))) })
	low, high := rs[(len(rs)-1)/2], rs[len(rs)/2]
	if high.middle().Abs() < low.middle().Abs() {
		return high
	}
	return low
}

// TimeServices returns the units of programs that synchronize the clock. If no such unit runs, paictl starts the first installed unit.
func TimeServices() []string {
	return []string{"systemd-timesyncd", "chrony", "chronyd", "ntp", "ntpd", "ntpsec", "openntpd", "phc2sys", "ptp4l"}
}

// TimeSync describes the synchronization of a machine's clock.
type TimeSync struct {
	// Installed and Running contain units of TimeServices.
	Installed, Running []string
	// Source and Synced are the fields of layout.Facts.
	Source, Synced string
	Apt            bool // the machine has it
}

// Check returns nil if a service synchronizes the clock. Without such a service, a new cluster works at first, and fails when its clocks have
// drifted apart.
func (s *TimeSync) Check() *Finding {
	var f Finding
	running := s.Running
	if len(running) == 0 && s.Source != "" {
		running = []string{s.Source}
	}
	switch {
	case len(running) > 0 && s.Synced == "no":
		f = warning("time-source", "check timedatectl, or chronyc sources for chrony: the listed servers must be reachable by UDP 123",
			"%s runs, but has found no time server", strings.Join(running, ", "))
	case len(running) > 0 || len(s.Installed) == 0 && s.Synced == "yes":
		return nil
	case len(s.Installed) > 0:
		start := "systemctl enable --now " + s.Installed[0] + ".service"
		f = problem("time-source", "on the machine: "+start, "no service synchronizes its clock: %s is installed, but doesn't run", s.Installed[0])
		if s.Synced != "yes" { // if it is synchronized, a service that paictl doesn't know may do that, and a second one would interfere
			f = f.FixedBy(start)
		}
	case s.Apt:
		f = warning("time-source", "apt-get install -y systemd-timesyncd, or chrony, and name a time server in reach", "no service synchronizes its clock").FixedBy("p_packages systemd-timesyncd")
	default:
		f = warning("time-source", "install chrony, enable it, and name a time server in reach", "no service synchronizes its clock")
	}
	f.Advice = true
	return &f
}
