package catalogue

import (
	"slices"

	"github.com/openpai/paictl/pkg/server/settings"
)

// ServerService is the service with the server for users. The service's section has the same name.
const ServerService = "rest-server"

// aliases maps names of OpenPAI's services to the paictl services that replace them.
var aliases = map[string]string{"pylon": ServerService, "webportal": ServerService}

// Resolve returns the paictl service that replaces the given OpenPAI service. Resolve returns other names unchanged.
func Resolve(name string) string {
	if to, ok := aliases[name]; ok {
		return to
	}
	return name
}

// OwnAuthority reports whether the platform's own CA signs the server's certificate.
func OwnAuthority(s *Service) bool {
	tls, _ := s.Values["tls"].(map[string]any)
	name, _ := tls["secretName"].(string)
	acme, _ := s.Values["acme"].(map[string]any)
	public, _ := acme["enabled"].(bool)
	return name == "" && !public
}

// ResolveAll applies Resolve to each name for which known returns false. ResolveAll keeps known names, because a configuration may define a service
// with the name of an OpenPAI service.
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

func (c *Catalogue) resolve(names []string) []string {
	return ResolveAll(names, func(name string) bool { return c.services[name] != nil })
}

// keyExpose defines how users reach the server. With exposeHosts, the server listens on ports of machines. With exposeService, users connect to a
// Service, and with exposeIngress to an Ingress. keyProxies lists the networks of the Ingress controller.
const (
	keyExpose     = "expose"
	exposeHosts   = "hostPort"
	exposeService = "service"
	exposeIngress = "ingress"
	keyProxies    = "trustedProxies"
)

// configureServer sets the server's addresses and the number of replicas. If the server listens on machines, each machine of the placement runs a
// replica.
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

// checkServer rejects an Ingress without trusted proxies. Without trusted proxies, all requests have the address of the Ingress controller, and all
// users share the limits per address. An attacker who guesses passwords would then lock out all users.
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

const masterRole = "master"

// serverOnHosts reports whether users reach the server at ports of machines.
func (b *builder) serverOnHosts() bool {
	s := b.services[ServerService]
	expose, said := s.Values[keyExpose].(string)
	return !said || expose == exposeHosts
}

// BehindService reports whether users reach the server through a Service.
func BehindService(s *Service) bool { return s.Values[keyExpose] == exposeService }

// ProxyURL returns the address at which the server proxies the pages of other services. The configuration defines this address. ProxyURL returns ""
// if the address is unknown.
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

// ServerAddresses returns the host names and addresses of the server, and the port. The best address comes first. The values of the service define
// the addresses.
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
