package assembly_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/signin/providertest"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// lab is a server with a real directory and a real issuer. Both contain the same people.
type lab struct {
	*servertest.Server
	t         *testing.T
	directory *providertest.Directory
	dex       *providertest.Issuer
}

func openLab(t *testing.T, change func(*settings.Settings)) *lab {
	t.Helper()
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	people, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	for _, name := range []string{"kim", "lee"} { // other tests may have added them
		_ = people.Resource(v1.Users).Delete(t.Context(), name, metav1.DeleteOptions{})
	}
	forgetIssuers(t, c)
	l := &lab{t: t, directory: providertest.Slapd(t)}
	secrets := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(secrets, settings.BindPasswordKey("lab")), []byte(providertest.AdminPassword+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(secrets, settings.ClientSecretKey("dex")), []byte(providertest.ClientSecret), 0o600))
	s := settings.Default()
	s.SignIn.Recheck.EverySeconds = 5
	l.Server = servertest.Start(t, c, servertest.Options{Settings: s, Credentials: secrets, Address: func(host string, port int) {
		s.Names, s.Port = []string{host}, port
		l.dex = providertest.Dex(t, l.directory, s.URL()+settings.ReturnPath("dex"))
		var o settings.OIDC
		o.Title, o.Issuer, o.CA, o.ClientID, o.NewPeople, o.NewGroups = "The lab", l.dex.URL, l.dex.CA, providertest.ClientID, settings.NewAdd, []string{}
		o.Scopes = []string{"profile", "email", "groups", "offline_access"}
		var d settings.LDAP
		d.URL, d.CA, d.BindDN, d.NewPeople = l.directory.TLS, l.directory.CA, providertest.AdminDN, settings.NewAdd
		d.Users.Base, d.Groups.Base = "ou=people,"+providertest.Base, "ou=groups,"+providertest.Base
		s.SignIn.OIDC, s.SignIn.LDAP = map[string]settings.OIDC{"dex": o}, map[string]settings.LDAP{"lab": d}
		if change != nil {
			change(s)
		}
	}})
	l.Group("of-the-lab", func(g *v1.GroupSpec) {
		g.External, g.VirtualClusters = []v1.ExternalGroup{{Provider: "dex", Name: "ai-team"}, {Provider: "lab", Name: "ai-team"}}, []v1.VCGrant{{Name: "vision"}}
	})
	return l
}

// browser returns a browser that trusts the server and the issuer.
func (l *lab) browser() *browser { return &browser{l.dex.Browser(string(l.CA())), l} }

type browser struct {
	*providertest.Browser
	lab *lab
}

// ask sends a request like a page of the server.
func (b *browser) ask(method, path, body string) (int, map[string]any) {
	t := b.lab.t
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.lab.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := b.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	out := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &out), string(text))
	return resp.StatusCode, out
}

// enter signs a person in at the issuer, and returns the address that the browser opens afterwards.
func (b *browser) enter(name, to string) string {
	t := b.lab.t
	t.Helper()
	status, answer := b.ask("POST", "/api/v3/signin/oidc/dex", `{"to":"`+to+`"}`)
	require.Equal(t, 200, status, answer)
	back := b.SignIn(answer["to"].(string), name)
	require.True(t, strings.HasPrefix(back, b.lab.URL), back)
	next, page := b.Visit(back)
	require.Empty(t, page)
	return next
}

func (l *lab) whoami(token string) *api.WhoAmI {
	l.t.Helper()
	a := l.Do("GET", "/api/v3/whoami", token, "")
	require.Equal(l.t, 200, a.Status, a.Body)
	out := &api.WhoAmI{}
	a.Into(out)
	return out
}

