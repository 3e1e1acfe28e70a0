package config

import (
	"cmp"
	"fmt"
	"slices"
)

// HostPort is a TCP port on which a part of the cluster listens on the machines.
type HostPort struct {
	Port int
	User string // "kubelet"

	extra fieldPath // the field of extra that sets it, empty for a default
}

// apiPortUser is the value of HostPort.User for the port of the API server.
const apiPortUser = "the API server"

// IsNodePort reports whether a port is in the range of the ports that Kubernetes allocates for services.
func IsNodePort(port int) bool { return port >= 30000 && port <= 32767 }

// defaultPorts returns the default values of the ports that the section extra can change.
func defaultPorts() map[string]int {
	return map[string]int{
		"kubelet.port": 10250, "kubelet.healthzPort": 10248, "kubelet.readOnlyPort": 0,
		"kube-proxy.metricsBindAddress": 10249, "kube-proxy.healthzBindAddress": 10256,
	}
}

// HostPorts returns the ports on which the machines listen before any service runs. Fixed ports come first. The ports that the section extra can
// change follow.
func (c *Cluster) HostPorts() []HostPort {
	out := []HostPort{{Port: 22, User: "SSH"}, {Port: 53, User: "DNS"}}
	ssh := []int{c.Layout.SSH.Port}
	for _, m := range c.Layout.MachineList {
		ssh = append(ssh, c.Layout.SSHFor(m).Port)
	}
	slices.Sort(ssh)
	for _, p := range slices.Compact(ssh) {
		if p != 0 && p != 22 {
			out = append(out, HostPort{Port: p, User: "SSH"})
		}
	}
	k := c.Kubernetes.Kubernetes
	out = append(out,
		HostPort{Port: 2379, User: "etcd"}, HostPort{Port: 2380, User: "etcd"}, HostPort{Port: 2381, User: "etcd's metrics"},
		HostPort{Port: 10257, User: "kube-controller-manager"}, HostPort{Port: 10259, User: "kube-scheduler"},
		HostPort{Port: cmp.Or(k.APIServerPort, defaultAPIPort), User: apiPortUser},
	)
	if c.EndpointIsLocal() {
		out = append(out, HostPort{Port: LocalAPIPort, User: "pai-api-proxy"})
	}
	for _, name := range []string{"port", "healthzPort", "readOnlyPort"} {
		out = append(out, movable(extraKubelet, name, k.Extra.Kubelet, number)...)
	}
	for _, name := range []string{"metricsBindAddress", "healthzBindAddress"} {
		out = append(out, movable(extraKubeProxy, name, k.Extra.KubeProxy, addressPort)...)
	}
	return out
}

func movable(program, field string, settings map[string]any, read func(any) (int, bool)) []HostPort {
	if port, ok := read(settings[field]); ok {
		if port == 0 && field != "port" {
			return nil // 0 disables it
		}
		return []HostPort{{Port: port, User: fmt.Sprintf("%s (extra.%s.%s)", program, program, field), extra: fieldPath{program, field}}}
	}
	if port := defaultPorts()[program+"."+field]; port != 0 {
		return []HostPort{{Port: port, User: program}}
	}
	return nil
}

// HostPortUser returns the part of the cluster that listens on a port of the machines. The second result is false if no part uses the port.
func (c *Cluster) HostPortUser(port int) (string, bool) {
	for _, p := range c.HostPorts() {
		if p.Port == port {
			return p.User, true
		}
	}
	return "", false
}

// fixedPortUser returns the part of the cluster that listens on a port and can't use another port. It ignores the API server.
func (c *Cluster) fixedPortUser(port int) (string, bool) {
	for _, p := range c.HostPorts() {
		if p.Port == port && p.User != apiPortUser && len(p.extra) == 0 {
			return p.User, true
		}
	}
	return "", false
}
