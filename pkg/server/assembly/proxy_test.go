package assembly_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

// visitor sends requests like a browser. It stores cookies, which all ports of a host share. It follows redirects one at a time.
type visitor struct {
	t *testing.T
	*http.Client
}

func newVisitor(t *testing.T, of *servertest.Server) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &visitor{t, &http.Client{Transport: of.Client.Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// visited is a response with the address of its request.
type visited struct {
	status   int
	header   http.Header
	body, at string
}

// opens requests an address as if a person follows a link. It doesn't follow redirects.
func (b *visitor) opens(at string, headers ...string) visited {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, at, http.NoBody)
	require.NoError(b.t, err)
	for name, value := range map[string]string{"Accept": "text/html,*/*;q=0.8", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "same-site"} {
		r.Header.Set(name, value)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.Do(r)
	require.NoError(b.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	return visited{resp.StatusCode, resp.Header, string(text), at}
}

// goes follows redirects until it gets a page, or until a redirect has a path with the prefix stop. It returns all steps.
func (b *visitor) goes(at, stop string) []visited {
	b.t.Helper()
	var steps []visited
	for range 8 {
		v := b.opens(at)
		steps = append(steps, v)
		to := v.header.Get("Location")
		if to == "" {
			return steps
		}
		next, err := mustParse(b.t, at).Parse(to)
		require.NoError(b.t, err)
		at = next.String()
		if stop != "" && strings.HasPrefix(next.Path, stop) {
			return append(steps, visited{at: at})
		}
	}
	b.t.Fatalf("it is redirected without end: %v", steps)
	return nil
}

// ticket opens a page without a cookie for the page. It returns the address with the ticket, and doesn't open this address.
func (b *visitor) ticket(page string) string {
	b.t.Helper()
	b.Jar.SetCookies(mustParse(b.t, page), []*http.Cookie{{Name: server.CookiePrefix + "page-ours", Path: "/", MaxAge: -1}})
	steps := b.goes(page, "/.ticket/")
	last := steps[len(steps)-1]
	require.Zero(b.t, last.status, "%d %s", last.status, last.body)
	return last.at
}

// signsIn begins a session of a person in the browser.
func (b *visitor) signsIn(s *servertest.Server, name string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, s.URL+"/api/v3/session", strings.NewReader(`{"username":"`+name+`","password":"`+servertest.Password+`"}`))
	require.NoError(b.t, err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := b.Do(r)
	require.NoError(b.t, err)
	_ = resp.Body.Close()
	require.Equal(b.t, 200, resp.StatusCode)
}

// twoServices starts a server with two services. It returns the server's settings, and a function that returns the header of the next request to a
// service.
func twoServices(t *testing.T) (*house, *settings.Settings, func() http.Header) {
	t.Helper()
	heard := make(chan http.Header, 100)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Clone()
		h := w.Header()
		h["Set-Cookie"] = []string{server.SessionCookie + "=planted; Path=/; Secure; HttpOnly", "__Host-pai-session=planted; Path=/; Secure", server.CookiePrefix + "page-ours=planted; Path=/; Secure", "__HOST-pai-x=1; Path=/; Secure", "theme=dark"}
		h.Set("Content-Security-Policy", "default-src 'self'")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		_, _ = io.WriteString(w, "page "+r.URL.Path)
	}))
	t.Cleanup(service.Close)
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	o := settings.Default()
	o.Door = map[string]settings.Service{"ours": {URL: service.URL, Page: "monitoring"}, "other": {URL: service.URL, Page: "alerts"}}
	h := houseOn(t, c, servertest.Options{Settings: o})
	h.Group("watchers", func(g *v1.GroupSpec) { g.Pages = []string{"monitoring", "alerts"} })
	h.person(t, "wilma", "watchers")
	h.person(t, "willi", "watchers")
	return h, o, func() http.Header {
		select {
		case got := <-heard:
			return got
		case <-time.After(10 * time.Second):
			t.Fatal("the service wasn't asked")
			return nil
		}
	}
}

