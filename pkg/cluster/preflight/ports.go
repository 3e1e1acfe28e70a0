package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// checkPorts fails if another program uses a port that a program of the cluster needs.
func checkPorts(s *Host) []Finding {
	want := map[int]Port{}
	for _, l := range Ports(s.Cluster, s.Node) {
		want[l.Number] = l
	}
	var out []Finding
	for _, row := range s.Probe.All("port") {
		if len(row) < 3 {
			continue
		}
		port, err := strconv.Atoi(row[0])
		l, known := want[port]
		if err != nil || !known || s.ignored("Port-"+row[0]) {
			continue
		}
		pid, program := row[1], row[2]
		switch {
		case s.Touched && (program == l.Program || program == ""):
			continue // one of the cluster's own programs
		case program == l.Program && len(s.foreign()) > 0:
			continue // checkKubernetes reports another Kubernetes
		}
		message := fmt.Sprintf("port %d, which %s needs, is in use", port, l.Purpose)
		remedy := fmt.Sprintf("see which program listens on it: ss -ltnp 'sport = :%d'; stop it, or move it to another port", port)
		if program != "" {
			message = fmt.Sprintf("port %d, which %s needs, is in use by %s (pid %s)", port, l.Purpose, program, pid)
			remedy = fmt.Sprintf("stop %s on the machine, or move it to another port: systemctl status %s shows its service", program, pid)
		}
		out = append(out, s.fail("port", message, remedy))
	}
	return out
}

// checkReach fails if the machine can't reach the control plane because of a firewall or a missing route. A refused connection is no problem, because
// the API starts later.
func checkReach(s *Host) []Finding {
	var out []Finding
	for _, row := range s.Probe.All("reach") {
		if len(row) < 2 || row[1] == "open" || row[1] == "refused" {
			continue
		}
		target, why := row[0], row[1]
		host, port, _ := strings.Cut(target, ":")
		remedy := fmt.Sprintf("let %s open TCP port %s on %s: check the firewalls on both machines and between them, and: ip route get %s", s.HostIP, port, host, host)
		if why == "timeout" {
			why = "no answer within three seconds"
		}
		to := slices.IndexFunc(s.Cluster.Nodes, func(n *Node) bool { return n.HostIP == host })
		if to < 0 {
			out = append(out, s.warn("reach", fmt.Sprintf("cannot reach the API's address %s: %s", target, why),
				"set up the load balancer of api-endpoint (or load-balance-ip) before you install the cluster; "+remedy))
			continue
		}
		n := s.Cluster.Nodes[to]
		// The run skips machines that don't respond to paictl, so such a machine must not stop the run.
		if slices.ContainsFunc(s.others, func(o *Host) bool { return o.Node == n }) {
			out = append(out, s.fail("reach", fmt.Sprintf("cannot reach %s (%s): %s", n.Hostname, target, why), remedy))
		}
	}
	return out
}

// checkNetworks fails if the networks for pods or services overlap with networks of the machine.
func checkNetworks(s *Host) []Finding {
	k := s.Cluster.Kubernetes
	var out []Finding
	for _, c := range []struct{ field, cidrs string }{
		{"pod-cidr", k.PodCIDR}, {"service-cluster-ip-range", k.ServiceClusterIPRange},
	} {
		for cidr := range strings.SplitSeq(c.cidrs, ",") {
			p, err := netip.ParsePrefix(strings.TrimSpace(cidr))
			if err != nil {
				continue // config validate reports this
			}
			if what := s.clash(p.Masked()); what != "" {
				out = append(out, s.fail("network", fmt.Sprintf("%s %s overlaps %s", c.field, p, what),
					fmt.Sprintf("choose another %s in kubernetes-configuration.yaml", c.field)))
			}
		}
	}
	return out
}

// clash describes a network or route of the machine that overlaps with the network p, or returns "" if none overlaps. It ignores routes of paictl's
// CNI plugin.
func (s *Host) clash(p netip.Prefix) string {
	ours := func(dev string) bool {
		return s.Touched && (dev == "cni0" || strings.HasPrefix(dev, "flannel") || strings.HasPrefix(dev, "veth") || strings.HasPrefix(dev, "kube-"))
	}
	for _, a := range s.Facts.Addresses {
		if q, err := netip.ParsePrefix(a.CIDR); err == nil && q.Overlaps(p) && !ours(a.Interface) {
			return fmt.Sprintf("the machine's network %s (%s)", q.Masked(), a.Interface)
		}
	}
	for _, row := range s.Probe.All("route") {
		if len(row) < 2 || ours(row[1]) {
			continue
		}
		q, err := netip.ParsePrefix(row[0])
		if ip, perr := netip.ParseAddr(row[0]); err != nil && perr == nil {
			q, err = ip.Prefix(ip.BitLen())
		}
		// Only a route to addresses inside p is a conflict, because the pods' own route takes precedence over a wider route. After the first "cluster up",
		// the node itself has such routes to the pods of other nodes.
		if err == nil && q.Bits() >= p.Bits() && p.Contains(q.Addr()) && !s.Touched {
			return fmt.Sprintf("the machine's route to %s (%s)", q, row[1])
		}
	}
	return ""
}

// checkSecurity warns about active firewalls and SELinux. Firewalls and SELinux may block pods, and paictl doesn't configure them.
func checkSecurity(s *Host) []Finding {
	var out []Finding
	k := s.Cluster.Kubernetes
	ports := "10250/tcp, and 8472/udp between all machines"
	if s.ControlPlane {
		ports = fmt.Sprintf("%d, 2379, 2380, 10250/tcp, and 8472/udp between all machines", k.APIServerPort)
	}
	if s.active("ufw") {
		out = append(out, s.warn("firewall", "ufw is active: it must allow "+ports,
			fmt.Sprintf("ufw disable, or ufw allow from the machines' network and from %s, and ufw default allow routed", k.PodCIDR)))
	}
	if s.active("firewalld") {
		out = append(out, s.warn("firewall", "firewalld is active: it must allow "+ports,
			fmt.Sprintf("systemctl disable --now firewalld, or firewall-cmd --permanent --zone=trusted --add-source=%s and the machines' network", k.PodCIDR)))
	}
	if s.Probe.Value("selinux") == "1" {
		out = append(out, s.warn("selinux", "SELinux is enforcing: it may prevent pods from using their volumes",
			"setenforce 0 and SELINUX=permissive in /etc/selinux/config, or install the policy container-selinux"))
	}
	return out
}
