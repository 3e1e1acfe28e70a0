package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

const idReachable = "machines-reachable"

func machineChecks() []*Check {
	return []*Check{
		{
			ID: idReachable, Group: "machines", Title: "Machines answer by SSH", Needs: Managed,
			Examines: "one connection to each machine of layout.yaml, as its user, and root's rights there",
			Run:      machinesReachable,
		},
		{
			ID: "machine-identity", Group: "machines", Title: "Machines match the layout", Needs: Machines,
			Examines: "name, addresses and machine-id of each machine: name and address are the layout's, and no two machines have one id",
			Run:      ofPreflight(identity),
		},
		{
			ID: "machine-fitness", Group: "machines", Title: "Machines are still fit for the cluster", Needs: Machines,
			Examines: "the requirements of cluster preflight for members: rights, systemd, programs, folders that are read-only, modules, cgroups, /etc/hosts after a reboot, and to which cluster they belong",
			Run:      ofPreflight(func(id string) bool { return !identity(id) && !elsewhere(id) }),
		},
		{
			ID: "machine-hardware", Group: "machines", Title: "Machines have the layout's processors and memory", Needs: Machines,
			Examines: "logical processors and memory of each machine, compared with its SKU in layout.yaml; 5 % less memory is normal",
			Run:      machineHardware,
		},
		{
			ID: "kernel-settings", Group: "machines", Title: "Kernel settings are correct, also after a reboot", Needs: Machines,
			Examines: "kernel settings and modules as they are now, the files that bring them back at the next boot, and files that are read later and say otherwise",
			Run:      kernelSettings,
		},
		{
			ID: "host-names", Group: "machines", Title: "Machines know each other's names", Needs: Machines,
			Examines: "the part of /etc/hosts that paictl writes on each machine",
			Run:      settingsOf(isHosts, "the names of machines in /etc/hosts aren't the layout's"),
		},
		{
			ID: "swap", Group: "machines", Title: "Swap is off unless the kubelet allows it", Needs: Machines,
			Examines: "/proc/swaps of each machine, unless the kubelet's settings allow swap",
			Run:      settingsOf(func(ch engine.Change) bool { return ch.Target == "swapoff" }, "swap is on: the kubelet won't start with it"),
		},
		{
			ID: "runtime-active", Group: "machines", Title: "containerd runs, and starts at boot", Needs: Machines,
			Examines: "the systemd unit containerd on each machine of the cluster",
			Run:      unitRuns("containerd", "containerd"),
		},
		{
			ID: "kubelet-active", Group: "machines", Title: "Kubelets run, and start at boot", Needs: Machines,
			Examines: "the systemd unit kubelet on each machine of the cluster",
			Run:      unitRuns("kubelet", "the kubelet"),
		},
		{
			ID: "units-failed", Group: "machines", Title: "No unit of paictl or of NVIDIA has failed", Needs: Machines,
			Examines: "systemd's failed units whose names begin with paictl or nvidia",
			Run:      unitsFailed,
		},
		{
			ID: "pod-subnets", Group: "machines", Title: "Machines assign pods addresses from the machine's subnet", Needs: Machines,
			Examines: "the address of the bridge cni0 and flannel's subnet on each machine, compared with its node's in the cluster",
			Run:      podSubnets,
		},
		{
			ID: "cluster-lock", Group: "machines", Title: "No other paictl is running", Needs: Machines,
			Examines: "the holder of the lock on the machines; other runs wait for it, and unfinished steps may look broken",
			Run:      clusterLock,
		},
	}
}

func machinesReachable(_ context.Context, c *Cluster) (out []Finding, _ error) {
	if c.Inspection == nil {
		return skip("they were not checked"), nil
	}
	for _, n := range c.Spec.Nodes {
		l := c.Inspection.Machines[n.Hostname]
		switch {
		case l == nil:
		case l.Err != nil:
			out = append(out, unreachable(n, l.Err))
		case l.Broken["facts"] != "" || l.Broken["more"] != "" || !slices.ContainsFunc(l.More, func(r []string) bool { return r[0] == "end" }):
			out = append(out, warning(n.Hostname, "run again with --log-file FILE, and read the output of the machine's shell there", "some checks were aborted on the machine: their results are missing"))
		}
	}
	return out, nil
}

