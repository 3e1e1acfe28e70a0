package settings_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/settings"
)

func TestProvidersAreRead(t *testing.T) {
	s, err := read(t, `{"names": ["gpu.example.org"], "signIn": {"oidc": {"lab": {"issuer": "https://login.example.org", "clientId": "paictl", "newPeople": "add", "claims": {"email": ""}}},
		"ldap": {"campus": {"url": "ldap://ldap.example.org:389", "startTLS": true, "bindDN": "cn=x", "users": {"base": "ou=people"}}}}}`)
	require.NoError(t, err)
	lab := s.SignIn.OIDC["lab"]
	assert.Equal(t, settings.NewAdd, lab.NewPeople)
	require.NotNil(t, lab.Claims.Email)
	assert.Empty(t, *lab.Claims.Email, "none is different from the default")
	assert.Nil(t, lab.Claims.Name)
	assert.Equal(t, "ou=people", s.SignIn.LDAP["campus"].Users.Base)
	assert.Equal(t, 30*time.Second, s.SignIn.Recheck.Every())
	assert.Equal(t, time.Hour, s.SignIn.Recheck.Grace())
}

func TestProvidersThatMakeNoSenseAreRefused(t *testing.T) {
	const users = `"users": {"base": "ou=people"}`
	for text, says := range map[string]string{
		`{"oidc": {"lab": {"issuer": "http://login.example.org", "clientId": "x"}}}`:                                                       `signIn.oidc.lab.issuer: "http://login.example.org" is not an https://`,
		`{"oidc": {"lab": {"issuer": "https://login.example.org"}}}`:                                                                       "signIn.oidc.lab.clientId: it is needed",
		`{"oidc": {"La b": {"issuer": "https://login.example.org", "clientId": "x"}}}`:                                                     "can't be a name",
		`{"oidc": {"lab": {"issuer": "https://login.example.org", "clientId": "x", "newPeople": "maybe"}}}`:                                "signIn.oidc.lab.newPeople",
		`{"oidc": {"lab": {"issuer": "https://login.example.org", "clientId": "x", "clientSecret": "hunter"}}}`:                            `unknown field "clientSecret"`,
		`{"ldap": {"lab": {"url": "ldap://h", "bindDN": "x", ` + users + `}}}`:                                                             "signIn.ldap.lab.startTLS: passwords would go over the network",
		`{"ldap": {"lab": {"url": "ldaps://h", "startTLS": true, "bindDN": "x", ` + users + `}}}`:                                          "TLS has already begun",
		`{"ldap": {"lab": {"url": "https://h", "bindDN": "x", ` + users + `}}}`:                                                            "neither ldaps://HOST nor ldap://HOST",
		`{"ldap": {"lab": {"url": "ldaps://h", ` + users + `}}}`:                                                                           "signIn.ldap.lab.bindDN: it is needed",
		`{"ldap": {"lab": {"url": "ldaps://h", "bindDN": "x"}}}`:                                                                           "signIn.ldap.lab.users.base: it is needed",
		`{"ldap": {"lab": {"url": "ldaps://h", "bindDN": "x", "users": {"base": "x", "name": "uid)(x"}}}}`:                                 "is not the name of an attribute",
		`{"ldap": {"lab": {"url": "ldaps://h", "bindDN": "x", "allowedGroups": ["a"], ` + users + `}}}`:                                    "without groups.base people are not in any group",
		`{"oidc": {"lab": {"issuer": "https://h", "clientId": "x"}}, "ldap": {"lab": {"url": "ldaps://h", "bindDN": "x", ` + users + `}}}`: "a directory has this name, too",
		`{"recheck": {"everySeconds": 1}}`:                                                                                                 "signIn.recheck.everySeconds: 1 is not between",
		`{"recheck": {"everySeconds": 60, "graceMinutes": 9}}`:                                                                             "signIn.recheck.graceMinutes: 9 minutes are less than 10 times",
		`{"recheck": {"graceMinutes": 1}}`:                                                                                                 "signIn.recheck.graceMinutes: 1 is not between",
	} {
		_, err := read(t, `{"names": ["gpu.example.org"], "signIn": `+text+`}`)
		assert.ErrorContains(t, err, says, text)
	}
	_, err := read(t, `{"signIn": {"oidc": {"lab": {"issuer": "https://login.example.org", "clientId": "x"}}}}`)
	assert.ErrorContains(t, err, "set names to where people reach the server")
}
