package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/secret"
)

// proxyURL matches URLs that contain only printable ASCII characters, because environment files and shells interpret other characters.
var proxyURL = regexp.MustCompile(`^[!-~]+$`)

// hasPassword reports whether a URL contains a password. It returns true for a URL that can't be parsed, because such a URL may contain a password.
func hasPassword(s secret.String) bool {
	u, err := url.Parse(s.Reveal())
	if err != nil {
		return s.IsSet() // it can't be ruled out that there is a password
	}
	_, set := u.User.Password()
	return set
}

// checkProxy checks the proxy settings. Its findings never contain a URL, because the URL may contain a password.
func (k *checker) checkProxy() {
	proxy := k.c.Kubernetes.Kubernetes.Proxy
	r, p := k.place("proxy")
	r.failIf(badProxy(proxy.HTTP), p.With("http"), "kubernetes/proxy", "write http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT with % escapes for other characters than letters and digits")
	r.failIf(badProxy(proxy.HTTPS), p.With("https"), "kubernetes/proxy", "write http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT with % escapes for other characters than letters and digits")
	switch {
	case proxy.HTTP.IsSet() && !proxy.HTTPS.IsSet():
		r.warn(p.With("http"), "kubernetes/proxy", "only http has a proxy, but registries use https: images are pulled without a proxy", "write the same address under https")
	case len(proxy.NoProxy) > 0 && !proxy.HTTP.IsSet() && !proxy.HTTPS.IsSet():
		r.warn(p.With("no-proxy"), "kubernetes/no-proxy", "there is no proxy", "write http and https, or remove no-proxy")
	}
	for i, entry := range proxy.NoProxy {
		r.failIf(badNoProxy(entry), p.With("no-proxy", i), "kubernetes/no-proxy", "write a host, .example.org for a domain, an address or a range such as 10.0.0.0/8")
	}
}

func badProxy(s secret.String) string {
	if !s.IsSet() {
		return ""
	}
	text := s.Reveal()
	u, err := url.Parse(text)
	switch {
	case err != nil || !proxyURL.MatchString(text) || strings.ContainsAny(text, "\"'\\`$#"):
		return "this is not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "the proxy's address doesn't begin with http:// or https://"
	case u.Port() != "" && badPortText(u.Port()):
		return "the proxy's port is not one (1 to 65535)"
	case u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "":
		return "the proxy's address is not a host and a port"
	}
	return ""
}

func badPortText(text string) bool {
	n, err := strconv.Atoi(text)
	return err != nil || badPort(n) != ""
}

func badNoProxy(entry string) string {
	if _, err := netip.ParseAddr(entry); err == nil {
		return ""
	}
	if _, err := netip.ParsePrefix(entry); err == nil {
		return ""
	}
	host, port, _ := strings.Cut(entry, ":")
	host = strings.TrimPrefix(strings.TrimPrefix(host, "*"), ".")
	if len(validation.IsDNS1123Subdomain(strings.ToLower(host))) > 0 || port != "" && badPortText(port) {
		return fmt.Sprintf("%q is not a host, domain, address or range", secret.Address(entry))
	}
	return ""
}
