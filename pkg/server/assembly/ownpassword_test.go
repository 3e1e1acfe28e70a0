package assembly_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people/signin/providertest"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/servertest"
)

func TestAPasswordOfADirectoryGivesNoOneAPasswordOfTheCluster(t *testing.T) {
	l := openLab(t, nil)
	enter := func(password string) string {
		a, tokens := l.token(url.Values{"grant_type": {"password"}, "username": {"kim"}, "password": {password}})
		require.Equal(t, 200, a.Status, a.Body)
		return tokens.AccessToken
	}
	const chosen = "staple battery correct"
	ways := func(old string) map[string]func(token string) *servertest.Answer {
		ask := func(path, body string) func(string) *servertest.Answer {
			return func(token string) *servertest.Answer { return l.Do("PUT", path, token, body) }
		}
		return map[string]func(string) *servertest.Answer{
			"v3":             ask("/api/v3/users/kim/password", fmt.Sprintf(`{"password":%q,"oldPassword":%q}`, chosen, old)),
			"v2":             ask("/api/v2/users/kim/password", fmt.Sprintf(`{"newPassword":%q,"oldPassword":%q}`, chosen, old)),
			"v2, themselves": ask("/api/v2/users/me", fmt.Sprintf(`{"patch":true,"data":{"username":"kim","newPassword":%q,"oldPassword":%q}}`, chosen, old)),
		}
	}
	token := enter(providertest.Password)
	stored := func() bool {
		p, err := l.People.Person("kim")
		require.NoError(t, err)
		own, err := l.People.Password(t.Context(), p)
		require.NoError(t, err)
		return own != nil
	}
	for what, change := range ways(providertest.Password) {
		a := change(token)
		assert.Equal(t, 403, a.Status, "%s: %s", what, a.Body)
		assert.Contains(t, a.Body, "paictl user passwd kim", what)
		assert.False(t, stored(), what)
	}
	require.NoError(t, l.People.SetPassword(t.Context(), "kim", servertest.Password))
	token = enter(servertest.Password)
	for what, change := range ways(providertest.Password) {
		a := change(token)
		assert.Equal(t, 400, a.Status, "%s: the directory's password is not the one of the cluster: %s", what, a.Body)
	}
	for what, change := range ways(servertest.Password) {
		assert.Less(t, change(token).Status, 300, what)
		require.NoError(t, l.People.SetPassword(t.Context(), "kim", secret.String(servertest.Password)))
		token = enter(servertest.Password)
	}
}
