package catalogue

import (
	"fmt"
	"maps"
	"strings"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// checkHostPorts reports conflicts between ports of a machine. On a conflict, the program that starts second fails. If the kubelet fails, the machine
// isn't usable.
func (b *builder) checkHostPorts() {
	taken := map[int]string{}
	for _, name := range sorted(maps.Keys(b.services)) {
		s := b.services[name]
		if s.Upstream != nil || !s.Enabled {
			continue // the ports of an upstream chart aren't known before it is fetched
		}
		if name == ServerService && !b.serverOnHosts() {
			continue
		}
		c := b.embedded[name]
		for _, value := range c.hostPorts {
			port, ok := portAt(merge(c.Values, s.Values), value)
			if !ok {
				continue // the schema has reported it
			}
			p := at(name)
			for step := range strings.SplitSeq(value, ".") {
				p = p.With(step)
			}
			user, used := b.cfg.HostPortUser(port)
			if !used {
				user, used = taken[port]
			}
			switch {
			case used:
				b.fail(p, "services/port", fmt.Sprintf("port %d of the machines is used by %s", port, user), "choose a port that is free on the machines")
			case config.IsNodePort(port):
				b.fail(p, "services/port", fmt.Sprintf("port %d is in the range of node ports (30000 to 32767)", port), "choose a port outside of this range")
			default:
				taken[port] = b.placed(name, p)
			}
		}
	}
}

// placed describes a service and the field that sets its port.
func (b *builder) placed(name string, p strictyaml.Path) string {
	f := b.cfg.Finding(config.ServicesFile, strictyaml.Error, p, "", "", "")
	return fmt.Sprintf("%s (%s, line %d)", name, p, f.Line)
}

// portAt returns the integer at a dotted path, and reports whether an integer exists at this path.
func portAt(values map[string]any, path string) (int, bool) {
	name, rest, deeper := strings.Cut(path, ".")
	if deeper {
		m, _ := values[name].(map[string]any)
		return portAt(m, rest)
	}
	switch n := values[name].(type) {
	case int:
		return n, true
	case int64:
		return int(n), true
	case float64:
		return int(n), n == float64(int(n))
	}
	return 0, false
}