func TestABrowserGetsToAProxiedPageByATicket(t *testing.T) {
	h, _, heard := twoServices(t)
	b := newVisitor(t, h.Server)

	steps := b.goes(h.URL+"/ours/deep?a=b%2Fc", "")
	require.Len(t, steps, 4, steps)
	assert.Equal(t, h.ProxyURL+"/ours/deep?a=b%2Fc", steps[0].header.Get("Location"), "from the old path to the new place")
	assert.True(t, strings.HasPrefix(steps[2].header.Get("Location"), "/sign-in?to=%2Fapi%2Fv3%2Fproxied%2Fours%2Fticket"), steps[2].header.Get("Location"))
	back := mustParse(t, steps[2].header.Get("Location")).Query().Get("to")
	require.NotEmpty(t, server.Local(back), "the sign-in page returns there")

	b.signsIn(h.Server, "wilma")
	steps = b.goes(h.URL+back, "")
	require.Len(t, steps, 3, steps)
	last := steps[2]
	assert.Equal(t, 200, last.status, last.body)
	assert.Equal(t, "page /deep", last.body)
	assert.Equal(t, h.ProxyURL+"/ours/deep?a=b%2Fc", last.at, "the address has no ticket")
	ticket := mustParse(t, steps[1].at).Query().Get("ticket")
	require.NotEmpty(t, ticket)
	for _, v := range steps[:2] {
		assert.Equal(t, "no-referrer", v.header.Get("Referrer-Policy"), v.at)
		assert.Equal(t, "no-store", v.header.Get("Cache-Control"), v.at)
		assert.Empty(t, v.body, v.at)
	}
	assert.Equal(t, http.Header{"Accept": {"text/html,*/*;q=0.8"}, "Accept-Encoding": {"gzip"}, "User-Agent": {"Go-http-client/2.0"}}, heard(), "a service gets no cookie of the server")
	assert.Equal(t, []string{"theme=dark; Path=/ours/; Secure; SameSite=Lax"}, last.header.Values("Set-Cookie"), "nor does it plant one")
	assert.Equal(t, []string{"default-src 'self'"}, last.header.Values("Content-Security-Policy"), "the service's own")
	assert.Equal(t, []string{"same-origin"}, last.header.Values("Cross-Origin-Resource-Policy"))
	assert.Equal(t, []string{"SAMEORIGIN"}, last.header.Values("X-Frame-Options"))

	v := b.opens(h.ProxyURL + "/ours/again")
	assert.Equal(t, 200, v.status, "it needs no other ticket")
	assert.Contains(t, heard()["Cookie"], "theme=dark")
	assert.Equal(t, 303, b.opens(h.ProxyURL+"/other/").status, "the cookie is for that service")
	assert.Equal(t, 303, b.opens(h.ProxyURL+"/OTHER/").status)
	v = b.opens(h.ProxyURL + "/api/v3/whoami")
	assert.Equal(t, 404, v.status, "no API there")
	for _, cross := range [][]string{{"Sec-Fetch-Dest", "iframe"}, {"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe"}} {
		assert.Equal(t, 403, b.opens(h.ProxyURL+"/ours/again", cross...).status, cross)
	}

	printed := h.Printed.String()
	assert.NotContains(t, printed, ticket)
	assert.Contains(t, printed, `"query":"ticket=…&to=…"`)
	u := mustParse(t, h.URL)
	for _, c := range b.Jar.Cookies(u) {
		if strings.HasPrefix(c.Name, server.CookiePrefix) {
			assert.NotContains(t, printed, c.Value, c.Name)
		}
	}

	t.Run("the session's cookie opens no page, and the page's cookie no API", func(t *testing.T) {
		for _, c := range b.Jar.Cookies(u) {
			alone := newVisitor(t, h.Server)
			alone.Jar.SetCookies(u, []*http.Cookie{c})
			want := 303
			if c.Name == server.CookiePrefix+"page-ours" {
				want = 200
			}
			assert.Equal(t, want, alone.opens(h.ProxyURL+"/ours/x").status, c.Name)
			alone.Jar.SetCookies(u, []*http.Cookie{{Name: server.CookiePrefix + "page-other", Value: c.Value, Path: "/", Secure: true}})
			assert.Equal(t, 303, alone.opens(h.ProxyURL+"/other/x").status, "under the name of another service: %s", c.Name)
			alone.Jar.SetCookies(u, []*http.Cookie{{Name: server.SessionCookie, Value: c.Value, Path: "/", Secure: true}})
			want = 401
			if c.Name == server.SessionCookie {
				want = 200
			}
			assert.Equal(t, want, alone.opens(h.URL+"/api/v3/whoami", "Sec-Fetch-Site", "same-origin", "Accept", "*/*").status, c.Name)
		}
	})
	t.Run("rights are checked at each request", func(t *testing.T) {
		_, err := h.People.Update(t.Context(), "wilma", func(u *v1.UserSpec) error { u.Groups = nil; return nil })
		require.NoError(t, err)
		h.Eventually("she may not see it", func() bool { return b.opens(h.ProxyURL+"/ours/x").status == 403 })
		_, err = h.People.Update(t.Context(), "wilma", func(u *v1.UserSpec) error { u.Groups = []string{"watchers"}; return nil })
		require.NoError(t, err)
		h.Eventually("she may see it", func() bool { return b.opens(h.ProxyURL+"/ours/x").status == 200 })
	})
	t.Run("the cookie ends with the session", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.URL+"/api/v3/session", http.NoBody)
		require.NoError(t, err)
		resp, err := b.Do(r)
		require.NoError(t, err)
		_ = resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
		assert.Equal(t, 303, b.opens(h.ProxyURL+"/ours/x").status)
	})
}

