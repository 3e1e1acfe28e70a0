package doctor

import (
	"context"
	"slices"
	"strings"
)

func clockChecks() []*Check {
	return []*Check{
		{
			ID: "clocks", Group: "machines", Title: "Clocks agree", Needs: Machines,
			Examines: "whether the clock of each machine is within 30 s of the median of all, and within 5 min of this computer's",
			Run:      ofPreflight(oneOf("clock")),
		},
		{
			ID: "time-service", Group: "machines", Title: "A service synchronizes each machine's clock", Needs: Machines,
			Examines: "chrony, ntpd or systemd-timesyncd on each machine with its own clock, and whether it has found a server",
			Run:      timeService,
		},
	}
}

func timeService(_ context.Context, c *Cluster) (out []Finding, _ error) {
	// A container uses the clock of its host.
	if !slices.ContainsFunc(c.machines(), func(m *machine) bool { return m.Facts.Container == "" }) {
		return skip("the machines are containers, whose clock is their host's"), nil
	}
	for _, p := range c.Inspection.Preflight {
		if p.By != "time-source" {
			continue
		}
		f := found(p)
		if unit, starts := strings.CutPrefix(p.Fix, "systemctl enable --now "); starts {
			f = f.fixedBy(&Fix{What: "start " + strings.TrimSuffix(unit, ".service") + " on " + p.Host, host: p.Host, script: p.Fix + "\n"})
		}
		out = append(out, f)
	}
	return out, nil
}
