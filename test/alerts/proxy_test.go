package alerts

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	peoplerules "github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

const (
	aSilence = `{"matchers":[{"name":"alertname","value":"Always","isRegex":false}],"startsAt":"2026-01-01T00:00:00Z","endsAt":"2099-01-01T00:00:00Z","createdBy":"a","comment":"c"}`
	aQuery   = "/prometheus/api/v1/query?query=up"
)

// visit sends a request as a browser does, and returns the response. It doesn't follow redirects.
func visit(t *testing.T, s *servertest.Server, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	if strings.HasPrefix(path, "/") {
		path = s.URL + path
	}
	r, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	browser := *s.Client
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := browser.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// This test uses the real Prometheus and Alertmanager, which are behind the whole server with TLS.
func TestTheDoorLetsThroughWhoIsGrantedThePage(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	m := startMonitoring(t, map[string]string{"prometheus": "externalUrl: https://gpu.example.org/prometheus/\n", "alert-manager": "externalUrl: https://gpu.example.org/alert-manager/\n"})
	var heard http.Header
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = r.Header
		_, _ = io.Copy(io.Discard, r.Body)
		h := w.Header()
		for _, name := range []string{"Access-Control-Allow-Origin", "Strict-Transport-Security", "Service-Worker-Allowed", "Www-Authenticate", "X-Powered-By"} {
			h.Set(name, "*")
		}
		h["Set-Cookie"] = []string{"theme=light; Path=/; Domain=example.org", server.SessionCookie + "=stolen; Path=/; Secure"}
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, "https://evil.example/", http.StatusFound)
		}
	}))
	t.Cleanup(echo.Close)
	o := settings.Default()
	o.Door = map[string]settings.Service{
		"prometheus":    {URL: "http://" + m.at["prometheus"], Page: "monitoring", Password: true},
		"alert-manager": {URL: "http://" + m.at["alert-manager"], Page: "alerts", Password: true},
		"exporter":      {URL: "http://" + m.at["node-exporter"], Page: "administrators", Password: true},
		"echo":          {URL: echo.URL, Page: "administrators"},
		"unknown":       {URL: "http://" + m.at["node-exporter"], Page: "administrators"},
	}
	s := servertest.Start(t, c, servertest.Options{Settings: o, AccessFile: filepath.Join(m.access, "password")})
	for name, pages := range map[string][]string{"sees": {"monitoring"}, "warned": {"alerts"}, "warden": {"alerts", "monitoring-write"}, "writes": {"monitoring-write"}, "none": nil} {
		s.Group("door-"+name, func(g *v1.GroupSpec) { g.Pages = pages })
		s.Person("door-"+name, "door-"+name)
	}
	s.Person("door-root", v1.GroupAdministrators)
	tokens := map[string]string{"": ""}
	for _, name := range []string{"sees", "warned", "warden", "writes", "none", "root"} {
		tokens[name] = s.SignIn("door-" + name)
	}
	m.alerting(t)

	t.Run("each path has its rule", func(t *testing.T) {
		for _, c := range []struct {
			method, path, body string
			want               map[string]int
		}{
			{"GET", aQuery, "", map[string]int{"": 401, "sees": 200, "warned": 403, "writes": 403, "none": 403, "root": 200}},
			{"GET", "/rest-server" + aQuery, "", map[string]int{"": 401, "sees": 200, "none": 403}},
			{"GET", "/prometheus/metrics", "", map[string]int{"": 401, "sees": 200, "none": 403}},
			{"POST", "/prometheus/api/v1/query", "query=up", map[string]int{"": 401, "sees": 200, "none": 403, "root": 200}},
			{"POST", "/prometheus/api/v1/admin/tsdb/delete_series?match[]=up", "", map[string]int{"": 401, "sees": 403, "root": 403}},
			{"POST", "/prometheus/-/quit", "", map[string]int{"": 401, "sees": 403, "root": 403}},
			{"GET", "/prometheus/debug/pprof/heap", "", map[string]int{"": 401, "sees": 403, "root": 403}},
			{"POST", "/prometheus/api/v1/write", "", map[string]int{"sees": 403, "root": 403}},
			{"GET", "/alert-manager/api/v2/alerts", "", map[string]int{"": 401, "sees": 403, "warned": 200, "warden": 200, "writes": 403, "none": 403, "root": 200}},
			{"POST", "/alert-manager/api/v2/silences", aSilence, map[string]int{"": 401, "sees": 403, "warned": 403, "warden": 200, "writes": 403, "none": 403, "root": 200}},
			{"POST", "/alert-manager/api/v2/alerts", "[]", map[string]int{"": 401, "warden": 403, "root": 403}},
			{"POST", "/alert-manager/-/reload", "", map[string]int{"": 401, "warden": 403, "root": 403}},
			{"GET", "/exporter/metrics", "", map[string]int{"": 401, "sees": 403, "warden": 403, "root": 200}},
			{"TRACE", aQuery, "", map[string]int{"sees": 403, "root": 403}},
			{"GET", "/unknown/metrics", "", map[string]int{"root": 401}}, // it has no password to show
		} {
			for who, want := range c.want {
				a := s.DoPage(c.method, c.path, tokens[who], c.body, "Content-Type", kindOf(c.body))
				assert.Equal(t, want, a.Status, "%s %s as %q: %s", c.method, c.path, who, a.Body)
			}
		}
		a := s.DoPage("GET", "/prometheus/api/v1/query?query=count(up==1)", tokens["sees"], "")
		assert.Contains(t, a.Body, `"status":"success"`)
	})
	t.Run("an application token needs the scope", func(t *testing.T) {
		p, err := s.People.Person("door-warden")
		require.NoError(t, err)
		for _, c := range []struct {
			scopes      []peoplerules.Scope
			read, write int
		}{{[]peoplerules.Scope{"read"}, 200, 403}, {[]peoplerules.Scope{"submit"}, 403, 403}, {[]peoplerules.Scope{"read", "admin"}, 200, 200}} {
			made, err := s.Tokens.Application(t.Context(), p, token.New{Scopes: c.scopes})
			require.NoError(t, err)
			assert.Equal(t, c.read, s.DoPage("GET", "/alert-manager/api/v2/silences", made.Token.Reveal(), "").Status, c.scopes)
			assert.Equal(t, c.write, s.DoPage("POST", "/alert-manager/api/v2/silences", made.Token.Reveal(), aSilence, "Content-Type", "application/json").Status, c.scopes)
		}
	})
	t.Run("a path that could be read in two ways goes nowhere", func(t *testing.T) {
		for _, path := range []string{
			"/prometheus/../api/v2/users", "/prometheus/%2e%2e/api/v1/admin/x", "/prometheus/api/v1/%2e%2e/v1/admin/tsdb/snapshot", "/prometheus/api%2fv1%2fadmin", "/prometheus//-/quit", "/prometheus/x/../-/quit",
			"/prometheus/\\-\\quit", "/prometheus/%5c..%5c-/quit", "/prometheus/%00", "/prometheus/%252e%252e/x", "/prometheus/./-/quit", "/prometheus/%c0%ae%c0%ae/-/quit",
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.ProxyURL, nil)
			require.NoError(t, err)
			r.URL.Opaque = path // unescaped
			r.Header.Set("Authorization", "Bearer "+tokens["root"])
			resp, err := s.Client.Do(r)
			require.NoError(t, err)
			_ = resp.Body.Close()
			assert.Equal(t, 400, resp.StatusCode, path)
		}
		for _, path := range []string{"/Prometheus/API/V1/Admin/tsdb/snapshot", "/prometheus/-/Quit/", "/PROMETHEUS/DEBUG/pprof/"} {
			assert.Equal(t, 403, s.DoPage("POST", path, tokens["root"], "").Status, path)
		}
	})

	session, seen := "", "" // cookies
	t.Run("a browser signs in and comes back", func(t *testing.T) {
		r := visit(t, s, "GET", "/prometheus/graph?g0.expr=up", "")
		assert.Equal(t, 303, r.StatusCode)
		assert.Equal(t, s.ProxyURL+"/prometheus/graph?g0.expr=up", r.Header.Get("Location"))
		r = visit(t, s, "GET", r.Header.Get("Location"), "")
		assert.Equal(t, 303, r.StatusCode)
		assert.True(t, strings.HasPrefix(r.Header.Get("Location"), s.URL+"/api/v3/proxied/prometheus/ticket?browser="), r.Header.Get("Location"))
		require.Len(t, r.Cookies(), 1)
		browser, forTicket := r.Cookies()[0], r.Header.Get("Location")
		r = visit(t, s, "GET", forTicket, "")
		assert.Equal(t, 303, r.StatusCode)
		assert.True(t, strings.HasPrefix(r.Header.Get("Location"), "/sign-in?to=%2Fapi%2Fv3%2Fproxied"), r.Header.Get("Location"))
		r = visit(t, s, "GET", r.Header.Get("Location"), "")
		assert.Equal(t, 200, r.StatusCode)
		assert.Contains(t, r.Header.Get("Content-Security-Policy"), "default-src 'none'")
		for to, back := range map[string]string{"/prometheus/graph?g0.expr=up": "/prometheus/graph?g0.expr=up", "//evil.example": "", "https://evil.example/": "", "/\\\\evil.example": ""} {
			r = visit(t, s, "POST", "/api/v3/session", `{"username":"door-sees","password":"`+servertest.Password+`","to":"`+to+`"}`)
			require.Equal(t, 200, r.StatusCode)
			got := map[string]string{}
			require.NoError(t, json.NewDecoder(r.Body).Decode(&got))
			assert.Equal(t, map[string]string{"name": "door-sees", "to": back}, got)
		}
		made := r.Cookies()
		require.Len(t, made, 1)
		assert.Equal(t, server.SessionCookie, made[0].Name)
		assert.True(t, made[0].HttpOnly && made[0].Secure && made[0].SameSite == http.SameSiteLaxMode && made[0].Domain == "" && made[0].Path == "/")
		session = server.SessionCookie + "=" + made[0].Value

		r = visit(t, s, "GET", forTicket, "", "Cookie", session)
		assert.Equal(t, 303, r.StatusCode)
		r = visit(t, s, "GET", r.Header.Get("Location"), "", "Cookie", browser.Name+"="+browser.Value)
		assert.Equal(t, "/prometheus/graph?g0.expr=up", r.Header.Get("Location"))
		require.Len(t, r.Cookies(), 1)
		seen = r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
		r = visit(t, s, "GET", s.ProxyURL+"/prometheus", "", "Cookie", seen)
		assert.Equal(t, 308, r.StatusCode)
		assert.Equal(t, "/prometheus/", r.Header.Get("Location"))
		r = visit(t, s, "GET", s.ProxyURL+"/prometheus/", "", "Cookie", seen)
		assert.Equal(t, 302, r.StatusCode, "Prometheus' own redirect")
		assert.True(t, strings.HasPrefix(r.Header.Get("Location"), "/prometheus/"), r.Header.Get("Location"))
		assert.Empty(t, r.Header.Get("Access-Control-Allow-Origin"))
		assert.Equal(t, "SAMEORIGIN", r.Header.Get("X-Frame-Options"))
		assert.Equal(t, 200, visit(t, s, "GET", s.ProxyURL+aQuery, "", "Cookie", seen).StatusCode)
		r = visit(t, s, "GET", "/api/v3/session", "", "Cookie", session)
		says := map[string]any{}
		require.NoError(t, json.NewDecoder(r.Body).Decode(&says))
		assert.Equal(t, map[string]any{"name": "door-sees", "pages": []any{map[string]any{"name": "Prometheus", "url": s.ProxyURL + "/prometheus/"}}}, says)
	})
	t.Run("each cookie is good for its own origin, and for its own pages", func(t *testing.T) {
		query := s.ProxyURL + aQuery
		assert.Equal(t, 401, visit(t, s, "GET", "/api/v2/jobs", "", "Cookie", session).StatusCode)
		assert.Equal(t, 303, visit(t, s, "GET", query, "", "Cookie", session).StatusCode)
		assert.Equal(t, 303, visit(t, s, "GET", query, "", "Cookie", seen+"x").StatusCode)
		assert.Equal(t, 303, visit(t, s, "GET", query, "", "Cookie", seen+"; "+strings.Split(seen, "=")[0]+"=other").StatusCode, "two cookies are none")
		assert.Equal(t, 401, visit(t, s, "GET", query, "", "Cookie", seen, "Authorization", "Bearer none").StatusCode, "who shows a token is judged by it")
		for _, headers := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "null"}} {
			headers = append(headers, "Cookie", session+"; "+seen)
			assert.Equal(t, 403, visit(t, s, "POST", s.ProxyURL+"/prometheus/api/v1/query", "query=up", headers...).StatusCode, headers)
			assert.Equal(t, 403, visit(t, s, "DELETE", "/api/v3/session", "", headers...).StatusCode, headers)
			assert.Equal(t, 403, visit(t, s, "POST", "/api/v3/session", `{}`, headers...).StatusCode, "nor does another page sign anyone in: %v", headers)
		}
	})
	t.Run("a service isn't told who asks, and can't be told wrong", func(t *testing.T) {
		r := visit(t, s, "POST", s.ProxyURL+"/echo/x?a=b", "body", "Authorization", "Bearer "+tokens["root"], "Cookie", session+"; "+seen+"; theme=dark; __Secure-x=1", "Host", "evil.example",
			"X-Forwarded-For", "1.1.1.1", "X-Forwarded-Host", "evil.example", "Forwarded", "for=1.1.1.1", "X-Webauth-User", "admin", "X-Remote-User", "admin", "X-Http-Method-Override", "DELETE",
			"X-Scope-Orgid", "other", "Proxy-Authorization", "Basic eA==", "X-Pai-Token", "x", "Origin", s.ProxyURL, "Referer", "https://evil.example/", "Te", "trailers", "Accept-Language", "en")
		assert.Equal(t, 200, r.StatusCode)
		assert.Equal(t, http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}, "Accept-Encoding": {"gzip"}, "Accept-Language": {"en"}, "Content-Length": {"4"}, "Cookie": {"theme=dark"}, "User-Agent": {"Go-http-client/2.0"}}, heard)
		assert.Equal(t, []string{"theme=light; Path=/echo/; Secure; SameSite=Lax"}, r.Header.Values("Set-Cookie"))
		for _, name := range []string{"Access-Control-Allow-Origin", "Service-Worker-Allowed", "Www-Authenticate", "X-Powered-By"} {
			assert.Empty(t, r.Header.Get(name), name)
		}
		assert.Equal(t, []string{"max-age=31536000"}, r.Header.Values("Strict-Transport-Security"), "the server's own")
		assert.Equal(t, 502, visit(t, s, "GET", s.ProxyURL+"/echo/elsewhere", "", "Authorization", "Bearer "+tokens["root"]).StatusCode)
		assert.Equal(t, 413, s.DoPage("POST", "/echo/x", tokens["root"], strings.Repeat("x", 2<<20)).Status)
	})
	t.Run("signing out ends the session", func(t *testing.T) {
		r := visit(t, s, "DELETE", "/api/v3/session", "", "Cookie", session)
		assert.Equal(t, 200, r.StatusCode)
		require.Len(t, r.Cookies(), 1)
		assert.Negative(t, r.Cookies()[0].MaxAge)
		s.Eventually("the token is gone", func() bool { return visit(t, s, "GET", s.ProxyURL+aQuery, "", "Cookie", seen).StatusCode == 303 })
	})
	t.Run("a service that doesn't take the password is no sign-in", func(t *testing.T) {
		require.NoError(t, os.WriteFile(filepath.Join(m.access, "password"), []byte("another"), 0o600))
		a := s.DoPage("GET", aQuery, tokens["sees"], "")
		assert.Equal(t, 502, a.Status, a.Body)
		assert.Empty(t, a.Header.Get("WWW-Authenticate"))
		require.NoError(t, os.WriteFile(filepath.Join(m.access, "password"), []byte(metricsPassword), 0o600))
		assert.Equal(t, 200, s.DoPage("GET", aQuery, tokens["sees"], "").Status)
	})
	printed := s.Printed.String()
	assert.NotContains(t, printed, metricsPassword)
	for _, secret := range tokens {
		assert.False(t, secret != "" && strings.Contains(printed, secret))
	}
	assert.Contains(t, printed, `"actor":"door-warden","actorUID":`)
	assert.Contains(t, printed, `"verb":"write","kind":"page","object":"POST /alert-manager/api/v2/silences","outcome":"done"`)
	assert.Contains(t, printed, `"verb":"write","kind":"page","object":"POST /prometheus/-/quit","outcome":"refused"`)
}

// kindOf returns the media type of a request body.
func kindOf(body string) string {
	if strings.HasPrefix(body, "query=") {
		return "application/x-www-form-urlencoded"
	}
	return "application/json"
}
