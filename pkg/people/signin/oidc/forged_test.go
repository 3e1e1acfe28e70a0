package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/signin/oidc"
)

// liar is an issuer that issues an ID token of the test's choice.
type liar struct {
	*httptest.Server
	key      *ecdsa.PrivateKey
	token    string
	userinfo map[string]any
	names    bool
	status   int // of an answer that isn't yes
	fails    string
	says     map[string]any // added to its description
	hangsUp  bool           // it reads the request, and closes the connection without a response
	sends    string         // where it redirects requests to
}

func newLiar(t *testing.T) *liar {
	t.Helper()
	l := &liar{}
	var err error
	l.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(v))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		says := map[string]any{"issuer": l.URL, "authorization_endpoint": l.URL + "/auth", "token_endpoint": l.URL + "/token", "jwks_uri": l.URL + "/keys", "userinfo_endpoint": l.URL + "/userinfo",
			"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}, "authorization_response_iss_parameter_supported": l.names}
		maps.Copy(says, l.says)
		answer(w, says)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: l.key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if l.hangsUp {
			panic(http.ErrAbortHandler)
		}
		if l.sends != "" {
			http.Redirect(w, r, l.sends, http.StatusTemporaryRedirect)
			return
		}
		if l.status != 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(l.status)
			_, _ = w.Write([]byte(l.fails))
			return
		}
		answer(w, map[string]any{"access_token": "access", "token_type": "Bearer", "id_token": l.token})
	})
	mux.HandleFunc("/userinfo", func(w http.ResponseWriter, _ *http.Request) { answer(w, l.userinfo) })
	l.Server = httptest.NewTLSServer(mux)
	t.Cleanup(l.Close)
	return l
}

func (l *liar) open(t *testing.T) *oidc.Issuer {
	t.Helper()
	return open(t, oidc.Options{Name: "lab", Issuer: l.URL, ClientID: "paictl", ClientSecret: "a secret of more than thirty-two bytes", CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw})),
		Claims: oidc.Claims{Name: "preferred_username", Email: "email", Groups: "realm.groups"}, Return: returns})
}

func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	require.NoError(t, err)
	text, err := jwt.Signed(s).Claims(claims).Serialize()
	require.NoError(t, err)
	return text
}

func unsigned(claims map[string]any) string {
	text, _ := json.Marshal(claims)
	b := base64.RawURLEncoding
	return b.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + b.EncodeToString(text) + "."
}

func TestForgedIDTokensAreRefused(t *testing.T) {
	l := newLiar(t)
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	i := l.open(t)
	for what, c := range map[string]struct {
		make func(map[string]any) string
		err  error
	}{
		"it is right": {func(c map[string]any) string { return sign(t, jose.ES256, l.key, c) }, nil},
		"unsigned":    {unsigned, oidc.ErrRefused},
		"of another client": {func(c map[string]any) string {
			c["aud"] = "another"
			return sign(t, jose.ES256, l.key, c)
		}, oidc.ErrRefused},
		"of another issuer": {func(c map[string]any) string {
			c["iss"] = "https://evil.example.org"
			return sign(t, jose.ES256, l.key, c)
		}, oidc.ErrRefused},
		"expired": {func(c map[string]any) string {
			c["exp"] = time.Now().Add(-time.Hour).Unix()
			return sign(t, jose.ES256, l.key, c)
		}, oidc.ErrRefused},
		"signed by a stranger": {func(c map[string]any) string { return sign(t, jose.ES256, stranger, c) }, oidc.ErrRefused},
		"signed with the client's secret": {func(c map[string]any) string {
			return sign(t, jose.HS256, []byte("a secret of more than thirty-two bytes"), c)
		}, oidc.ErrRefused},
		"of another sign-in": {func(c map[string]any) string {
			c["nonce"] = "another"
			return sign(t, jose.ES256, l.key, c)
		}, oidc.ErrMismatch},
		"without a nonce": {func(c map[string]any) string {
			delete(c, "nonce")
			return sign(t, jose.ES256, l.key, c)
		}, oidc.ErrMismatch},
		"none at all": {func(map[string]any) string { return "" }, oidc.ErrRefused},
		"no token":    {func(map[string]any) string { return "x.y" }, oidc.ErrRefused},
		"groups that are none": {func(c map[string]any) string {
			c["realm"] = map[string]any{"groups": []any{1}}
			return sign(t, jose.ES256, l.key, c)
		}, oidc.ErrRefused},
	} {
		t.Run(what, func(t *testing.T) {
			_, ask, err := i.Begin()
			require.NoError(t, err)
			l.token = c.make(map[string]any{"iss": l.URL, "aud": "paictl", "sub": "1", "exp": time.Now().Add(time.Hour).Unix(), "nonce": ask.Nonce,
				"preferred_username": "ann@example.org", "email": "ann@example.org", "email_verified": false, "realm": map[string]any{"groups": []string{"b", "a", "b"}}})
			id, err := i.Finish(t.Context(), url.Values{"state": {ask.State}, "code": {"x"}}, ask)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "ann", id.Name)
			assert.Empty(t, id.Email, "it isn't verified")
			assert.Equal(t, []string{"a", "b"}, id.Groups)
			assert.False(t, id.Refresh.IsSet())
		})
	}
}