// token requests tokens like a program.
func (l *lab) token(form url.Values) (*servertest.Answer, *api.Tokens) {
	l.t.Helper()
	a := l.Do("POST", "/oauth/token", "", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	out := &api.Tokens{}
	if a.Status == 200 {
		a.Into(out)
	}
	return a, out
}

func TestABrowserSignsInAtAnIssuer(t *testing.T) {
	l := openLab(t, nil)
	b := l.browser()
	status, ways := b.ask("GET", "/api/v3/signin", "")
	require.Equal(t, 200, status)
	assert.Equal(t, map[string]any{"password": true, "at": l.URL, "issuers": []any{map[string]any{"name": "dex", "title": "The lab"}}}, ways)
	status, _ = b.ask("GET", "/api/v3/session", "")
	assert.Equal(t, 401, status)
	assert.Equal(t, "/device?user_code=x", b.enter("kim", "/device?user_code=x")[len(l.URL):])
	status, me := b.ask("GET", "/api/v3/session", "")
	assert.Equal(t, 200, status)
	assert.Equal(t, "kim", me["name"])
	assert.Contains(t, l.Printed.String(), `"detail":{"provider":"dex","way":"oidc"}`)
	status, _ = b.ask("POST", "/api/v3/signin/device", `{"code":"BBBB-BBBB","allow":true}`)
	assert.Equal(t, 401, status, "a cookie lets no program in: other services' pages could use it")
}

// redirect signs a person in at the issuer for a program. It returns the final address of the browser, and the page at that address.
func (b *browser) redirect(name, goal string) (to, page string) {
	t := b.lab.t
	t.Helper()
	status, answer := b.ask("POST", "/api/v3/signin/oidc/dex", goal)
	require.Equal(t, 200, status, answer)
	return b.Visit(b.SignIn(answer["to"].(string), name))
}

func TestAProgramOfTheBrowsersMachineIsSignedIn(t *testing.T) {
	l := openLab(t, func(s *settings.Settings) { // the two know the same people under different names
		d := s.SignIn.LDAP["lab"]
		d.NewPeople = settings.NewRefuse
		s.SignIn.LDAP["lab"] = d
	})
	b := l.browser()
	b.enter("kim", "")
	link := func() {
		id, err := l.People.Update(t.Context(), "kim", func(u *v1.UserSpec) error {
			u.Identities = append(u.Identities, v1.Identity{Provider: "lab", Subject: l.directory.UUID("kim")})
			return nil
		})
		require.NoError(t, err)
		require.Len(t, id.User.Spec.Identities, 2)
	}
	link()
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	ask := func(change func(*api.Program)) (int, map[string]any) {
		p := api.Program{Redirect: "http://127.0.0.1:4711/", State: "s", Challenge: base64.RawURLEncoding.EncodeToString(sum[:]), Client: "paictl/test"}
		if change != nil {
			change(&p)
		}
		body, err := json.Marshal(map[string]any{"username": "kim", "password": providertest.Password, "goal": api.Goal{Program: &p}})
		require.NoError(t, err)
		return b.ask("POST", "/api/v3/signin/password", string(body))
	}
	code := func() string {
		status, answer := ask(nil)
		require.Equal(t, 200, status, answer)
		u := mustParse(t, answer["to"].(string))
		assert.Equal(t, "127.0.0.1:4711", u.Host)
		assert.Equal(t, "s", u.Query().Get("state"))
		return u.Query().Get("code")
	}
	form := url.Values{"grant_type": {api.GrantCode}, "code": {code()}, "code_verifier": {verifier}, "redirect_uri": {"http://127.0.0.1:4711/"}}
	a, tokens := l.token(form)
	require.Equal(t, 200, a.Status, a.Body)
	who := l.whoami(tokens.AccessToken)
	assert.Equal(t, "kim", who.Name)
	assert.Equal(t, []string{"of-the-lab"}, who.Groups)
	a, _ = l.token(form)
	assert.Equal(t, 400, a.Status, "a code is good for one use")
	assert.Equal(t, "invalid_grant", a.JSON()["error"])

	for what, change := range map[string]func(url.Values){
		"another verifier": func(f url.Values) { f.Set("code_verifier", "x") }, "no verifier": func(f url.Values) { f.Del("code_verifier") },
		"another address": func(f url.Values) { f.Set("redirect_uri", "http://127.0.0.1:4712/") },
	} {
		f := url.Values{"grant_type": {api.GrantCode}, "code": {code()}, "code_verifier": {verifier}, "redirect_uri": {"http://127.0.0.1:4711/"}}
		right := f.Get("code_verifier")
		change(f)
		a, _ = l.token(f)
		assert.Equal(t, 400, a.Status, what)
		f.Set("code_verifier", right)
		f.Set("redirect_uri", "http://127.0.0.1:4711/")
		a, _ = l.token(f)
		assert.Equal(t, 400, a.Status, "%s: it is used up", what)
	}
	for _, to := range []string{"https://evil.example.org/", "http://evil.example.org/", "http://localhost:4711/", "http://127.0.0.1/", "http://127.0.0.1:4711@evil.example.org/", "http://127.0.0.1.evil.example.org:1/",
		"http://127.0.0.1:99999/", "http://127.0.0.2:4711/", "javascript:alert(1)", "http://127.0.0.1:4711/?x=y", "http://127.0.0.1:4711/#x", "//127.0.0.1:4711/", "http://127.0.0.1:4711\\@evil.example.org/", ""} {
		status, answer := ask(func(p *api.Program) { p.Redirect = to })
		assert.Equal(t, 400, status, "%q: %v", to, answer)
	}
	for what, change := range map[string]func(*api.Program){
		"no challenge": func(p *api.Program) { p.Challenge = "" }, "a plain challenge": func(p *api.Program) { p.Challenge = "x" }, "no state": func(p *api.Program) { p.State = "" },
	} {
		status, _ := ask(change)
		assert.Equal(t, 400, status, what)
	}
	for _, secret := range []string{form.Get("code"), tokens.AccessToken, tokens.RefreshToken, providertest.ClientSecret, providertest.AdminPassword} {
		assert.NotContains(t, l.Printed.String(), secret)
	}
	goal, err := json.Marshal(api.Goal{Program: &api.Program{Redirect: "http://[::1]:4711/x", State: "s", Challenge: base64.RawURLEncoding.EncodeToString(sum[:])}})
	require.NoError(t, err)
	to, _ := b.redirect("kim", string(goal))
	u := mustParse(t, to)
	assert.Equal(t, "http://[::1]:4711/x", u.Scheme+"://"+u.Host+u.Path)
	a, tokens = l.token(url.Values{"grant_type": {api.GrantCode}, "code": {u.Query().Get("code")}, "code_verifier": {verifier}, "redirect_uri": {"http://[::1]:4711/x"}})
	require.Equal(t, 200, a.Status, a.Body)
	assert.Equal(t, "kim", l.whoami(tokens.AccessToken).Name)
	status, answer := b.ask("POST", "/api/v3/signin/oidc/dex", `{"program":{"redirect_uri":"https://evil.example.org/"}}`)
	assert.Equal(t, 400, status, answer)
}

func TestABrowserThatComesFromElsewhereIsNotSignedIn(t *testing.T) {
	l := openLab(t, nil)
	b := l.browser()
	status, answer := b.ask("POST", "/api/v3/signin/oidc/dex", `{}`)
	require.Equal(t, 200, status)
	back := b.SignIn(answer["to"].(string), "kim")

	fetched, err := http.NewRequestWithContext(t.Context(), http.MethodGet, back, http.NoBody)
	require.NoError(t, err)
	fetched.Header.Set("Sec-Fetch-Dest", "empty")
	resp, err := b.Do(fetched)
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, 403, resp.StatusCode, "a script of another service's page gets nothing for an address that it has seen")
	assert.Empty(t, resp.Cookies())

	other := l.browser() // a victim who gets the attacker's answer
	_, page := other.Visit(back)
	assert.Contains(t, page, "You are not signed in")
	status, _ = other.ask("GET", "/api/v3/session", "")
	assert.Equal(t, 401, status)

	_, page = b.Visit(strings.Replace(back, "code=", "code=x", 1))
	assert.Contains(t, page, "You are not signed in", "a code made up")
	_, page = b.Visit(back)
	assert.Contains(t, page, "You are not signed in", "what the browser kept is used up")

	_, answer = b.ask("POST", "/api/v3/signin/oidc/dex", `{}`)
	u := mustParse(t, b.SignIn(answer["to"].(string), "kim"))
	elsewhere := *u
	elsewhere.Path = settings.ReturnPath("none")
	_, page = b.Visit(elsewhere.String())
	assert.Contains(t, page, "You are not signed in", "of another issuer")

	_, answer = b.ask("POST", "/api/v3/signin/oidc/dex", `{"to":"//evil.example.org/"}`)
	next, _ := b.Visit(b.SignIn(answer["to"].(string), "kim"))
	assert.Equal(t, l.URL+"/sign-in", next, "it leads nowhere else")
	status, _ = b.ask("POST", "/api/v3/signin/oidc/none", `{}`)
	assert.Equal(t, 404, status)

	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.URL+"/api/v3/signin/oidc/dex", strings.NewReader(`{}`))
	require.NoError(t, err)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	resp, err = b.Do(r)
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, 403, resp.StatusCode, "a page of another site begins nothing")
}

