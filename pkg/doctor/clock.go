package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster"
)

const (
	// maxSkew is how far a clock may be from the others', maxLead how far the operator's: as preflight draws the lines.
	maxSkew = 30 * time.Second
	maxLead = 5 * time.Minute
)

func clockChecks() []*Check {
	return []*Check{
		{
			ID: "clocks", Group: "machines", Title: "Clocks agree", Needs: Machines,
			Looks: "the clock of each machine beside the median of all, 30 s apart at most, and beside that of this computer, 5 min",
			Run:   clocks,
		},
		{
			ID: "time-service", Group: "machines", Title: "A service keeps each machine's time", Needs: Machines,
			Looks: "chrony, ntpd or systemd-timesyncd on each machine that has a clock of its own, and whether it has found a server",
			Run:   timeService,
		},
	}
}

// reading says how far a clock is ahead of the operator's: it was read at some time between question and answer.
type reading struct {
	m           *machine
	least, most time.Duration
}

func (r reading) middle() time.Duration { return (r.least + r.most) / 2 }

// ahead is by how much r is ahead of o at the least, negative where it is behind, zero where the readings can't tell.
func (r reading) ahead(o reading) time.Duration {
	switch {
	case r.least > o.most:
		return r.least - o.most
	case r.most < o.least:
		return r.most - o.least
	}
	return 0
}

func clocks(_ context.Context, c *Cluster) (out []Finding, _ error) {
	var rs []reading
	for _, m := range c.machines() {
		if !m.Facts.Time.IsZero() {
			rs = append(rs, reading{m, m.Facts.Time.Sub(m.Answered), m.Facts.Time.Sub(m.Asked)})
		}
	}
	if len(rs) == 0 {
		return skip("no machine told its time"), nil
	}
	ref := medianOf(rs)
	const set = "on the machine: timedatectl set-ntp true; with no time server in reach: timedatectl set-time, then hwclock --systohc"
	for _, r := range rs {
		skew := r.ahead(ref)
		if skew.Abs() <= maxSkew {
			continue
		}
		direction := "ahead of"
		if skew < 0 {
			direction = "behind"
		}
		out = append(out, problem(r.m.Hostname, set, "its clock is %s %s the other machines': certificates, leases and logs go wrong by it", (r.middle()-ref.middle()).Abs().Round(time.Second), direction).
			seen("it says "+r.m.Facts.Time.UTC().Format(time.RFC3339)))
	}
	if ref.least > maxLead || ref.most < -maxLead {
		if len(rs) == 1 {
			return append(out, warning(rs[0].m.Hostname, "look which of the two is right; "+set, "its clock differs by %s from this computer's", ref.middle().Abs().Round(time.Second))), nil
		}
		out = append(out, warning("", "set the clock of this computer: the cluster's certificates may not be valid by it", "the clock here differs by %s from the machines'", ref.middle().Abs().Round(time.Second)))
	}
	return out, nil
}

// medianOf returns the reading in the middle; of two that which is nearer to the operator's clock.
func medianOf(rs []reading) reading {
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, func(a, b reading) int { return int(max(-1, min(1, a.middle()-b.middle()))) })
	low, high := rs[(len(rs)-1)/2], rs[len(rs)/2]
	if high.middle().Abs() < low.middle().Abs() {
		return high
	}
	return low
}

func timeService(_ context.Context, c *Cluster) (out []Finding, _ error) {
	own := 0
	for _, m := range c.machines() {
		if m.Facts.Container != "" {
			continue // its clock is its host's
		}
		own++
		var there, running []string
		for _, row := range m.all("unit", 3) {
			if row[0] == "kubelet" || row[0] == "containerd" || row[2] == "alias" {
				continue
			}
			there = append(there, row[0])
			if row[1] == "active" {
				running = append(running, row[0])
			}
		}
		start := slices.ContainsFunc(m.Settings, func(ch cluster.Change) bool { return ch.Target == "time synchronisation" })
		switch {
		case len(running) == 0 && (start || len(there) > 0):
			unit := "systemd-timesyncd"
			if !start {
				unit = there[0]
			}
			out = append(out, problem(m.Hostname, "on the machine: systemctl enable --now "+unit, "no service keeps its time: %s is there and doesn't run", unit).
				fixedBy(&Fix{What: "start " + unit + " on " + m.Hostname, host: m.Hostname, script: "systemctl enable --now " + unit + ".service\n"}))
		case len(running) == 0 && m.Facts.TimeSynced != "yes":
			out = append(out, warning(m.Hostname, "install one, such as chrony, and name a time server in reach", "no service keeps its time"))
		case m.Facts.TimeSynced == "no":
			out = append(out, warning(m.Hostname, "look at timedatectl, and at chronyc sources where it is chrony: the servers it names must be reachable by UDP 123",
				"%s runs and has found no time server", strings.Join(running, ", ")))
		}
	}
	if own == 0 {
		return skip("the machines are containers, whose clock is their host's"), nil
	}
	return out, nil
}
