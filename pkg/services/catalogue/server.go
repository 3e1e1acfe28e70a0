package catalogue

import (
	"slices"

	"github.com/openpai/paictl/pkg/server/settings"
)

// ServerService is the server for the cluster's users, and the name of its section.
const ServerService = "rest-server"

// aliases are names of services of the original whose function one of paictl's services has.
var aliases = map[string]string{"pylon": ServerService, "webportal": ServerService}

// Resolve returns the service for a name of the original, or the name itself.
func Resolve(name string) string {
	if to, ok := aliases[name]; ok {
		return to
	}
	return name
}

// OwnAuthority reports whether the platform's own CA signed a server's certificate.
func OwnAuthority(s *Service) bool {
	tls, _ := s.Values["tls"].(map[string]any)
	name, _ := tls["secretName"].(string)
	acme, _ := s.Values["acme"].(map[string]any)
	public, _ := acme["enabled"].(bool)
	return name == "" && !public
}

// ResolveAll resolves names that known doesn't have, because a configuration may have its own service with such a name.
func ResolveAll(names []string, known func(string) bool) []string {
	var out []string
	for _, name := range names {
		if to := Resolve(name); !known(name) && known(to) {
			name = to
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// resolve replaces the original's names of services with paictl's names.
func (c *Catalogue) resolve(names []string) []string {
	return ResolveAll(names, func(name string) bool { return c.services[name] != nil })
}

// keyExpose determines how people reach the server: with exposeHosts it listens on machines, with exposeService it is reached through a Service,
// with exposeIngress through an Ingress, whose controller's network is in keyProxies.
const (
	keyExpose     = "expose"
	exposeHosts   = "hostPort"
	exposeService = "service"
	exposeIngress = "ingress"
	keyProxies    = "trustedProxies"
)

// configureServer sets the server's addresses, and places a pod on each of these machines.
func (b *builder) configureServer() {
	s := b.services[ServerService]
	if s == nil || s.Upstream != nil || !s.Enabled {
		return
	}
	machines := machinesOf(b.cfg, s.Placement)
	computed := map[string]any{"replicas": int64(min(2, max(1, len(machines))))}
	if b.serverOnHosts() {
		computed["replicas"] = int64(min(20, max(1, len(machines))))
	}
	addresses := []any{}
	for _, m := range machines {
		if m.HostIP != "" { // it may be unknown if someone else installed Kubernetes
			addresses = append(addresses, m.HostIP)
		}
	}
	if k := b.cfg.Kubernetes.Kubernetes; k.APIVIP != "" && b.cfg.IsManaged() && slices.Equal(s.Placement, []string{masterRole}) {
		addresses = append([]any{k.APIVIP}, addresses...) // one of these machines has it
	}
	computed["addresses"] = addresses
	s.Values = mergeComputed(computed, s.Values)
}

// checkServer rejects an Ingress that isn't among the trusted proxies: all requests would have the address of its controller, so that all people
// would share limits, and be locked out when someone guesses passwords.
func (b *builder) checkServer() {
	s := b.services[ServerService]
	if s == nil || s.Upstream != nil || !s.Enabled || s.Values[keyExpose] != exposeIngress {
		return
	}
	if proxies, _ := s.Values[keyProxies].([]any); len(proxies) == 0 {
		b.fail(at(ServerService, keyExpose), "services/proxies", "expose: ingress needs trustedProxies: otherwise all requests come from one address, and failed logins of one person lock out everyone",
			"set "+ServerService+"."+keyProxies+" to the network of the Ingress controller, such as [10.0.0.11/32]: programs in it can claim any address, so keep it small")
	}
}

// masterRole is the role of the machines of the control plane.
const masterRole = "master"

// serverOnHosts reports whether people reach the server through ports of machines.
func (b *builder) serverOnHosts() bool {
	s := b.services[ServerService]
	expose, said := s.Values[keyExpose].(string)
	return !said || expose == exposeHosts
}

// BehindService reports whether people reach the server through a Service.
func BehindService(s *Service) bool { return s.Values[keyExpose] == exposeService }

// ProxyURL returns the address of other services' pages, which the server proxies, from the configuration; "" if it isn't set.
func ProxyURL(s *Service) string {
	hosts, _ := ServerAddresses(s)
	values := s.Values
	if s.Chart != nil {
		values = merge(s.Chart.Values, s.Values)
	}
	proxy, _ := values["proxy"].(map[string]any)
	name, _ := proxy["name"].(string)
	if name != "" {
		hosts = []string{name}
	}
	port := 443
	switch values[keyExpose] {
	case exposeHosts:
		port, _ = portAt(values, "service.hostPorts.proxy")
	case exposeService:
		port, _ = portAt(values, "service.proxyPort")
	default:
		if name == "" {
			return ""
		}
	}
	if len(hosts) == 0 || port == 0 {
		return ""
	}
	return settings.Address(hosts[0], port)
}

// ServerAddresses returns the host names and addresses of the server for users, according to the configuration, the best first, and its port.
func ServerAddresses(s *Service) (hosts []string, port int) {
	values := s.Values
	if s.Chart != nil {
		values = merge(s.Chart.Values, s.Values)
	}
	for _, key := range []string{"names", "addresses"} {
		list, _ := values[key].([]any)
		for _, v := range list {
			if host, ok := v.(string); ok {
				hosts = append(hosts, host)
			}
		}
	}
	switch values[keyExpose] {
	case exposeHosts:
		port, _ = portAt(values, "service.hostPorts.https")
	case exposeService:
		port, _ = portAt(values, "service.port")
	default:
		port = 443
	}
	return hosts, port
}