func unreachable(n *engine.Node, err error) Finding {
	if remedy := hint.Of(err); remedy != "" && !ssh.Silent(err) {
		return problem(n.Hostname, remedy, "can't be checked by SSH at %s", n.HostIP).seen(err.Error())
	}
	remedy := fmt.Sprintf("switch it on, or look at its console, its cable and its sshd (ssh %s@%s); if it is lost permanently: paictl node remove %s", n.Target.User, n.HostIP, n.Hostname)
	return problem(n.Hostname, remedy, "doesn't answer by SSH at %s: the machine is off, or the network to it is broken", n.HostIP).seen(err.Error())
}

// ofPreflight returns a check that reports preflight's findings about members of the cluster. The argument selects the checks of preflight by ID.
func ofPreflight(is func(id string) bool) func(context.Context, *Cluster) ([]Finding, error) {
	return func(_ context.Context, c *Cluster) (out []Finding, _ error) {
		for _, p := range c.Inspection.Preflight {
			if !is(p.By) {
				continue
			}
			out = append(out, found(p))
		}
		return out, nil
	}
}

func oneOf(ids ...string) func(string) bool {
	return func(id string) bool { return slices.Contains(ids, id) }
}

// identity selects preflight's checks of names and addresses. elsewhere selects checks whose problems other checks of the doctor report.
var identity, elsewhere = oneOf("hostname", "address", "machine-id", "unique"), oneOf("clock", "time-source", "disk", "sysctl", "gpu", "gpu-driver", "version")

func machineHardware(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.machines() {
		sku, known := c.Config.Layout.MachineSKU[m.SKU]
		if !known || !sku.Discovered {
			continue
		}
		if m.Facts.VCores > 0 && m.Facts.VCores < sku.CPU.VCore {
			out = append(out, warning(m.Hostname, "check whether processors are disabled in its firmware; otherwise correct its SKU in layout.yaml",
				"has %d logical processors, but its SKU %s says %d", m.Facts.VCores, m.SKU, sku.CPU.VCore))
		}
		if want := quantityKiB(sku.Mem); want > 0 && m.Facts.MemKiB > 0 && m.Facts.MemKiB < want*95/100 {
			out = append(out, warning(m.Hostname, "look for a memory module that has failed (dmesg, the management controller); otherwise correct its SKU in layout.yaml",
				"has %d MiB of memory, but its SKU %s says %d", m.Facts.MemKiB>>10, m.SKU, want>>10))
		}
	}
	return out, nil
}

func isHosts(ch engine.Change) bool { return ch.Target == "/etc/hosts" }

// isSetting reports whether the check kernel-settings reports a change. Other checks report the remaining changes.
func isSetting(ch engine.Change) bool {
	return !isHosts(ch) && ch.Target != "swapoff" && ch.Target != "time synchronisation"
}

func kernelSettings(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.machines() {
		if !c.joined(m.Hostname) {
			continue // "cluster up" prepares it when the machine joins
		}
		if m.Broken["base"] != "" {
			out = append(out, warning(m.Hostname, "run again with --log-file FILE", "its settings could not be read"))
			continue
		}
		var now, boot []string
		var all []engine.Change
		for _, ch := range m.Settings {
			switch {
			case !isSetting(ch):
				continue
			case strings.HasPrefix(ch.Target, "/"):
				boot = append(boot, ch.Target)
			default:
				now = append(now, strings.TrimSpace(ch.Target+" "+ch.Detail))
			}
			all = append(all, ch)
		}
		remedy := "paictl doctor --only kernel-settings --fix -p " + shell.Word(c.Dir) + "; or paictl cluster up"
		if len(now) > 0 {
			out = append(out, problem(m.Hostname, remedy, "kernel settings aren't suitable for pods: %s", strings.Join(now, ", ")).fixedBy(rewrites(m.Hostname, all)))
		}
		if len(boot) > 0 {
			out = append(out, problem(m.Hostname, remedy, "settings will be lost at the next reboot: %s isn't as paictl wrote it", strings.Join(boot, ", ")).fixedBy(rewrites(m.Hostname, all)))
		}
	}
	later, err := ofPreflight(oneOf("sysctl"))(ctx, c)
	return append(out, later...), err
}

