package preflight

import (
	"slices"

	"github.com/openpai/paictl/pkg/diagnose/checks"
)

func checkClocks(all []*Host) []Finding {
	var clocks []checks.Clock
	for _, s := range all {
		if !s.Facts.Time.IsZero() {
			clocks = append(clocks, checks.Clock{Host: s.Hostname, Says: s.Facts.Time, QueriedAt: s.QueriedAt, Answered: s.Answered})
		}
	}
	return slices.DeleteFunc(checks.Clocks(clocks), func(f Finding) bool {
		return slices.ContainsFunc(all, func(s *Host) bool { return s.Hostname == f.Host && !s.Selected })
	})
}

func checkTimeSource(s *Host) []Finding {
	if s.container() {
		return nil
	}
	sync := checks.TimeSync{Source: s.Facts.TimeSource, Synced: s.Facts.TimeSynced, Apt: s.Probe.Value("packages") == "apt-get"}
	for _, unit := range checks.TimeServices() {
		if _, installed := s.Probe.Row("timesync", unit); installed {
			sync.Installed = append(sync.Installed, unit)
		}
		if s.active(unit) {
			sync.Running = append(sync.Running, unit)
		}
	}
	f := sync.Check()
	// Ignore a stopped systemd-timesyncd, because the phase base starts it when the machine joins.
	if f == nil || !s.Joined && f.Severity == checks.Error && sync.Installed[0] == checks.TimeServices()[0] {
		return nil
	}
	return []Finding{*f}
}