func TestATicketToAPageIsForOneUseOneServiceAndOneBrowser(t *testing.T) {
	h, o, _ := twoServices(t)
	b := newVisitor(t, h.Server)
	b.signsIn(h.Server, "wilma")
	page := h.ProxyURL + "/ours/"
	get := func(b *visitor, at string) int { return b.opens(at).status }

	ticket := b.ticket(page)
	assert.Equal(t, 303, get(b, ticket))
	assert.Equal(t, 403, get(b, ticket), "it was used")

	ticket = b.ticket(page)
	assert.Equal(t, 403, get(b, strings.Replace(ticket, "/.ticket/ours", "/.ticket/other", 1)), "it is for another service")
	assert.Equal(t, 403, get(b, ticket), "an attempt at another service has used it up")

	ticket = b.ticket(page)
	thief := newVisitor(t, h.Server)
	assert.Equal(t, 403, get(thief, ticket), "a browser that asked for none")
	thief.signsIn(h.Server, "willi")
	thief.ticket(page)
	assert.Equal(t, 403, get(thief, ticket), "the browser of another person")
	assert.Equal(t, 403, get(b, ticket), "an attempt of another browser has used it up")

	ticket = b.ticket(page)
	assert.Equal(t, 403, b.opens(ticket, "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "cors").status, "a script")
	assert.Equal(t, 403, b.opens(ticket, "Sec-Fetch-Dest", "iframe").status, "a frame")
	assert.Equal(t, 303, get(b, ticket), "which didn't use it up")

	for _, guess := range []string{"", "AAAAAAAAAAAAAAAAAAAAAAAAAA", strings.Repeat("A", 3000), "../x", "%00"} {
		assert.Equal(t, 403, get(b, h.ProxyURL+"/.ticket/ours?to=/ours/&ticket="+url.QueryEscape(guess)), guess)
	}
	assert.Equal(t, 404, get(b, h.ProxyURL+"/.ticket/none?ticket=x"))

	for _, to := range []string{"https://evil.example/", "//evil.example/", "/other/", "/.ticket/other", "/oursx", "/\\evil.example"} {
		ticket = b.ticket(page)
		u := mustParse(t, ticket)
		q := u.Query()
		q.Set("to", to)
		u.RawQuery = q.Encode()
		assert.Equal(t, "/ours/", b.opens(u.String()).header.Get("Location"), to)
	}

	t.Run("it expires", func(t *testing.T) {
		ticket := b.ticket(page)
		secrets := h.cluster.Client.CoreV1().Secrets(v1.Namespace)
		list, err := secrets.List(t.Context(), metav1.ListOptions{LabelSelector: "paictl.openpai.org/once=ticket"})
		require.NoError(t, err)
		require.NotEmpty(t, list.Items)
		for i := range list.Items {
			s := &list.Items[i]
			until, err := time.Parse(time.RFC3339Nano, string(s.Data["expires"]))
			require.NoError(t, err)
			assert.LessOrEqual(t, time.Until(until), 30*time.Second)
			s.Data["expires"] = []byte(time.Now().Add(-time.Second).Format(time.RFC3339Nano))
			_, err = secrets.Update(t.Context(), s, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		assert.Equal(t, 403, get(b, ticket))
	})
	t.Run("one of several uses at once succeeds, at any replica", func(t *testing.T) {
		second := servertest.Start(t, h.cluster, servertest.Options{Settings: o})
		ticket := b.ticket(page)
		at := []string{ticket, strings.Replace(ticket, h.ProxyURL, second.ProxyURL, 1)}
		answers := make(chan int, 8)
		for i := range cap(answers) {
			go func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at[i%2], http.NoBody)
				if err != nil {
					answers <- 0
					return
				}
				resp, err := b.Do(r)
				if err != nil {
					answers <- 0
					return
				}
				_ = resp.Body.Close()
				answers <- resp.StatusCode
			}()
		}
		var got []int
		for range cap(answers) {
			got = append(got, <-answers)
		}
		slices.Sort(got)
		assert.Equal(t, []int{303, 403, 403, 403, 403, 403, 403, 403}, got)
	})
	t.Run("the person's rights and session count when it is used, too", func(t *testing.T) {
		ticket := b.ticket(page)
		_, err := h.Tokens.RevokeAll(t.Context(), "wilma", false)
		require.NoError(t, err)
		assert.Equal(t, 403, get(b, ticket))
	})
	t.Run("who may not see the page gets none", func(t *testing.T) {
		none := newVisitor(t, h.Server)
		none.signsIn(h.Server, "ann")
		steps := none.goes(page, "")
		assert.Equal(t, 403, steps[len(steps)-1].status)
	})
}

// A page in a browser can enter a task only with a ticket. Cookies aren't enough, because any page may open a WebSocket with the browser's cookies.
func TestABrowserEntersATaskByATicketAlone(t *testing.T) {
	r := newRooms(t)
	require.Equal(t, 202, r.Submit(r.tokens["ann"], "inside", "speech").Status)
	r.runs(t, "ann", "inside")
	const task = "/api/v3/jobs/ann/inside/tasks/Worker_1/0"
	session := func(name string) string {
		a := r.Do("POST", "/api/v3/session", "", `{"username":"`+name+`","password":"`+servertest.Password+`"}`)
		require.Equal(t, 200, a.Status)
		cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
		return cookie
	}
	ann := session("ann")
	ticket := func(way string) string {
		a := r.Do("POST", task+way+"/ticket", "", "", "Cookie", ann, "Sec-Fetch-Site", "same-origin")
		require.Equal(t, 200, a.Status, a.Body)
		assert.InDelta(t, 30, a.JSON()["expiresIn"], 0)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		return a.JSON()["protocol"].(string)
	}
	shake := func(path, origin, protocols string, more ...string) int {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return r.handshake(t, ctx, path, append([]string{"Origin", origin, "Sec-WebSocket-Protocol", protocols}, more...)...)
	}
	const shell = task + "/exec?stdout=true&command=cat"
	own := r.URL

	one := ticket("/exec")
	assert.Equal(t, 101, shake(shell, own, "v5.channel.k8s.io, "+one), "it opens a shell")
	assert.Equal(t, 403, shake(shell, own, "v5.channel.k8s.io, "+one), "it was used")
	assert.Equal(t, 401, shake(shell, own, "v5.channel.k8s.io", "Cookie", ann), "the cookie alone opens none")
	assert.Equal(t, 403, shake(shell, "https://evil.example", "v5.channel.k8s.io, "+ticket("/exec")), "a page of another origin")
	assert.Equal(t, 403, shake(shell, own+"0", "v5.channel.k8s.io, "+ticket("/exec")), "of another port")
	assert.Equal(t, 400, shake(shell, "", "v5.channel.k8s.io, "+ticket("/exec")), "a program")
	assert.Equal(t, 403, shake(shell, own, "v5.channel.k8s.io, pai-ticket."+strings.Repeat("A", 26)), "it was guessed")
	assert.Equal(t, 403, shake(shell, own, "v5.channel.k8s.io, "+ticket("/portforward")), "it is for ports")
	assert.Equal(t, 403, shake(strings.Replace(shell, "/0/", "/1/", 1), own, "v5.channel.k8s.io, "+ticket("/exec")), "it is for another task")
	assert.Equal(t, 403, shake(shell, "https://evil.example", "v5.channel.k8s.io", "Authorization", "Bearer "+r.tokens["ann"]), "a page of another origin that knows a token")

	assert.Equal(t, 403, r.Do("POST", task+"/exec/ticket", "", "", "Cookie", ann, "Sec-Fetch-Site", "same-site").Status, "a proxied page gets none")
	assert.Equal(t, 403, r.Do("POST", task+"/exec/ticket", "", "", "Cookie", ann, "Origin", "https://evil.example").Status)
	assert.Equal(t, 404, r.Do("POST", task+"/exec/ticket", "", "", "Cookie", session("vic"), "Sec-Fetch-Site", "same-origin").Status, "nor does who may not enter")
	assert.Equal(t, 401, r.Do("POST", task+"/exec/ticket", "", "").Status)
	last := ticket("/exec")
	_, err := r.Tokens.RevokeAll(t.Context(), "ann", false)
	require.NoError(t, err)
	assert.Equal(t, 403, shake(shell, own, "v5.channel.k8s.io, "+last), "its session has ended")
	_, text, _ := strings.Cut(last, ".")
	assert.NotContains(t, r.Printed.String(), text)
}

func TestTheAPITakesTheCookieOfItsOwnPagesAlone(t *testing.T) {
	h := newHouse(t)
	b := newVisitor(t, h.Server)
	b.signsIn(h.Server, "ann")
	ask := func(path string, headers ...string) visited {
		return b.opens(h.URL+path, append([]string{"Accept", "*/*", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Site", "same-origin"}, headers...)...)
	}
	for _, path := range []string{"/api/v3/whoami", "/api/v3/jobs", "/api/v3/virtual-clusters", "/api/v3/tokens", "/api/v3/templates"} {
		v := ask(path)
		assert.Equal(t, 200, v.status, "%s: %s", path, v.body)
		assert.Empty(t, v.header.Get("Access-Control-Allow-Origin"), path)
		assert.Contains(t, v.header.Values("Vary"), "Cookie", path)
		for _, site := range []string{"same-site", "cross-site"} {
			v = ask(path, "Sec-Fetch-Site", site)
			assert.Equal(t, 403, v.status, "%s %s", path, site)
			assert.Empty(t, v.header.Get("Access-Control-Allow-Origin"), "%s %s", path, site)
		}
		v = ask(path, "Authorization", "Bearer "+h.tokens["vic"], "Sec-Fetch-Site", "cross-site", "Origin", "https://portal.example.org")
		assert.Equal(t, 200, v.status, "a page that has a token: %s", path)
		assert.Equal(t, "*", v.header.Get("Access-Control-Allow-Origin"), path)
	}
	assert.Contains(t, ask("/api/v3/whoami").body, `"ann"`)
	assert.Contains(t, ask("/api/v3/whoami", "Authorization", "Bearer "+h.tokens["vic"]).body, `"vic"`, "who shows a token is judged by it")
	assert.Equal(t, 401, ask("/api/v3/whoami", "Authorization", "Bearer none").status)
	assert.Equal(t, 401, ask("/api/v2/jobs").status, "OpenPAI's API takes none")
	assert.Equal(t, 200, ask("/api/v3/version", "Sec-Fetch-Site", "cross-site").status, "what everyone may read")
}

// handshake requests a WebSocket, and returns the status of the response. It omits headers with an empty value.
func (h *house) handshake(t *testing.T, ctx context.Context, path string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL+path, http.NoBody)
	require.NoError(t, err)
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		r.Header.Set(name, value)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	own := h.Client.Transport.(*http.Transport).Clone()
	own.ForceAttemptHTTP2, own.TLSNextProto = false, nil
	own.TLSClientConfig.NextProtos = []string{"http/1.1"}
	t.Cleanup(own.CloseIdleConnections)
	resp, err := own.RoundTrip(r)
	require.NoError(t, err)
	_ = resp.Body.Close()
	return resp.StatusCode
}
