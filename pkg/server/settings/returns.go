package settings

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxReturnPage limits the length of a page's address.
const maxReturnPage = 1024

// ReturnPage returns an error if a page may not receive tokens because of its address. hosts and ports are the addresses of the server and of the
// proxied pages.
func ReturnPage(page string, hosts []string, ports ...int) error {
	u, err := url.Parse(page)
	bad := func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`?#\`, c) }
	if err != nil || len(page) > maxReturnPage || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.ContainsFunc(page, bad) {
		return fmt.Errorf("%q is not of the form https://HOST/PATH without a query: otherwise others on the network, or on the same machine, could take the tokens of another page", page)
	}
	at := 443
	if text := u.Port(); text != "" {
		if at, err = strconv.Atoi(text); err != nil || at < 1 || at > 65535 {
			return fmt.Errorf("%q has no port from 1 to 65535", page)
		}
	}
	if slices.Contains(ports, at) && slices.ContainsFunc(hosts, func(h string) bool { return sameHost(h, u.Hostname()) }) {
		return fmt.Errorf("%q is a page of this server, or of the services that it proxies: their scripts could read the tokens", page)
	}
	return nil
}

// sameHost reports whether two names or addresses are equal, in any spelling.
func sameHost(a, b string) bool {
	x, wrong := netip.ParseAddr(a)
	y, err := netip.ParseAddr(b)
	if wrong == nil && err == nil {
		return x.Unmap() == y.Unmap()
	}
	return strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(b, "."))
}

func (s *Settings) checkReturnPages() (wrong []error) {
	for _, page := range s.SignIn.ReturnPages {
		if err := ReturnPage(page, s.Hosts(), s.Port, s.Proxy.Port); err != nil {
			wrong = append(wrong, fmt.Errorf("signIn.returnPages: %w", err))
		}
	}
	return wrong
}
