package server_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

// signedIn returns a server whose routes treat each request from a browser as a request with ann's cookie.
func signedIn() *server.Server {
	caller := func(*app.App, *http.Request) (app.Caller, error) {
		return app.Caller{Subject: rules.Subject{Name: "ann", Grants: rules.Grants{Administrator: true, AllVCs: true}}}, nil
	}
	serve := func(c *server.Call) error { return c.Text("secret") }
	route := func(method, path string, change func(*server.Route)) server.Route {
		r := server.Route{Method: method, Path: path, Rule: "token.check", Summary: "Answers", Media: "text/plain", Browser: true, Caller: caller, Serve: serve}
		change(&r)
		return r
	}
	return server.New(server.Options{App: &app.App{}, Log: slog.New(slog.DiscardHandler), Routes: []server.Route{
		route("GET", "/api", func(*server.Route) {}), route("POST", "/api", func(*server.Route) {}),
		route("GET", "/page", func(r *server.Route) { r.Navigation = true }), route("POST", "/page", func(r *server.Route) { r.Navigation = true }),
		route("POST", "/begin", func(r *server.Route) { r.Rule = "open" }),
		route("GET", "/shell", func(r *server.Route) { r.Browser, r.Limit = false, server.Limit{Stream: true} }),
	}})
}

func TestOnlyTheServersOwnPagesAskForABrowsersPerson(t *testing.T) {
	s := signedIn()
	const own, evil = "https://gpu.example.org", "https://evil.example"
	link := []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket"}
	for _, c := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/api", nil, 200},
		{"GET", "/api", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"GET", "/api", []string{"Sec-Fetch-Site", "none"}, 200},
		{"GET", "/api", []string{"Origin", own}, 200},
		{"GET", "/api", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"HEAD", "/api", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"GET", "/api", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/api", []string{"Origin", own + ":8444"}, 403},
		{"GET", "/api", []string{"Origin", evil}, 403},
		{"GET", "/api", []string{"Origin", "null"}, 403},
		{"GET", "/api", append([]string{"Sec-Fetch-Site", "same-site"}, link...), 403},
		{"POST", "/api", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"POST", "/api", []string{"Origin", evil}, 403},
		{"POST", "/api", []string{"Origin", own}, 200},
		{"GET", "/page", append([]string{"Sec-Fetch-Site", "same-site"}, link...), 200},
		{"GET", "/page", append([]string{"Sec-Fetch-Site", "cross-site"}, link...), 200},
		{"GET", "/page", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"GET", "/page", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, 403},
		{"POST", "/page", append([]string{"Sec-Fetch-Site", "same-site"}, link...), 403},
		{"POST", "/begin", []string{"Origin", evil}, 403},
		{"POST", "/begin", []string{"Origin", evil, "Authorization", "Bearer none"}, 403},
		{"GET", "/shell", upgrade, 200},
		{"GET", "/shell", append([]string{"Origin", own}, upgrade...), 200},
		{"GET", "/shell", append([]string{"Origin", own + ":8444"}, upgrade...), 403},
		{"GET", "/shell", append([]string{"Origin", "http://gpu.example.org"}, upgrade...), 403},
		{"GET", "/shell", append([]string{"Origin", evil}, upgrade...), 403},
		{"GET", "/shell", append([]string{"Origin", "null"}, upgrade...), 403},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, own+c.path, http.NoBody)
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		assert.Equal(t, c.want, w.Code, "%s %s %v: %s", c.method, c.path, c.headers, w.Body)
		h := w.Header()
		if c.path != "/shell" {
			assert.Empty(t, h.Get("Access-Control-Allow-Origin"), "%s %s %v", c.method, c.path, c.headers)
		}
		assert.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
		assert.Equal(t, "default-src 'none'; frame-ancestors 'none'", h.Get("Content-Security-Policy"))
		assert.Equal(t, "DENY", h.Get("X-Frame-Options"))
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
	}
}

func TestTheOriginOfOtherServicesPagesAnswersNoForeignScript(t *testing.T) {
	s := signedIn().Proxied([]server.Route{{Path: "/page/{path...}", Rule: "open", Summary: "Answers", Media: "text/plain", Serve: func(c *server.Call) error { return c.Text(c.Request.Method) }}})
	for path, want := range map[string]int{"/page/x": 200, "/api": 404, "/sign-in": 404, "/": 404} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, path, http.NoBody)
		r.Header.Set("Origin", "https://gpu.example.org")
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, path)
		assert.Empty(t, w.Header().Get("Access-Control-Allow-Origin"), path)
		assert.Empty(t, w.Header().Get("Access-Control-Allow-Methods"), path)
	}
}
