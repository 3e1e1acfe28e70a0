package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/settings"
)

func TestWhatARequestToAServiceIs(t *testing.T) {
	names := map[class]string{read: "read", signIn: "sign-in", write: "write", refused: "refused"}
	for _, c := range []struct{ service, method, path, want string }{
		{"prometheus", "GET", "/", "read"},
		{"prometheus", "HEAD", "/api/v1/query", "read"},
		{"prometheus", "POST", "/api/v1/query_range", "read"},
		{"prometheus", "POST", "/api/v1/query/", "read"},
		{"prometheus", "POST", "/api/v1/queryx", "refused"},
		{"prometheus", "POST", "/api/v1/admin/tsdb/delete_series", "refused"},
		{"prometheus", "GET", "/api/v1/admin/tsdb/snapshot", "refused"},
		{"prometheus", "PUT", "/API/v1/Admin/tsdb/snapshot", "refused"},
		{"prometheus", "GET", "/api/v1/admin", "refused"},
		{"prometheus", "GET", "/-/reload", "refused"},
		{"prometheus", "POST", "/-/quit", "refused"},
		{"prometheus", "GET", "/debug/pprof/heap", "refused"},
		{"prometheus", "POST", "/api/v1/write", "refused"},
		{"prometheus", "POST", "/api/v1/read/", "refused"},
		{"prometheus", "PUT", "/x", "refused"},
		{"alert-manager", "GET", "/api/v2/silences", "read"},
		{"alert-manager", "POST", "/api/v2/silences", "write"},
		{"alert-manager", "DELETE", "/api/v2/silence/0123", "write"},
		{"alert-manager", "POST", "/api/v2/alerts", "refused"},
		{"alert-manager", "POST", "/-/reload", "refused"},
		{"grafana", "POST", "/api/ds/query", "read"},
		{"grafana", "POST", "/api/dashboards/db", "write"},
		{"grafana", "GET", "/metrics", "refused"},
		{"grafana", "GET", "/api/datasources/proxy/uid/prometheus/api/v1/query", "refused"},
		{"grafana", "GET", "/api/datasources/uid/prometheus/resources/api/v1/labels", "read"},
		{"grafana", "GET", "/api/datasources/1/resources/api/v1/label/__name__/values", "read"},
		{"grafana", "GET", "/api/datasources/uid/prometheus/resources/api/v1/metadata/", "read"},
		{"grafana", "GET", "/api/datasources/uid/prometheus/health", "read"},
		{"grafana", "GET", "/api/datasources", "read"},
		{"grafana", "GET", "/api/datasources/uid/prometheus/resources/debug/pprof/heap", "refused"},
		{"grafana", "GET", "/API/Datasources/1/Resources/debug/pprof/heap", "refused"},
		{"grafana", "GET", "/api/datasources/uid/prometheus/resources/api/v1/admin/tsdb/snapshot", "refused"},
		{"grafana", "POST", "/api/datasources/uid/prometheus/resources/-/quit", "refused"},
		{"grafana", "GET", "/api/datasources/uid/prometheus/resources/api/v1/label/a/b/values", "refused"},
		{"grafana", "GET", "/api/datasources/uid/prometheus/resources/api/v1/label/values", "refused"},
		{"grafana", "GET", "/api/datasources/uid/resources/resources/-/quit", "refused"},
		{"grafana", "GET", "/api/datasources/uid/prometheus/resources", "refused"},
		{"grafana", "GET", "/apis/prometheus.datasource.grafana.app/v0alpha1/namespaces/default/datasources/prometheus/resource/-/quit", "refused"},
		{"grafana", "GET", "/apis/dashboard.grafana.app/v1beta1/namespaces/default/dashboards/resources", "read"},
		{"grafana", "POST", "/login", "sign-in"},
		{"grafana", "GET", "/login", "read"},
		{"ours", "POST", "/login", "write"},
		{"ours", "POST", "/anything", "write"},
		{"ours", "TRACE", "/", "refused"},
		{"ours", "CONNECT", "/", "refused"},
		{"ours", "PROPFIND", "/", "refused"},
		{"ours", "get", "/", "refused"},
	} {
		k := kindOf(c.service)
		assert.Equal(t, c.want, names[k.class(c.method, c.path)], "%s: %s %s", c.service, c.method, c.path)
	}
}

// An expensive request must not count as a request for a file.
func TestWhichRequestsReadAFile(t *testing.T) {
	for _, c := range []struct {
		service, method, path string
		want                  bool
	}{
		{"prometheus", "GET", "/", true}, {"prometheus", "HEAD", "/Assets/index.js", true}, {"prometheus", "GET", "/query", true}, {"prometheus", "GET", "/graph/", true},
		{"prometheus", "GET", "/api/v1/query", false}, {"prometheus", "GET", "/queryx", false}, {"prometheus", "POST", "/assets/x", false}, {"prometheus", "GET", "/federate", false}, {"prometheus", "GET", "/metrics", false},
		{"prometheus", "GET", "/consoles/x", false}, {"alert-manager", "GET", "/script.js", true}, {"alert-manager", "GET", "/api/v2/alerts", false},
		{"grafana", "GET", "/public/build/app.js", true}, {"grafana", "GET", "/api/ds/query", false}, {"grafana", "POST", "/login", false}, {"ours", "GET", "/x.js", false},
	} {
		k := kindOf(c.service)
		assert.Equal(t, c.want, k.file(c.method, c.path), "%s: %s %s", c.service, c.method, c.path)
	}
}

