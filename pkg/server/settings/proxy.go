package settings

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
)

// Proxy is the origin of the pages of other services. It differs from the server's own origin. Otherwise a script in one of these pages could use the
// API with the rights of the user who opened the page.
type Proxy struct {
	// Name is a host name that only these pages use. "" means the server's own names and addresses, with Port.
	Name string `json:"name"`
	// Port is the port of the proxied pages. If Port is 0, people can't open the pages.
	Port int `json:"port"`
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

func (s *Settings) checkProxy() (wrong []error) {
	p := s.Proxy
	if p.Port < 0 || p.Port > 65535 {
		wrong = append(wrong, fmt.Errorf("proxy.port: %d is not a port", p.Port))
	}
	if p.Name == "" {
		if p.Port == s.Port {
			wrong = append(wrong, fmt.Errorf("proxy.port: %d is the port of the API: pages of other services need another one, or a host name (proxy.name)", p.Port))
		}
		return wrong
	}
	if _, err := netip.ParseAddr(p.Name); err == nil || !hostName.MatchString(p.Name) {
		wrong = append(wrong, fmt.Errorf("proxy.name: %q is not a host name such as pages.example.org", p.Name))
	}
	if slices.ContainsFunc(slices.Concat(s.Names, s.Addresses, s.ServiceNames), func(host string) bool { return sameHost(host, p.Name) }) {
		wrong = append(wrong, fmt.Errorf("proxy.name: %q is a name of the server itself: pages of other services need another one", p.Name))
	}
	if s.URL() == "" {
		wrong = append(wrong, fmt.Errorf("proxy.name: the server has no name or address to which browsers return (names)"))
	}
	return wrong
}

// ProxyOrigin returns the origin of proxied pages, or "" if the pages have no address. The argument is the host at which the browser has reached one
// of the two origins.
func (s *Settings) ProxyOrigin(host string) string {
	switch name := hostOf(host); {
	case s.Proxy.Port == 0:
		return ""
	case s.Proxy.Name != "":
		return Address(s.Proxy.Name, s.Proxy.Port)
	case name != "":
		return Address(name, s.Proxy.Port)
	}
	return ""
}

// OwnOrigin returns the server's own origin. The argument is the host at which the browser has reached one of the two origins.
func (s *Settings) OwnOrigin(host string) string {
	if name := hostOf(host); s.Proxy.Name == "" && name != "" {
		return Address(name, s.Port)
	}
	return s.URL()
}

// hostOf returns the name or address in a Host header, or "" if the header contains neither.
func hostOf(header string) string {
	name := (&url.URL{Host: header}).Hostname()
	if _, err := netip.ParseAddr(name); err == nil || hostName.MatchString(name) {
		return name
	}
	return ""
}