func TestClaimsThatAreMissingComeFromUserinfo(t *testing.T) {
	l := newLiar(t)
	i := l.open(t)
	base := map[string]any{"iss": l.URL, "aud": "paictl", "sub": "1", "exp": time.Now().Add(time.Hour).Unix()}
	finish := func(t *testing.T, more, userinfo map[string]any) ([]string, error) {
		t.Helper()
		_, ask, err := i.Begin()
		require.NoError(t, err)
		claims := maps.Clone(base)
		claims["nonce"] = ask.Nonce
		maps.Copy(claims, more)
		l.token, l.userinfo = sign(t, jose.ES256, l.key, claims), userinfo
		id, err := i.Finish(t.Context(), url.Values{"state": {ask.State}, "code": {"x"}}, ask)
		if err != nil {
			return nil, err
		}
		assert.Equal(t, "ann", id.Name)
		return id.Groups, nil
	}
	groups, err := finish(t, nil, map[string]any{"sub": "1", "preferred_username": "ann", "realm": map[string]any{"groups": "a"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, groups)
	groups, err = finish(t, map[string]any{"preferred_username": "ann"}, map[string]any{"sub": "1", "preferred_username": "eve"})
	require.NoError(t, err, "what is signed counts")
	assert.Empty(t, groups, "who has no claim is in no group")
	_, err = finish(t, nil, map[string]any{"sub": "2", "preferred_username": "eve"})
	require.ErrorIs(t, err, oidc.ErrRefused, "it belongs to another person")
	_, err = finish(t, map[string]any{"_claim_names": map[string]any{"realm.groups": "src1"}, "_claim_sources": map[string]any{"src1": map[string]any{"endpoint": "https://evil.example.org"}}}, map[string]any{"sub": "1"})
	assert.ErrorContains(t, err, "more groups")
}

func TestAnIssuerThatNamesItselfMustDoSo(t *testing.T) {
	l := newLiar(t)
	l.names = true
	i := l.open(t)
	_, ask, err := i.Begin()
	require.NoError(t, err)
	l.token = sign(t, jose.ES256, l.key, map[string]any{"iss": l.URL, "aud": "paictl", "sub": "1", "exp": time.Now().Add(time.Hour).Unix(), "nonce": ask.Nonce, "preferred_username": "a", "email": "b", "realm": map[string]any{"groups": "c"}})
	_, err = i.Finish(t.Context(), url.Values{"state": {ask.State}, "code": {"x"}}, ask)
	require.ErrorIs(t, err, oidc.ErrMismatch)
	_, err = i.Finish(t.Context(), url.Values{"state": {ask.State}, "code": {"x"}, "iss": {l.URL}}, ask)
	require.NoError(t, err)
	l.Close()
	_, err = i.Finish(t.Context(), url.Values{"state": {ask.State}, "code": {"x"}, "iss": {l.URL}}, ask)
	assert.ErrorIs(t, err, people.ErrUnavailable)
}

func TestOnlyOneAnswerSaysThatAPersonIsGone(t *testing.T) {
	l := newLiar(t)
	i := l.open(t)
	for _, c := range []struct {
		status             int
		fails              string
		gone, unsaid, lost bool
	}{
		{400, `{"error":"invalid_grant"}`, true, false, false},
		{401, `{"error":"invalid_grant"}`, true, false, false},
		{500, `{"error":"invalid_grant"}`, false, false, true},
		{400, `{"error":"invalid_request"}`, false, true, false},
		{500, `{"error":"server_error"}`, false, true, false},
		{401, `{"error":"invalid_client"}`, false, false, false},
		{404, `<html>`, false, false, false},
		{502, `<html>`, false, false, true},
		{200, `<html>`, false, false, true},
	} {
		l.status, l.fails = c.status, c.fails
		_, err := i.Check(t.Context(), "1", "refresh")
		require.Error(t, err)
		assert.Equal(t, c.gone, errors.Is(err, signin.ErrGone), c)
		assert.Equal(t, c.unsaid, errors.Is(err, signin.ErrUnsaid), c)
		assert.Equal(t, c.lost, errors.Is(err, signin.ErrLost), c)
		assert.Equal(t, !c.gone, errors.Is(err, people.ErrUnavailable), c)
	}
	l.hangsUp = true
	_, err := i.Check(t.Context(), "1", "refresh")
	require.ErrorIs(t, err, signin.ErrLost, "it was asked")
	l.Close()
	_, err = i.Check(t.Context(), "1", "refresh")
	require.ErrorIs(t, err, people.ErrUnavailable)
	assert.NotErrorIs(t, err, signin.ErrLost, "it could not be asked")
}

func TestAnAnswerWithoutAnIDTokenMaySayNoGroups(t *testing.T) {
	l := newLiar(t)
	i := l.open(t)
	said := map[string]any{"iss": l.URL, "aud": "paictl", "sub": "1", "exp": time.Now().Add(time.Hour).Unix()}
	for what, c := range map[string]struct {
		token    string
		userinfo map[string]any
		unsaid   bool
		groups   []string
	}{
		"neither says groups":         {"", map[string]any{"sub": "1"}, true, nil},
		"userinfo says groups":        {"", map[string]any{"sub": "1", "realm": map[string]any{"groups": []string{"a"}}}, false, []string{"a"}},
		"userinfo says that none are": {"", map[string]any{"sub": "1", "realm": map[string]any{"groups": []string{}}}, false, nil},
		"an ID token without groups":  {sign(t, jose.ES256, l.key, said), map[string]any{"sub": "1"}, false, nil},
	} {
		l.token, l.userinfo = c.token, c.userinfo
		id, err := i.Check(t.Context(), "1", "refresh")
		require.NoError(t, err, what)
		assert.Equal(t, c.unsaid, id.GroupsUnsaid, what)
		assert.ElementsMatch(t, c.groups, id.Groups, what)
	}
}
