package assembly_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func TestPeopleSignInAsClientsOfOpenPAIDo(t *testing.T) {
	h := newHouse(t)
	form := url.Values{"username": {"ann"}, "password": {servertest.Password}, "expiration": {"4000"}}.Encode()
	json := `{"username":"ann","password":"` + servertest.Password + `","expiration":"604800"}`
	for name, c := range map[string]struct{ path, media, body string }{
		"the SDK":        {"/rest-server/api/v2/authn/basic/login", "application/x-www-form-urlencoded", form},
		"VS Code":        {"/rest-server/api/v1/token", "application/x-www-form-urlencoded", form},
		"NNI":            {"/rest-server/api/v1/token", "application/json", json},
		"the portal":     {"/rest-server/api/v2/tokens/", "text/plain;charset=UTF-8", json},
		"curl -d '{…}'":  {"/api/v2/token", "application/x-www-form-urlencoded", json},
		"no expiration":  {"/api/v1/authn/basic/login", "", `{"username":"ann","password":"` + servertest.Password + `"}`},
		"a short minute": {"/api/v1/authn/basic/login", "", `{"username":"ann","password":"` + servertest.Password + `","expiration":1}`},
	} {
		a := h.Do("POST", c.path, "", c.body, "Content-Type", c.media)
		require.Equal(t, 200, a.Status, "%s: %s", name, a.Body)
		got := a.JSON()
		assert.Equal(t, "ann", got["user"], name)
		assert.Equal(t, false, got["admin"], name)
		token := got["token"].(string)
		assert.Len(t, strings.Split(token, "."), 3, "a JWT, which the portal reads")
		checked := h.Do("GET", "/api/v2/tokens/check", token, "").JSON()
		assert.Equal(t, "ann", checked["username"], name)
		assert.Equal(t, false, checked["application"], name)
		assert.Greater(t, checked["exp"], float64(time.Now().Unix()), name)
	}
	for body, status := range map[string]int{
		`{"username":"ann","password":"` + servertest.Password + `","expiration":604801}`: 400,
		`{"username":"ann","password":"` + servertest.Password + `","role":"admin"}`:      400,
		`{"username":"ann"}`: 400, `{"password":"x"}`: 400, ``: 400,
	} {
		assert.Equal(t, status, h.Do("POST", "/api/v2/token", "", body).Status, body)
	}
	wrong, unknown := h.Do("POST", "/api/v2/token", "", `{"username":"abe","password":"not this one"}`), h.Do("POST", "/api/v2/token", "", `{"username":"mallory","password":"not this one"}`)
	assert.Equal(t, 400, wrong.Status)
	assert.Equal(t, "IncorrectPasswordError", wrong.Code())
	assert.Equal(t, without(wrong), without(unknown), "who isn't there isn't told apart")
	assert.NotContains(t, h.Printed.String(), "not this one")
	assert.NotContains(t, h.Printed.String(), "mallory", "it might be a password in the wrong field")
	assert.Contains(t, h.Printed.String(), `"detail":{"name":"abe","way":"password"}`)
}

