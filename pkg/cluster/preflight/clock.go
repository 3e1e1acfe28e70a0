package preflight

import (
	"fmt"
	"slices"
	"time"
)

const (
	// maxSkew is the largest difference between a machine's clock and the others'. Beyond it, etcd,
	// leases and tokens fail; k0sctl uses the same limit.
	maxSkew = 30 * time.Second
	// maxLead is how far the operator's clock may lag behind: kubeadm dates its
	// certificates back by five minutes.
	maxLead = 5 * time.Minute
)

// reading is how far a host's clock is ahead of the operator's: between least and most, since the
// host read its clock at some time between the question and the answer.
type reading struct {
	of          *Host
	least, most time.Duration
}

func (r reading) middle() time.Duration { return (r.least + r.most) / 2 }

// ahead returns by how much r is ahead of o at the least, a negative value if it is behind, and 0
// if the readings are too uncertain.
func (r reading) ahead(o reading) time.Duration {
	switch {
	case r.least > o.most:
		return r.least - o.most
	case r.most < o.least:
		return r.most - o.least
	}
	return 0
}

// checkClocks compares each clock with the median of all. A slow answer widens a reading and so
// never causes a finding by itself.
func checkClocks(all []*Host) []Finding {
	var rs []reading
	for _, s := range all {
		if !s.Facts.Time.IsZero() {
			rs = append(rs, reading{s, s.Facts.Time.Sub(s.Answered), s.Facts.Time.Sub(s.Asked)})
		}
	}
	if len(rs) == 0 {
		return nil
	}
	ref := median(rs)
	var out []Finding
	for _, r := range rs {
		skew := r.ahead(ref)
		if !r.of.Selected || skew.Abs() <= maxSkew {
			continue
		}
		direction := "ahead of"
		if skew < 0 {
			direction = "behind"
		}
		out = append(out, r.of.fail("clock", fmt.Sprintf("the clock is %s %s the other machines' (it says %s)",
			(r.middle()-ref.middle()).Abs().Round(time.Second), direction, r.of.Facts.Time.Format(time.RFC3339)),
			"on the machine: timedatectl set-ntp true (with no time server in reach: timedatectl set-time, then hwclock --systohc)"))
	}
	if ref.least > maxLead || ref.most < -maxLead {
		out = append(out, Finding{Check: "clock", Severity: SeverityWarning,
			Message: fmt.Sprintf("the clock here differs by %s from the machines'", ref.middle().Abs().Round(time.Second)),
			Remedy:  "set the clock of this computer: by its time the cluster's certificates may not be valid"})
	}
	return out
}

// median returns the reading in the middle. Of two in the middle it returns the one nearer to the
// operator's clock, so that of two machines one is right.
func median(rs []reading) reading {
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, func(a, b reading) int { return int(max(-1, min(1, a.middle()-b.middle()))) })
	low, high := rs[(len(rs)-1)/2], rs[len(rs)/2]
	if high.middle().Abs() < low.middle().Abs() {
		return high
	}
	return low
}
