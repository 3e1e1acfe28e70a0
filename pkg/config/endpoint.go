package config

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	"github.com/openpai/paictl/pkg/layout"
)

// LocalAPI returns the HOST:PORT of the API proxy on each machine.
func LocalAPI() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(LocalAPIPort)) }

// Endpoint returns the HOST:PORT at which the machines reach the API. It returns LocalAPI if the machines use their local proxies.
func (c *Cluster) Endpoint() string {
	k := c.Kubernetes.Kubernetes
	port := strconv.Itoa(cmp.Or(k.APIServerPort, defaultAPIPort))
	masters := c.ControlPlane()
	switch {
	case k.APIEndpoint == APIEndpointLocal:
		return LocalAPI()
	case k.APIEndpoint != "":
		if host, p, err := net.SplitHostPort(k.APIEndpoint); err == nil {
			return net.JoinHostPort(host, p)
		}
		return net.JoinHostPort(k.APIEndpoint, port)
	case k.LoadBalanceIP != "" && !slices.ContainsFunc(masters, func(m layout.Machine) bool { return m.HostIP == k.LoadBalanceIP }):
		return net.JoinHostPort(k.LoadBalanceIP, port)
	case len(masters) > 1:
		return LocalAPI()
	case len(masters) == 1:
		return net.JoinHostPort(masters[0].HostIP, port)
	}
	return net.JoinHostPort(k.LoadBalanceIP, port)
}

// EndpointIsLocal reports whether each machine reaches the API through a proxy on the machine.
func (c *Cluster) EndpointIsLocal() bool { return c.Endpoint() == LocalAPI() }
