package assembly_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/portal"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/openapi"
	"github.com/openpai/paictl/pkg/server/pages"
	"github.com/openpai/paictl/pkg/server/proxy"
	"github.com/openpai/paictl/pkg/server/settings"
	v2 "github.com/openpai/paictl/pkg/server/v2"
	v3 "github.com/openpai/paictl/pkg/server/v3"
)

func proxied(t testing.TB) *proxy.Proxy {
	t.Helper()
	d, err := proxy.New(proxy.Options{Services: withDoor().Door})
	require.NoError(t, err)
	return d
}

// pageRoutes returns the routes at the origin of other services' pages.
func pageRoutes(t testing.TB) []server.Route {
	t.Helper()
	return proxied(t).Routes()
}

// routes returns the routes at the server's own origin.
func routes(t testing.TB) []server.Route {
	t.Helper()
	d := proxied(t)
	all := slices.Concat(v2.Routes("test"), v3.Routes("test"), pages.Routes(d.Links()))
	described, err := openapi.Route("test", all)
	require.NoError(t, err)
	return slices.Concat(all, []server.Route{described}, portal.Routes(), d.OwnRoutes())
}

func TestEveryRouteIsDescribed(t *testing.T) {
	for _, r := range append(routes(t), pageRoutes(t)...) {
		at := r.Method + " " + r.Path
		assert.True(t, r.Out != nil || r.Media != "" || r.Status == http.StatusSwitchingProtocols, "%s: say what it answers, by Out or Media", at)
		assert.Regexp(t, `^[A-Z].*[^. ]$`, r.Summary, at)
	}
}

// withDoor returns settings with proxied services that can't be reached.
func withDoor() *settings.Settings {
	s := settings.Default()
	const nowhere = "http://127.0.0.1:1"
	s.Door = map[string]settings.Service{"prometheus": {URL: nowhere, Page: "monitoring"}, "alert-manager": {URL: nowhere, Page: "alerts"}, "ours": {URL: nowhere, Page: "administrators"}}
	s.Alerts = settings.AlertManager{URL: nowhere}
	return s
}

// later lists the rules without routes, and the rules that actions check in addition to a route's rule.
var later = []string{
	"jobs.count", "job.ssh",
	"storage.secrets",
	"page.monitoring.write", "page.internal", "job.after", "job.forget", "template.official",
}

func TestEveryRouteHasARule(t *testing.T) {
	used := map[string]bool{}
	for _, r := range append(routes(t), pageRoutes(t)...) {
		_, known := rules.Find(r.Rule)
		assert.True(t, known, "%s %s: there is no rule %q", r.Method, r.Path, r.Rule)
		assert.NotEmpty(t, r.Summary, "%s %s", r.Method, r.Path)
		used[r.Rule] = true
	}
	for _, rule := range rules.Table() {
		assert.NotEqual(t, used[rule.ID], slices.Contains(later, rule.ID), "the rule %s has a route, or is named as one that comes later", rule.ID)
	}
	assert.NotPanics(t, func() { server.New(server.Options{Routes: routes(t)}).Proxied(pageRoutes(t)) }, "two routes meet")
}

// Clients that aren't signed in can only read the methods to sign in.
func TestWhatIsOpenIsListedHere(t *testing.T) {
	var open []string
	for _, r := range append(routes(t), pageRoutes(t)...) {
		if r.Rule == "open" {
			open = append(open, r.Method+" "+r.Path)
		}
	}
	assert.ElementsMatch(t, []string{
		" /api/v2", " /api/v2/info", "GET /healthz", "GET /api/v2/authn/info", "POST /api/v2/authn/basic/login", "GET /api/v3/version", "GET /api/v3/openapi.json", "POST /oauth/token", "POST /oauth/revoke", "POST /api/v3/first", "GET /first", "GET /sign-in", "POST /api/v3/session", "DELETE /api/v3/session",
		"GET /api/v3/signin", "POST /api/v3/signin/oidc/{issuer}", "GET /api/v3/signin/oidc/{issuer}/return", "GET /api/v2/authn/oidc/login", "GET /api/v2/authn/oidc/logout", "POST /api/v3/signin/password", "POST /api/v3/signin/approval", "POST /oauth/device_authorization", "GET /oauth/authorize", "GET /device",
		" /prometheus/{path...}", " /alert-manager/{path...}", " /ours/{path...}", "GET /.ticket/{service}",
		// The portal's pages are the same for all users. The content comes from the API.
		"GET /{$}", "GET /jobs", "GET /jobs/{user}/{name}", "GET /submit", "GET /templates", "GET /templates/{template}", "GET /queue", "GET /machines", "GET /usage", "GET /profile", "GET /admin", "GET /admin/{page}", "GET /admin/{page}/{name}", "GET /portal/{version}/{file}",
		"GET /index.html", "GET /home.html", "GET /dashboard.html", "GET /virtual-clusters.html", "GET /user-profile.html", "GET /user-view.html", "GET /batch-register.html", "GET /plugin.html",
		"GET /cluster-view/services.html", "GET /cluster-view/hardware.html", "GET /cluster-view/k8s.html", "GET /cluster-view/hardware/detail.html",
		"GET /submit.html", "GET /submit_demo.html", "GET /submit_v1.html", "GET /job-list.html", "GET /job-detail.html", "GET /task-attempt.html", "GET /job-event.html", "GET /job-transfer.html",
	}, open)
}
