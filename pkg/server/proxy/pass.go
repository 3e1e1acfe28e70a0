package proxy

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/wire"
)

// passed lists the headers that are forwarded to a service. They describe the response that a browser accepts, but don't identify the caller or the
// caller's address. Other headers aren't forwarded, including X-Forwarded-For and all headers that proxies use to identify users.
var passed = []string{"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
	"Range", "User-Agent", "X-Requested-With", "X-Grafana-Org-Id", "X-Grafana-Device-Id", "X-Dashboard-Uid", "X-Panel-Id", "X-Datasource-Uid", "X-Plugin-Id"}

// dropped lists response headers that aren't forwarded. They apply to the whole origin, which all proxied pages share, or describe the server that
// responds.
var dropped = []string{"Www-Authenticate", "Proxy-Authenticate", "Authentication-Info", "Strict-Transport-Security", "Public-Key-Pins", "Clear-Site-Data", "Alt-Svc",
	"Service-Worker-Allowed", "Refresh", "Content-Location", "Server", "X-Powered-By", "Nel", "Report-To", "Reporting-Endpoints", "Set-Cookie2",
	"Cross-Origin-Resource-Policy", server.OpenerPolicy, "Cross-Origin-Opener-Policy-Report-Only", "X-Request-Id", "X-Content-Type-Options", "Referrer-Policy", "X-Frame-Options"}

const (
	dialTime = 5 * time.Second
	idleTime = 90 * time.Second
	// connections limits the number of connections to one service.
	connections = 64
)

func (d *Proxy) proxy(s *service) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { d.outward(s, p) },
		ModifyResponse: s.inward,
		ErrorHandler:   d.away(s),
		Transport:      &asked{d, s, transport()},
		ErrorLog:       log.New(io.Discard, "", 0), // errors of interrupted answers, which the access log has
	}
}

// transport returns a transport for services. It ignores the proxies of the environment, because the services are inside the cluster.
func transport() *http.Transport {
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: answerTime, IdleConnTimeout: idleTime,
		MaxIdleConnsPerHost: 8, MaxConnsPerHost: connections, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
	}
}

// asked adds the platform's password to a request. It is the last step before the request is sent, so that no other code reads the password.
type asked struct {
	door *Proxy
	s    *service
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.s.password {
		password, err := a.door.o.Password()
		if err != nil || !password.IsSet() {
			return nil, errors.New("the password of the platform's services can't be read")
		}
		r.SetBasicAuth(access.User, password.Reveal())
	}
	return a.next.RoundTrip(r)
}

// outward builds the request to the service from the browser's request.
func (d *Proxy) outward(s *service, p *httputil.ProxyRequest) {
	p.Out.URL = s.address(p.In.URL)
	p.Out.Host = ""
	h := http.Header{}
	for _, name := range passed {
		if v := p.In.Header.Values(name); len(v) > 0 {
			h[name] = slices.Clone(v)
		}
	}
	if len(h["User-Agent"]) == 0 {
		h["User-Agent"] = []string{""} // otherwise Go adds its own
	}
	for _, c := range p.In.Cookies() {
		if !ours(c.Name) {
			h.Add("Cookie", (&http.Cookie{Name: c.Name, Value: c.Value}).String()) //nolint:gosec // what a browser sends has no attributes
		}
	}
	if all := h["Cookie"]; len(all) > 1 {
		h.Set("Cookie", strings.Join(all, "; "))
	}
	p.Out.Header, p.Out.Trailer = h, nil
}

// address converts a URL of this server to the URL of the service.
func (s *service) address(in *url.URL) *url.URL {
	out := *s.base
	out.Path = strings.TrimSuffix(s.base.Path, "/") + strings.TrimPrefix(in.Path, s.prefix())
	out.RawPath, out.RawQuery, out.ForceQuery = "", in.RawQuery, in.ForceQuery
	return &out
}

// ours reports whether a cookie belongs to the server, or has a prefix that only the server may use.
func ours(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc([]string{"__host-", "__secure-", "__http-"}, func(prefix string) bool { return strings.HasPrefix(lower, prefix) })
}

// inward adapts a response of the service for the browser.
func (s *service) inward(r *http.Response) error {
	if s.password && (r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusProxyAuthRequired) {
		return errors.New("it refuses the password of the platform's services")
	}
	if to := r.Header.Get("Location"); to != "" {
		here, err := s.location(to, r.Request.URL)
		if err != nil {
			return err
		}
		r.Header.Set("Location", here)
	}
	s.cookies(r)
	for name := range r.Header {
		if strings.HasPrefix(name, "Access-Control-") || slices.Contains(dropped, name) {
			r.Header.Del(name)
		}
	}
	r.Header.Set("X-Frame-Options", "SAMEORIGIN")
	if r.Header.Get("Cache-Control") == "" {
		r.Header.Set("Cache-Control", "private, no-cache")
	}
	r.Trailer = nil
	return nil
}

// location converts the address of a service's redirect to an address below this server's path for the service. Services that are configured with
// this path already use it. A service may not redirect a browser to another host.
func (s *service) location(to string, asked *url.URL) (string, error) {
	elsewhere := &wire.Error{Status: http.StatusBadGateway, Code: wire.CodeUnavailable, Message: s.title() + " sends the browser to another host"}
	u, err := url.Parse(to)
	if err != nil || strings.Contains(to, "\\") || u.Opaque != "" || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" {
		return "", elsewhere
	}
	path := asked.ResolveReference(u).Path
	// A service that is configured with this server's address may use any of the server's names. So compare only the path.
	known := below(path, s.prefix()+"/")
	if u.Host != "" && u.Host != s.base.Host && !known {
		return "", elsewhere
	}
	if !known {
		path = s.prefix() + "/" + strings.TrimLeft(strings.TrimPrefix(path, strings.TrimSuffix(s.base.Path, "/")), "/")
	}
	return (&url.URL{Path: path, RawQuery: u.RawQuery, Fragment: u.Fragment}).String(), nil
}

// cookies limits the service's cookies to the service's path on this host.
func (s *service) cookies(r *http.Response) {
	all := r.Cookies()
	r.Header.Del("Set-Cookie")
	for _, c := range all {
		if ours(c.Name) {
			continue
		}
		c.Domain, c.Secure = "", true
		if !below(c.Path, s.prefix()+"/") {
			c.Path = s.prefix() + "/"
		}
		if c.SameSite == http.SameSiteNoneMode || c.SameSite == http.SameSiteDefaultMode || c.SameSite == 0 {
			c.SameSite = http.SameSiteLaxMode
		}
		if text := c.String(); text != "" {
			r.Header.Add("Set-Cookie", text)
		}
	}
}