func TestTokensEnd(t *testing.T) {
	h := newHouse(t)
	first, second := h.SignIn("abe"), h.SignIn("abe")
	list := struct{ Tokens []string }{}
	h.Do("GET", "/api/v2/tokens", first, "").Into(&list)
	assert.GreaterOrEqual(t, len(list.Tokens), 2)
	for _, handle := range list.Tokens {
		assert.NotContains(t, []string{first, second}, handle)
		assert.Equal(t, 401, h.Do("GET", "/api/v2/jobs", handle, "").Status, "a handle is no token")
	}
	assert.Equal(t, 200, h.Do("DELETE", "/api/v2/authn/basic/logout", first, "").Status)
	assert.Equal(t, 401, h.Do("GET", "/api/v2/jobs", first, "").Status)
	assert.Equal(t, 200, h.Do("GET", "/api/v2/jobs", second, "").Status)
	assert.Equal(t, 200, h.Do("DELETE", "/api/v2/tokens/"+second, second, "").Status)
	assert.Equal(t, 401, h.Do("GET", "/api/v2/jobs", second, "").Status)
	assert.Equal(t, 404, h.Do("DELETE", "/api/v2/tokens/"+h.SignIn("abe"), h.tokens["vic"], "").Status, "another's")

	made := h.Do("POST", "/api/v2/tokens/application", h.tokens["abe"], `{}`).JSON()
	assert.Equal(t, true, made["application"])
	application := made["token"].(string)
	assert.Equal(t, 200, h.Do("GET", "/api/v2/jobs", application, "").Status)
	basic := func(user, password string) int {
		u := url.UserPassword(user, password)
		p, _ := u.Password()
		r := h.Do("GET", "/api/v2/jobs", "", "", "Authorization", "Basic "+base64of(u.Username()+":"+p))
		return r.Status
	}
	assert.Equal(t, 200, basic("abe", application))
	assert.Equal(t, 401, basic("ann", application))
	assert.Equal(t, 401, basic("abe", h.tokens["abe"]), "only an application's token")
	assert.Equal(t, 401, basic("abe", servertest.Password))
	for _, bad := range []string{"", "x", "Bearer", "Bearer ", "Basic", "Basic !!!", "Bearer a b", "Token " + application, "Bearer " + application[:len(application)-2], "Bearer " + application + "x"} {
		if bad == "" {
			continue
		}
		assert.Equal(t, 401, h.Do("GET", "/api/v2/jobs", "", "", "Authorization", bad).Status, bad)
		assert.Equal(t, "Your token is invalid.", h.Do("GET", "/api/v2/jobs", "", "", "Authorization", bad).JSON()["message"], bad)
	}

	require.NoError(t, h.People.Disable(t.Context(), "abe", true))
	h.Eventually("who is disabled is out", func() bool { return h.Do("GET", "/api/v2/jobs", application, "").Status == 401 })
	require.NoError(t, h.People.Disable(t.Context(), "abe", false))
}

func TestASessionIsRefreshed(t *testing.T) {
	h := newHouse(t)
	ask := func(form url.Values) (api.Tokens, *servertest.Answer) {
		a := h.Do("POST", "/oauth/token", "", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		out := api.Tokens{}
		a.Into(&out)
		return out, a
	}
	one, a := ask(url.Values{"grant_type": {"password"}, "username": {"vera"}, "password": {servertest.Password}})
	require.Equal(t, 200, a.Status, a.Body)
	assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	assert.Equal(t, "Bearer", one.TokenType)
	assert.Equal(t, 900, one.ExpiresIn)
	me := api.WhoAmI{}
	h.Do("GET", "/api/v3/whoami", one.AccessToken, "").Into(&me)
	assert.Equal(t, "vera", me.Name)
	assert.Equal(t, []api.VC{{Name: "vision"}}, me.Grants.VirtualClusters)
	two, a := ask(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {one.RefreshToken}})
	require.Equal(t, 200, a.Status, a.Body)
	assert.NotEqual(t, one.RefreshToken, two.RefreshToken)
	assert.Equal(t, 200, h.Do("POST", "/oauth/revoke", "", "token="+two.RefreshToken).Status)
	for _, t2 := range []string{one.AccessToken, two.AccessToken} {
		assert.Equal(t, 401, h.Do("GET", "/api/v3/whoami", t2, "").Status)
	}
	_, a = ask(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {two.RefreshToken}})
	assert.Equal(t, 400, a.Status)
	assert.Equal(t, "invalid_grant", a.JSON()["error"])
	_, a = ask(url.Values{"grant_type": {"client_credentials"}})
	assert.Equal(t, "unsupported_grant_type", a.JSON()["error"])
	assert.Equal(t, 401, h.Do("GET", "/api/v3/whoami", two.RefreshToken, "").Status, "it opens nothing by itself")
	assert.NotContains(t, h.Printed.String(), two.RefreshToken)
}