func TestClientsOfOpenPAISignInAtAnIssuer(t *testing.T) {
	const portal = "https://portal.example.org/index.html"
	l := openLab(t, func(s *settings.Settings) {
		s.SignIn.Password.Enabled, s.SignIn.LDAP, s.SignIn.ReturnPages = false, nil, []string{portal}
	})
	info := l.Do("GET", "/api/v1/authn/info", "", "").JSON()
	assert.Equal(t, "OIDC", info["authn_type"])
	assert.Equal(t, "/api/v1/authn/oidc/login", info["loginURI"])
	assert.Equal(t, "get", info["loginURIMethod"])
	b := l.browser()
	login := l.URL + "/rest-server/api/v1/authn/oidc/login"
	next, page := b.Visit(login + "?redirect_uri=" + url.QueryEscape(portal) + "&from=here")
	require.Empty(t, next, "no browser goes by itself, which has a session at the issuer")
	assert.Contains(t, page, portal)
	assert.Contains(t, page, "Sign in with The lab")
	link := regexp.MustCompile(`<a href="([^"]+)"`).FindStringSubmatch(page)
	require.NotEmpty(t, link, page)
	to, _ := b.Visit(b.SignIn(html.UnescapeString(link[1]), "kim"))
	u := mustParse(t, to)
	assert.Equal(t, portal, u.Scheme+"://"+u.Host+u.Path)
	assert.Equal(t, "kim", u.Query().Get("user"))
	assert.Equal(t, "here", u.Query().Get("from"))
	assert.Equal(t, "false", u.Query().Get("admin"))
	assert.Equal(t, "kim", l.whoami(u.Query().Get("token")).Name)
	next, _ = b.Visit(login)
	assert.Equal(t, l.URL+"/sign-in", next)
	for _, bad := range []string{portal + "?", portal + "/", "https://portal.example.org/", strings.ToUpper(portal), "http://localhost:8123/callback", "http://127.0.0.1:8123/", l.URL + "/sign-in", l.URL + "/prometheus/", "https://evil.example.org/", "http://evil.example.org:80/", "http://localhost.evil.example.org/", "http://localhost@evil.example.org/", "https://localhost:8123/", "javascript:x", l.URL + ".evil.example.org/", "http://localhost:1\\@evil.example.org"} {
		a := l.Do("GET", "/api/v2/authn/oidc/login?redirect_uri="+url.QueryEscape(bad), "", "")
		assert.Equal(t, 400, a.Status, bad)
	}
	for _, dest := range []string{"empty", "iframe", "script"} {
		a := l.Do("GET", "/api/v2/authn/oidc/login?redirect_uri="+url.QueryEscape(portal), "", "", "Sec-Fetch-Dest", dest)
		assert.Equal(t, 403, a.Status, "%s: another service's page could follow the link", dest)
	}
	assert.Equal(t, 200, l.Do("GET", "/api/v2/authn/oidc/login?redirect_uri="+url.QueryEscape(portal), "", "", "Sec-Fetch-Dest", "document").Status)
	_, page = b.Visit(login + "?provider=none&redirect_uri=" + url.QueryEscape(portal))
	assert.Contains(t, page, "there is no issuer")
	a := l.Do("POST", "/api/v2/token", "", `{"username":"kim","password":"`+providertest.Password+`"}`)
	assert.Equal(t, 403, a.Status, "there are no passwords here")
}