func rewrites(host string, changes []engine.Change) *Fix {
	names := make([]string, len(changes))
	for i, ch := range changes {
		names[i] = ch.Target
	}
	return &Fix{What: "set again on " + host + ": " + strings.Join(names, ", "), host: host, settings: changes}
}

// settingsOf returns a check for machines with different settings. The first argument selects the settings.
func settingsOf(is func(engine.Change) bool, message string) func(context.Context, *Cluster) ([]Finding, error) {
	return func(_ context.Context, c *Cluster) (out []Finding, _ error) {
		for _, m := range c.machines() {
			for _, ch := range m.Settings {
				if is(ch) && c.joined(m.Hostname) {
					out = append(out, problem(m.Hostname, "paictl cluster up restores it", "%s", message).fixedBy(rewrites(m.Hostname, []engine.Change{ch})))
				}
			}
		}
		return out, nil
	}
}

// unitRuns returns a check that a systemd unit runs on each machine of the cluster.
func unitRuns(unit, called string) func(context.Context, *Cluster) ([]Finding, error) {
	return func(_ context.Context, c *Cluster) (out []Finding, _ error) {
		members := 0
		for _, m := range c.machines() {
			if !c.joined(m.Hostname) {
				continue
			}
			members++
			rows := m.all("unit", 3)
			at := slices.IndexFunc(rows, func(r []string) bool { return r[0] == unit })
			start := &Fix{What: "start " + called + " on " + m.Hostname, host: m.Hostname, script: "systemctl enable --now " + unit + ".service\n"}
			remedy := fmt.Sprintf("on the machine: systemctl enable --now %s; if it fails again: journalctl -u %s -n 50", unit, unit)
			switch {
			case at < 0:
				out = append(out, problem(m.Hostname, "paictl cluster up --limit "+m.Hostname+" installs it again", "%s isn't installed", called))
			case rows[at][1] != "active" && rows[at][1] != "reloading":
				f := problem(m.Hostname, remedy, "%s doesn't run (%s)", called, rows[at][1])
				if rows[at][2] != "masked" {
					f = f.fixedBy(start)
				} else {
					f.Remedy = "someone has masked it; on the machine: systemctl unmask " + unit + ", then " + strings.TrimPrefix(remedy, "on the machine: ")
				}
				out = append(out, f)
			case rows[at][2] != "enabled" && rows[at][2] != "static" && rows[at][2] != "enabled-runtime" && rows[at][2] != "alias":
				out = append(out, problem(m.Hostname, "on the machine: systemctl enable "+unit, "%s runs, but won't after the next reboot: its unit is %s", called, rows[at][2]).fixedBy(start))
			}
		}
		if members == 0 {
			return skip("no machine that answers is in the cluster"), nil
		}
		return out, nil
	}
}

func unitsFailed(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.machines() {
		for _, row := range m.all("failed", 1) {
			out = append(out, warning(m.Hostname, "on the machine: journalctl -u "+shell.Word(row[0])+" -n 50, then systemctl restart "+shell.Word(row[0]), "the unit %s has failed", row[0]))
		}
	}
	return out, nil
}

func podSubnets(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.Inspection.Status.Machines {
		if m.State == cluster.StateReady && strings.HasPrefix(m.Message, "no pod starts") {
			out = append(out, problem(m.Host, "paictl cluster up --limit "+m.Host, "%s", m.Message))
		}
	}
	return out, nil
}

func clusterLock(_ context.Context, c *Cluster) ([]Finding, error) {
	if l := c.Inspection.Status.Lock; l != nil {
		return []Finding{note("", "%s works on the machines since %s: unfinished steps may look broken; --fix changes nothing on machines until it has ended", l.Owner, l.Since)}, nil
	}
	return nil, nil
}
