package app

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/peopletest"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
)

// shopOf returns an App with the people ann and bob. Each person has a session and an application token.
func shopOf(t *testing.T) (s *App, api *peopletest.API, session, application map[string]string) {
	t.Helper()
	api = peopletest.New(t, peopletest.User("ann"), peopletest.User("bob"))
	d, err := people.Open(api.Config(), people.Options{})
	require.NoError(t, err)
	tokens, err := token.Open(api.Config(), d, token.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Load(t.Context()))
	session, application = map[string]string{}, map[string]string{}
	for _, p := range d.Users() {
		pair, err := tokens.Session(t.Context(), p, token.New{})
		require.NoError(t, err)
		issued, err := tokens.Application(t.Context(), p, token.New{})
		require.NoError(t, err)
		session[p.Name], application[p.Name] = pair.Access.Reveal(), issued.Token.Reveal()
	}
	return &App{People: d, Tokens: tokens}, api, session, application
}

func TestWhoACallerIsByTheHeader(t *testing.T) {
	s, _, session, application := shopOf(t)
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for name, c := range map[string]struct{ header, want string }{
		"a session":                        {"Bearer " + session["ann"], "ann"},
		"an application token":             {"bearer  " + application["bob"], "bob"},
		"an application token as password": {basic("ann", application["ann"]), "ann"},
		"that of another person":           {basic("bob", application["ann"]), ""},
		"a session as password":            {basic("ann", session["ann"]), ""},
		"no name":                          {basic("", application["ann"]), ""},
		"no token":                         {"Bearer ", ""},
		"another scheme":                   {"Negotiate " + session["ann"], ""},
		"another token":                    {"Bearer " + session["ann"] + "x", ""},
		"nothing":                          {"", ""},
	} {
		got, err := s.Caller(t.Context(), c.header)
		assert.Equal(t, c.want == "", err != nil, name)
		assert.Equal(t, c.want, got.Name, name)
	}
}

func TestWhatACallerMayIsDecidedAgainWhileAStreamLasts(t *testing.T) {
	s, api, session, _ := shopOf(t)
	c, err := s.Caller(t.Context(), "Bearer "+session["ann"])
	require.NoError(t, err)
	d := s.For(c, Origin{})
	now, err := d.now()
	require.NoError(t, err)
	assert.False(t, now.Grants.Administrator)
	u := peopletest.User("ann")
	u.Spec.Disabled = true
	api.Put(u)
	require.NoError(t, s.People.Load(t.Context()))
	_, err = d.now()
	require.ErrorIs(t, err, ErrToken)
}

// where is a Lister that returns the virtual clusters of jobs.
type where struct {
	Lister
	vcs map[string]string // by USER/NAME
}

func (w where) Where(user, name string) (vc string, known bool) {
	vc, known = w.vcs[user+"/"+name]
	return vc, known
}

func TestOnlyNamesOfJobsThatACallerSeesAreTold(t *testing.T) {
	s := &App{Lister: where{vcs: map[string]string{"ann/mine": "nlp", "bob/seen": "vision", "bob/unseen": "nlp"}}}
	ann := Caller{Subject: rules.Subject{Name: "ann", Grants: rules.Grants{VCs: map[string]rules.VC{"nlp": {}, "vision": {SeeJobs: true}}}}}
	root := Caller{Subject: rules.Subject{Name: "root", Grants: rules.Grants{Administrator: true}}}
	for _, c := range []struct {
		caller          Caller
		user, job, want string
	}{
		{ann, "ann", "mine", "ann/mine"}, {ann, "ann", "gone", "ann/gone"}, {ann, "bob", "seen", "bob/seen"}, {ann, "bob", "unseen", ""}, {ann, "bob", "gone", ""},
		{root, "bob", "unseen", "bob/unseen"}, {root, "bob", "gone", "bob/gone"}, {Caller{}, "bob", "seen", ""},
	} {
		assert.Equal(t, c.want, s.For(c.caller, Origin{}).nameOf(c.user, c.job), "%s of %s/%s", c.caller.Name, c.user, c.job)
	}
}

func TestWhatGoesAlongToATaskSaysNothingOfWhoAsks(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/api/v3/jobs/ann/x/exec", http.NoBody)
	for name, value := range map[string]string{
		"Authorization": "Bearer secret", "Cookie": "session=secret", "X-Remote-User": "admin", "Impersonate-User": "admin", "Connection": "upgrade", "Upgrade": "websocket",
		"Sec-Websocket-Key": "k", "Sec-Websocket-Version": "13", "Sec-Websocket-Protocol": "base64url.bearer.authorization.k8s.io.secret, v5.channel.k8s.io",
	} {
		r.Header.Set(name, value)
	}
	got := clean(t.Context(), r, &url.URL{Scheme: "https", Host: "api", Path: "/exec"})
	assert.Equal(t, http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Key": {"k"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Protocol": {"v5.channel.k8s.io"},
	}, got.Header)
	assert.Equal(t, "api", got.Host)
}