// approval matches the approval in a page that asks the person for a decision.
var approval = regexp.MustCompile(`data-approval="([^"]+)"`)

func TestAProgramWithoutABrowserIsLetIn(t *testing.T) {
	l := openLab(t, nil)
	b := l.browser()
	begin := func() *api.Device {
		a := l.Do("POST", "/oauth/device_authorization", "", "client_id=paictl%2Ftest", "Content-Type", "application/x-www-form-urlencoded")
		require.Equal(t, 200, a.Status, a.Body)
		d := &api.Device{}
		a.Into(d)
		return d
	}
	poll := func(code string) (string, *api.Tokens) {
		a, tokens := l.token(url.Values{"grant_type": {api.GrantDevice}, "device_code": {code}})
		if a.Status == 200 {
			return "", tokens
		}
		require.Equal(t, 400, a.Status, a.Body)
		return a.JSON()["error"].(string), nil
	}
	// ask signs in at the issuer for a code, and returns the approval from the page.
	ask := func(code string) string {
		_, page := b.redirect("kim", `{"device":"`+code+`"}`)
		got := approval.FindStringSubmatch(page)
		require.NotEmpty(t, got, page)
		assert.Contains(t, page, "paictl/test")
		assert.Contains(t, page, "127.0.0.1")
		return got[1]
	}
	say := func(approval string, allow bool) int {
		status, _ := b.ask("POST", "/api/v3/signin/approval", fmt.Sprintf(`{"approval":%q,"allow":%t}`, approval, allow))
		return status
	}
	d := begin()
	assert.Equal(t, l.URL+"/device", d.VerificationURI)
	assert.Regexp(t, `^[B-Z]{4}-[B-Z]{4}$`, d.UserCode)
	says, _ := poll(d.DeviceCode)
	assert.Equal(t, "authorization_pending", says)
	says, _ = poll(d.DeviceCode)
	assert.Equal(t, "slow_down", says)
	for what, code := range map[string]string{"made up": "x", "another's": strings.Repeat("0", 40) + ".x", "a part": strings.Split(d.DeviceCode, ".")[0] + ".x", "the user code": d.UserCode} {
		says, _ = poll(code)
		assert.Equal(t, "expired_token", says, what)
	}
	may := ask(strings.ToLower(strings.ReplaceAll(d.UserCode, "-", " + ")))
	assert.Equal(t, 400, say("x"+may, true))
	assert.Equal(t, 400, say("", true))
	says, _ = poll(d.DeviceCode)
	assert.Equal(t, "slow_down", says, "a sign-in alone lets no one in")
	require.Equal(t, 200, say(may, true))
	assert.Equal(t, 400, say(may, true), "it has its answer")
	says, tokens := poll(d.DeviceCode)
	require.Empty(t, says)
	assert.Equal(t, "kim", l.whoami(tokens.AccessToken).Name)
	says, _ = poll(d.DeviceCode)
	assert.Equal(t, "expired_token", says, "it is good for one use")

	d = begin()
	require.Equal(t, 200, say(ask(d.UserCode), false))
	says, _ = poll(d.DeviceCode)
	assert.Equal(t, "access_denied", says)

	d = begin() // a person who is signed in elsewhere approves there
	assert.Equal(t, 401, l.Do("GET", "/api/v3/signin/device?code="+d.UserCode, "", "").Status, "who isn't signed in learns nothing")
	w := l.Do("GET", "/api/v3/signin/device?code="+d.UserCode, tokens.AccessToken, "").JSON()
	assert.Equal(t, "paictl/test", w["client"])
	assert.NotContains(t, w, "approval")
	kim, err := l.People.Person("kim")
	require.NoError(t, err)
	for _, scopes := range [][]rules.Scope{nil, {rules.ScopeRead}, {rules.ScopeSubmit}, {rules.ScopeAdmin}} {
		application, err := l.Tokens.Application(t.Context(), kim, token.New{Scopes: scopes})
		require.NoError(t, err)
		for _, allow := range []string{"true", "false"} {
			a := l.Do("POST", "/api/v3/signin/device", application.Token.Reveal(), `{"code":"`+d.UserCode+`","allow":`+allow+`}`)
			assert.Equal(t, 403, a.Status, "an application token of the scopes %v: a leaked one would make itself a session", scopes)
		}
		assert.Equal(t, 403, l.Do("GET", "/api/v3/signin/device?code="+d.UserCode, application.Token.Reveal(), "").Status)
	}
	says, _ = poll(d.DeviceCode)
	assert.Equal(t, "authorization_pending", says, "it still waits")
	if _, err := l.People.Person("ann"); err != nil {
		l.Person("ann", "default")
	}
	ann, err := l.People.Person("ann")
	require.NoError(t, err)
	others, err := l.Tokens.Session(t.Context(), ann, token.New{})
	require.NoError(t, err)
	for what, session := range map[string]string{"none": "", "an access token": tokens.AccessToken, "another person's session": others.Refresh.Reveal(), "made up": tokens.RefreshToken[:len(tokens.RefreshToken)-1] + "x"} {
		a := l.Do("POST", "/api/v3/signin/device", tokens.AccessToken, `{"code":"`+d.UserCode+`","allow":true,"session":"`+session+`"}`)
		assert.Equal(t, 403, a.Status, "%s: an access token lasts minutes, and the program's session months", what)
		assert.NotContains(t, a.Body, "pair_")
	}
	says, _ = poll(d.DeviceCode)
	assert.Contains(t, []string{"authorization_pending", "slow_down"}, says)
	require.Equal(t, 200, l.Do("POST", "/api/v3/signin/device", tokens.AccessToken, `{"code":"`+d.UserCode+`","allow":true,"session":"`+tokens.RefreshToken+`"}`).Status)
	says, _ = poll(d.DeviceCode)
	require.Empty(t, says)

	d = begin() // the password signs in only the program
	status, answer := b.ask("POST", "/api/v3/signin/password", `{"username":"amy","password":"`+servertest.Password+`","goal":{"device":"`+d.UserCode+`"}}`)
	if status == 400 { // amy doesn't exist if the other tests don't run
		l.Person("amy", "default")
		status, answer = b.ask("POST", "/api/v3/signin/password", `{"username":"amy","password":"`+servertest.Password+`","goal":{"device":"`+d.UserCode+`"}}`)
	}
	require.Equal(t, 200, status, answer)
	require.Equal(t, 200, say(answer["waiting"].(map[string]any)["approval"].(string), true))
	_, tokens = poll(d.DeviceCode)
	require.NotNil(t, tokens)
	assert.Equal(t, "amy", l.whoami(tokens.AccessToken).Name)

	d = begin() // the person's sessions end before the program comes back
	require.Equal(t, 200, say(ask(d.UserCode), true))
	require.NoError(t, l.People.Disable(t.Context(), "kim", true))
	require.NoError(t, l.People.Disable(t.Context(), "kim", false))
	says, _ = poll(d.DeviceCode)
	assert.Equal(t, "invalid_grant", says)

	d = begin()
	for range 11 {
		if _, page := b.redirect("kim", `{"device":"BBBBBBBB"}`); strings.Contains(page, "too many") {
			break
		}
	}
	_, page := b.redirect("kim", `{"device":"`+d.UserCode+`"}`)
	assert.Contains(t, page, "too many sign-ins", "codes aren't guessed")
	for _, secret := range []string{d.DeviceCode, d.UserCode, may} {
		assert.NotContains(t, l.Printed.String(), secret)
	}
}

