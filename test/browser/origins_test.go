package browser

import (
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

// planted is a script that an attacker has put into a page of a proxied service, such as a dashboard.
//
//go:embed testdata/planted.js
var planted string

func TestAScriptInAProxiedPageGetsNoAnswerFromTheAPI(t *testing.T) {
	ctx := open(t)
	var cookies []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookies = append(cookies, r.Header.Values("Cookie")...)
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Set-Cookie", server.SessionCookie+"=upstream; Path=/; Secure; HttpOnly")
		_, _ = io.WriteString(w, "<!doctype html><title>dashboard</title><p id=page>dashboard</p>")
	}))
	t.Cleanup(service.Close)
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	o := settings.Default()
	o.Door = map[string]settings.Service{"dash": {URL: service.URL, Page: "monitoring"}}
	s := servertest.Start(t, c, servertest.Options{Settings: o})
	s.Group("browser-watchers", func(g *v1.GroupSpec) { g.Pages = []string{"monitoring"} })
	s.Person("browser-wilma", "browser-watchers")

	require.NoError(t, chromedp.Do(ctx,
		chromedp.Navigate(s.URL+"/dash/deep?a=b#part"),
		chromedp.WaitVisible(chromedp.CSS("input[name=username]"))))
	script[int](t, ctx, `document.forms[0].elements.username.value = "browser-wilma"; document.forms[0].elements.password.value = "`+servertest.Password+`"; document.forms[0].requestSubmit(); 0`)
	require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible(chromedp.CSS("#page"))))
	assert.Equal(t, s.ProxyURL+"/dash/deep?a=b#part", script[string](t, ctx, "location.href"), "the sign-in leads to the page, and no ticket is in its address")
	assert.Empty(t, script[string](t, ctx, "document.referrer"))

	before := len(s.Printed.String())
	got := script[map[string]string](t, ctx, strings.ReplaceAll(planted, "SERVER", s.URL))
	t.Log(got)
	assert.Equal(t, map[string]string{
		"own page": "200", // the script runs, and has the cookie of its service
		"fetch":    "refused", "fetch without CORS": "refused", "fetch with a body": "refused", "fetch of a ticket": "refused", "XHR": "refused", "WebSocket": "refused", "EventSource": "refused",
		"script": "refused", "image": "refused", "iframe": "nothing to read", "frame of the sign-in": "nothing to read", "window": "nothing to read", "window of the sign-in": "nothing to read",
		"API at its own origin": "404", "session's cookie": "not seen", "form": "sent",
	}, got)

	requests, person := 0, false
	for line := range strings.SplitSeq(s.Printed.String()[before:], "\n") {
		var r struct {
			Msg, Path, User string
			Status          int
		}
		if json.Unmarshal([]byte(line), &r) != nil || r.Msg != "request" || !strings.HasPrefix(r.Path, "/api/") || r.Path == "/api/v3/session" {
			continue // the sign-in page asks for the session, in its own window
		}
		requests++
		assert.GreaterOrEqual(t, r.Status, 400, line)
		person = person || r.User != "" && !strings.HasPrefix(r.Path, "/api/v3/proxied/")
	}
	assert.Greater(t, requests, 5, "they reached the server")
	assert.False(t, person, "the server didn't look at the session for them")
	for _, line := range cookies {
		assert.NotContains(t, line, "pai-", "the service gets no cookie of the server")
	}

	// The script hasn't changed the session, and the server's own page still gets responses.
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(s.URL+"/sign-in"), chromedp.WaitVisible(chromedp.CSS("#out"))))
	assert.Equal(t, "browser-wilma", script[string](t, ctx, `fetch("/api/v3/whoami").then(r => r.json()).then(a => a.name)`))

	// After the person has signed out, the script can't begin another session for the person either.
	require.Equal(t, 200, script[int](t, ctx, `fetch("/api/v3/session", {method: "DELETE"}).then(r => r.status)`))
	token := s.SignIn("browser-wilma")
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(s.ProxyURL+"/nowhere")))
	script[string](t, ctx, `document.cookie = "`+server.SessionCookie+`=`+token+`; Secure; Path=/"`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(s.URL+"/sign-in"), chromedp.WaitVisible(chromedp.CSS("#form"))))
	assert.Equal(t, 401, script[int](t, ctx, `fetch("/api/v3/whoami").then(r => r.status)`), "a script can't plant the session's cookie")
}