// The browser sends the cookie of an ended session until the cookie expires, because no script can remove it.
func TestABrowserWhoseSessionHasEndedSignsInAndOut(t *testing.T) {
	h := newHouse(t)
	begin := func(who, cookie string) *servertest.Answer {
		return h.Do("POST", "/api/v3/session", "", `{"username":"`+who+`","password":"`+servertest.Password+`"}`, "Cookie", cookie)
	}
	cookie := func(a *servertest.Answer) string {
		set, err := http.ParseSetCookie(a.Header.Get("Set-Cookie"))
		require.NoError(t, err, a.Body)
		return set.Name + "=" + set.Value
	}
	ended := cookie(begin("abe", ""))
	require.NoError(t, h.Tokens.Revoke(t.Context(), "abe", strings.TrimPrefix(ended, server.SessionCookie+"=")))
	h.Eventually("the session has ended", func() bool { return h.Do("GET", "/api/v3/session", "", "", "Cookie", ended).Status == 401 })
	twice := server.SessionCookie + "=a; " + server.SessionCookie + "=b"
	for _, bad := range []string{ended, server.SessionCookie + "=nonsense", twice} {
		a := begin("abe", bad)
		require.Equal(t, 200, a.Status, a.Body)
		assert.Equal(t, "abe", h.Do("GET", "/api/v3/session", "", "", "Cookie", cookie(a)).JSON()["name"])
		out := h.Do("DELETE", "/api/v3/session", "", "", "Cookie", bad)
		assert.Equal(t, 200, out.Status, out.Body)
		assert.Contains(t, out.Header.Get("Set-Cookie"), server.SessionCookie+"=; Path=/; Max-Age=0")
		assert.Equal(t, 200, h.Do("GET", "/sign-in", "", "", "Cookie", bad).Status)
	}
	wrong := h.Do("POST", "/api/v3/session", "", `{"username":"abe","password":"not this one"}`, "Cookie", ended)
	assert.Equal(t, "IncorrectPasswordError", wrong.Code(), wrong.Body)
	for _, method := range []string{"POST", "DELETE"} {
		a := h.Do(method, "/api/v3/session", "nonsense", `{}`)
		assert.Equal(t, 401, a.Status, "who shows a token is judged by it: %s", a.Body)
		assert.Empty(t, a.Header.Get("Set-Cookie"))
	}
}

func TestGrantsActAtOnce(t *testing.T) {
	h := newHouse(t)
	h.person(t, "mia", "vision")
	assert.Equal(t, 403, h.Submit(h.tokens["mia"], "moving", "speech").Status)
	_, err := h.People.Update(t.Context(), "mia", func(u *v1.UserSpec) error { u.Groups = []string{"speech"}; return nil })
	require.NoError(t, err)
	h.Eventually("a grant comes", func() bool { return h.Submit(h.tokens["mia"], "moving", "speech").Status == 202 })
	assert.Equal(t, 403, h.Submit(h.tokens["mia"], "again", "vision").Status)
	// A job can be retried only if its owner's current grants allow the job.
	_, err = h.People.Update(t.Context(), "mia", func(u *v1.UserSpec) error { u.Groups = []string{"vision"}; return nil })
	require.NoError(t, err)
	h.Eventually("a grant goes", func() bool { return h.Submit(h.tokens["mia"], "again", "speech").Status == 403 })
	a := h.as("mia", "POST", "/api/v3/jobs/mia/moving/retry", "")
	assert.Equal(t, 403, a.Status, a.Body)
	assert.Equal(t, 403, h.as("root", "POST", "/api/v3/jobs/mia/moving/retry", "").Status, "an administrator doesn't lend theirs")
	assert.Equal(t, 200, h.as("mia", "POST", "/api/v3/jobs/mia/moving/stop", "").Status, "it is still their own")
}

func TestTheFirstAdministratorComesOnce(t *testing.T) {
	h := newHouse(t)
	page := h.Do("GET", "/first", "", "")
	assert.Equal(t, 200, page.Status)
	assert.Contains(t, page.Header.Get("Content-Security-Policy"), "default-src 'none'")
	code, _, err := h.People.OfferFirst(t.Context())
	require.NoError(t, err)
	assert.False(t, code.IsSet(), "there is one already")
	a := h.Do("POST", "/api/v3/first", "", `{"code":"AAAAAAAAAAAAAAAAAAAAAAAAAA","username":"me2","password":"a long password"}`)
	assert.Equal(t, 403, a.Status, a.Body)
	assert.Contains(t, a.JSON()["remedy"], "paictl service start -n rest-server")
}

func TestSignInsThatAreTooManyAreNotInTheAudit(t *testing.T) {
	h := newHouse(t)
	for {
		before := strings.Count(h.Printed.String(), `"verb":"sign-in"`)
		a := h.Do("POST", "/api/v2/token", "", `{"username":"mallory","password":"not this one"}`)
		written := strings.Count(h.Printed.String(), `"verb":"sign-in"`) - before
		if a.Status == 429 {
			assert.Zero(t, written)
			return
		}
		require.Equal(t, 400, a.Status, a.Body)
		require.Equal(t, 1, written)
	}
}