func TestGroupsOfADirectoryAndOfAnIssuerGoWithinAMinute(t *testing.T) {
	l := openLab(t, nil)
	a, ldap := l.token(url.Values{"grant_type": {"password"}, "username": {"lee"}, "password": {providertest.Password}})
	require.Equal(t, 200, a.Status, a.Body)
	b := l.browser()
	b.enter("kim", "")
	vision := func(name string) bool {
		p, err := l.People.Person(name)
		require.NoError(t, err)
		return p.Grants.MayUse("vision")
	}
	assert.True(t, vision("kim"))
	assert.True(t, vision("lee"))
	assert.Equal(t, 202, l.Submit(ldap.AccessToken, "first", "vision").Status)
	l.directory.Leave("ai-team", "kim") // the group keeps one
	l.Eventually("the issuer's word", func() bool { return !vision("kim") })
	assert.True(t, vision("lee"))
	l.directory.Join("ai-team", "kim")
	l.directory.Leave("ai-team", "lee")
	l.Eventually("the directory's word", func() bool { return !vision("lee") })
	assert.Equal(t, 403, l.Submit(ldap.AccessToken, "second", "vision").Status)
	l.directory.Remove("lee")
	l.Eventually("the session ends", func() bool { return l.Do("GET", "/api/v3/whoami", ldap.AccessToken, "").Status == 401 })
	a, _ = l.token(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {ldap.RefreshToken}})
	assert.Equal(t, 400, a.Status)
	list, err := kubetest.Start(t).Client.CoreV1().Secrets(v1.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1.LabelPeople + "=" + v1.SecretRefresh})
	require.NoError(t, err)
	assert.NotEmpty(t, list.Items, "what the issuer is asked with lies here alone")
}

func TestAnIssuerThatIsAwayStopsNothing(t *testing.T) {
	l := openLab(t, nil)
	l.dex.Stop()
	status, answer := l.browser().ask("POST", "/api/v3/signin/oidc/dex", `{}`)
	assert.Equal(t, 503, status, answer)
	a, _ := l.token(url.Values{"grant_type": {"password"}, "username": {"kim"}, "password": {providertest.Password}})
	assert.Equal(t, 200, a.Status, a.Body)
	l.directory.Stop()
	a, _ = l.token(url.Values{"grant_type": {"password"}, "username": {"kim"}, "password": {providertest.Password}})
	assert.Equal(t, 503, a.Status, "it isn't known whether the password is right: %s", a.Body)
	l.Person("amy", "default")
	assert.NotEmpty(t, l.SignIn("amy"), "passwords of the cluster are asked for first")
}