func one(t testing.TB, name, at string) *service {
	t.Helper()
	d, err := New(Options{Services: map[string]settings.Service{name: {URL: at, Page: "monitoring"}}})
	require.NoError(t, err)
	require.Len(t, d.services, 1)
	return d.services[0]
}

func TestAServiceSendsABrowserBelowItsOwnPathAlone(t *testing.T) {
	s := one(t, "prometheus", "http://prometheus:9090")
	asked := mustParse(t, "http://prometheus:9090/graph/x")
	for to, want := range map[string]string{
		"/query":                      "/prometheus/query",
		"/prometheus/query?a=b#c":     "/prometheus/query?a=b#c",
		"other":                       "/prometheus/graph/other",
		"../../../../etc":             "/prometheus/etc",
		"http://prometheus:9090/here": "/prometheus/here",
		"https://gpu.example.org/prometheus/query": "/prometheus/query",
		"/prometheusx":               "/prometheus/prometheusx",
		"https://evil.example/":      "",
		"//evil.example/x":           "",
		"/\\evil.example":            "",
		"javascript:alert(1)":        "",
		"http:evil.example":          "",
		"https://gpu.example.org/x":  "",
		"ftp://prometheus:9090/here": "",
	} {
		got, err := s.location(to, asked)
		if want == "" {
			assert.Error(t, err, "%s: %s", to, got)
			continue
		}
		require.NoError(t, err, to)
		assert.Equal(t, want, got, to)
	}
	below := one(t, "ours", "http://ours:80/base/")
	assert.Equal(t, "http://ours:80/base/x", below.address(mustParse(t, "/ours/x")).String())
	got, err := below.location("/base/y", mustParse(t, "http://ours:80/base/x"))
	require.NoError(t, err)
	assert.Equal(t, "/ours/y", got)
}

func TestCookiesOfAServiceStayBelowItsPath(t *testing.T) {
	s := one(t, "grafana", "http://grafana:3000")
	r := &http.Response{Header: http.Header{"Set-Cookie": {
		"session=1; Domain=example.org; Path=/; SameSite=None", "deep=2; Path=/grafana/deep; HttpOnly; SameSite=Strict", "__Host-pai-session=stolen; Path=/; Secure", "__secure-x=1", "no cookie at all",
	}}}
	s.cookies(r)
	assert.Equal(t, []string{"session=1; Path=/grafana/; Secure; SameSite=Lax", "deep=2; Path=/grafana/deep; HttpOnly; Secure; SameSite=Strict"}, r.Header.Values("Set-Cookie"))
}

func mustParse(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

// For any redirect of a service, the browser stays on this host and below the service's path.
func FuzzLocation(f *testing.F) {
	for _, s := range []string{"/query", "//x", "http://prometheus:9090/x", "..", "?a", "#b", "/prometheus/../api", "/prometheus//x", "%2e%2e/x", "a:b"} {
		f.Add(s)
	}
	s := one(f, "prometheus", "http://prometheus:9090")
	f.Fuzz(func(t *testing.T, to string) {
		got, err := s.location(to, mustParse(t, "http://prometheus:9090/a/b"))
		if err != nil {
			return
		}
		u, err := mustParse(t, "https://here.example/prometheus/a/b").Parse(got)
		if err != nil || u.Host != "here.example" || u.Scheme != "https" || !below(u.Path, "/prometheus/") {
			t.Fatalf("%q leads to %q: %v %v", to, got, u, err)
		}
	})
}

func TestARequestBringsAServiceNothingThatTellsWhoAsks(t *testing.T) {
	s := one(t, "grafana", "http://grafana:80")
	in := httptest.NewRequest(http.MethodGet, "/grafana/d/x?orgId=1", http.NoBody)
	for name, value := range map[string]string{
		"Authorization": "Bearer secret", "X-Forwarded-For": "10.0.0.1", "X-Webauth-User": "admin", "Forwarded": "for=10.0.0.1", "Accept": "text/html",
	} {
		in.Header.Set(name, value)
	}
	for name, value := range map[string]string{server.SessionCookie: "secret", "__Host-other": "secret", "__secure-other": "secret", "grafana_session": "its-own"} {
		in.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	out := &httputil.ProxyRequest{In: in, Out: in.Clone(t.Context())}
	(&Proxy{}).outward(s, out)
	assert.Equal(t, "http://grafana:80/d/x?orgId=1", out.Out.URL.String())
	assert.Equal(t, http.Header{"Accept": {"text/html"}, "User-Agent": {""}, "Cookie": {"grafana_session=its-own"}}, out.Out.Header)
}
