package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster"
)

func clockChecks() []*Check {
	return []*Check{
		{
			ID: "clocks", Group: "machines", Title: "Clocks agree", Needs: Machines,
			Looks: "the clock of each machine beside the median of all, 30 s apart at most, and beside that of this computer, 5 min",
			Run:   ofPreflight(oneOf("clock")),
		},
		{
			ID: "time-service", Group: "machines", Title: "A service synchronizes each machine's clock", Needs: Machines,
			Looks: "chrony, ntpd or systemd-timesyncd on each machine with its own clock, and whether it has found a server",
			Run:   timeService,
		},
	}
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
			out = append(out, problem(m.Hostname, "on the machine: systemctl enable --now "+unit, "no service synchronizes its clock: %s is installed, but doesn't run", unit).
				fixedBy(&Fix{What: "start " + unit + " on " + m.Hostname, host: m.Hostname, script: "systemctl enable --now " + unit + ".service\n"}))
		case len(running) == 0 && m.Facts.TimeSynced != "yes":
			out = append(out, warning(m.Hostname, "install one, such as chrony, and name a time server in reach", "no service synchronizes its clock"))
		case m.Facts.TimeSynced == "no":
			out = append(out, warning(m.Hostname, "check timedatectl, or chronyc sources for chrony: the listed servers must be reachable by UDP 123",
				"%s runs, but has found no time server", strings.Join(running, ", ")))
		}
	}
	if own == 0 {
		return skip("the machines are containers, whose clock is their host's"), nil
	}
	return out, nil
}
