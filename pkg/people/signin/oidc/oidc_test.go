package oidc_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/signin/oidc"
	"github.com/openpai/paictl/pkg/people/signin/providertest"
)

const returns = "https://pai.example.org/api/v3/signin/oidc/lab/return"

func options(i *providertest.Issuer) oidc.Options {
	return oidc.Options{Name: "lab", Issuer: i.URL, CA: i.CA, ClientID: providertest.ClientID, ClientSecret: providertest.ClientSecret, Scopes: []string{"profile", "email", "groups", "offline_access"},
		Claims: oidc.Claims{Name: "preferred_username", Email: "email", DisplayName: "name", Groups: "groups"}, Return: returns}
}

func open(t *testing.T, o oidc.Options) *oidc.Issuer {
	t.Helper()
	i, err := oidc.New(o)
	require.NoError(t, err)
	return i
}

// query returns the parameters in the issuer's redirect of a browser to paictl.
func query(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	require.Equal(t, returns, u.Scheme+"://"+u.Host+u.Path)
	return u.Query()
}

func TestAnIssuerVouchesForPeople(t *testing.T) {
	directory := providertest.Slapd(t)
	dex := providertest.Dex(t, directory, returns)
	i := open(t, options(dex))
	address, ask, err := i.Begin()
	require.NoError(t, err)
	at, err := url.Parse(address)
	require.NoError(t, err)
	assert.Equal(t, "S256", at.Query().Get("code_challenge_method"))
	assert.NotContains(t, address, ask.Verifier)
	back := query(t, dex.Browser().SignIn(address, "kim"))
	id, err := i.Finish(t.Context(), back, ask)
	require.NoError(t, err)
	assert.Equal(t, "lab", id.Provider)
	assert.Equal(t, "kim", id.Name)
	assert.Equal(t, "kim@example.org", id.Email)
	assert.Equal(t, "Kim Kimsen", id.DisplayName)
	assert.Equal(t, []string{"ai-team", "operators"}, id.Groups)
	require.True(t, id.Refresh.IsSet())
	_, err = i.Finish(t.Context(), back, ask)
	require.ErrorIs(t, err, oidc.ErrRefused, "a code is good for one use")

	directory.Leave("ai-team", "kim")
	now, err := i.Check(t.Context(), id.Subject, id.Refresh)
	require.NoError(t, err)
	assert.Equal(t, []string{"operators"}, now.Groups)
	assert.Equal(t, "kim", now.Name)
	assert.NotEqual(t, id.Refresh, now.Refresh, "Dex gives another each time")
	_, err = i.Check(t.Context(), "someone-else", now.Refresh)
	require.Equal(t, signin.ErrGone, err, "the word is about another person")

	dex.Stop()
	_, err = i.Check(t.Context(), id.Subject, now.Refresh)
	require.ErrorIs(t, err, people.ErrUnavailable)
	_, err = i.Check(t.Context(), id.Subject, "")
	require.ErrorIs(t, err, people.ErrUnavailable)
	dex.Start() // its store was in memory
	_, err = i.Check(t.Context(), id.Subject, now.Refresh)
	require.ErrorIs(t, err, people.ErrUnavailable, "Dex says invalid_request, which doesn't mean that the person is gone")
	assert.ErrorIs(t, err, signin.ErrUnsaid)
}

func TestAnAnswerToAnotherQuestionIsRefused(t *testing.T) {
	dex := providertest.Dex(t, providertest.Slapd(t), returns)
	i, other := open(t, options(dex)), options(dex)
	other.ClientID = providertest.OtherClient
	another := open(t, other)
	for what, c := range map[string]struct {
		by     *oidc.Issuer
		change func(url.Values, *oidc.PendingRequest)
		err    error
	}{
		"another state":      {i, func(_ url.Values, a *oidc.PendingRequest) { a.State += "x" }, oidc.ErrMismatch},
		"no state":           {i, func(q url.Values, a *oidc.PendingRequest) { q.Del("state"); a.State = "" }, oidc.ErrMismatch},
		"another nonce":      {i, func(_ url.Values, a *oidc.PendingRequest) { a.Nonce += "x" }, oidc.ErrMismatch},
		"no nonce":           {i, func(_ url.Values, a *oidc.PendingRequest) { a.Nonce = "" }, oidc.ErrMismatch},
		"another verifier":   {i, func(_ url.Values, a *oidc.PendingRequest) { a.Verifier += "x" }, oidc.ErrRefused},
		"another issuer":     {i, func(q url.Values, _ *oidc.PendingRequest) { q.Set("iss", "https://evil.example.org") }, oidc.ErrMismatch},
		"another client":     {another, func(url.Values, *oidc.PendingRequest) {}, oidc.ErrRefused},
		"a code made up":     {i, func(q url.Values, _ *oidc.PendingRequest) { q.Set("code", "x") }, oidc.ErrRefused},
		"no code":            {i, func(q url.Values, _ *oidc.PendingRequest) { q.Del("code") }, oidc.ErrRefused},
		"a person's refusal": {i, func(q url.Values, _ *oidc.PendingRequest) { q.Set("error", "access_denied") }, oidc.ErrRefused},
	} {
		t.Run(what, func(t *testing.T) {
			address, ask, err := i.Begin()
			require.NoError(t, err)
			back := query(t, dex.Browser().SignIn(address, "kim"))
			c.change(back, &ask)
			_, err = c.by.Finish(t.Context(), back, ask)
			require.ErrorIs(t, err, c.err)
			assert.NotContains(t, err.Error(), providertest.ClientSecret)
		})
	}
}

func TestAnIssuerThatIsAwayIsAskedLater(t *testing.T) {
	dex := providertest.Dex(t, providertest.Slapd(t), returns)
	dex.Stop()
	now := time.Now()
	o := options(dex)
	o.Now = func() time.Time { return now }
	i := open(t, o)
	_, _, err := i.Begin()
	require.ErrorIs(t, err, people.ErrUnavailable)
	dex.Start()
	_, _, err = i.Begin()
	require.ErrorIs(t, err, people.ErrUnavailable, "not at once")
	now = now.Add(6 * time.Second)
	_, _, err = i.Begin()
	require.NoError(t, err)

	untrusted := options(dex)
	untrusted.CA = ""
	_, _, err = open(t, untrusted).Begin()
	require.ErrorIs(t, err, people.ErrUnavailable, "its certificate is signed by no one who is trusted")
	renamed := options(dex)
	renamed.Issuer += "/"
	_, _, err = open(t, renamed).Begin()
	assert.ErrorIs(t, err, people.ErrUnavailable, "it calls itself something else")
}
