package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecretsOfProvidersStayOutOfTheValues(t *testing.T) {
	cfg := gpuCluster(t, 1, `rest-server:
  names: [gpu.example.org]
  signIn:
    oidc: {lab: {issuer: "https://login.example.org", clientId: paictl, clientSecret: hunter2}}
    ldap: {campus: {url: "ldaps://ldap.example.org", bindDN: "cn=x", bindPassword: hunter3, users: {base: "ou=people"}}}
`)
	c, found, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	s := c.Get(ServerService)
	assert.Equal(t, "hunter2", s.Credentials["signIn.oidc.lab.clientSecret"].Reveal())
	assert.Equal(t, "hunter3", s.Credentials["signIn.ldap.campus.bindPassword"].Reveal())
	assert.Equal(t, "rest-server-credentials", s.Values["credentialsSecret"])
	signIn := s.Values["signIn"].(map[string]any)
	assert.NotContains(t, signIn["oidc"].(map[string]any)["lab"], "clientSecret")
	assert.NotContains(t, signIn["ldap"].(map[string]any)["campus"], "bindPassword")
	var secrets []string
	for _, p := range SecretPaths(cfg) {
		secrets = append(secrets, p.String())
	}
	assert.Subset(t, secrets, []string{"rest-server.signIn.oidc.lab.clientSecret", "rest-server.signIn.ldap.campus.bindPassword"})
}

func TestMistakesInProvidersAreNamed(t *testing.T) {
	const users = `users: {base: "ou=people"}`
	for section, want := range map[string]string{
		`{oidc: {lab: {issuer: "http://login.example.org", clientId: x}}}`:                                                              "rest-server.signIn.oidc.lab.issuer",
		`{oidc: {lab: {issuer: "https://login.example.org"}}}`:                                                                          "clientId",
		`{oidc: {Lab: {issuer: "https://login.example.org", clientId: x}}}`:                                                             "lower-case letters",
		`{oidc: {lab: {issuer: "https://login.example.org", clientId: x, newPeople: maybe}}}`:                                           "rest-server.signIn.oidc.lab.newPeople",
		`{oidc: {lab: {issuer: "https://login.example.org", clientId: x, secret: y}}}`:                                                  "secret",
		`{ldap: {lab: {url: "ldap://h", bindDN: x, bindPassword: y, ` + users + `}}}`:                                                   "startTLS: true",
		`{ldap: {lab: {url: "ldaps://h", startTLS: true, bindDN: x, bindPassword: y, ` + users + `}}}`:                                  "ldaps already uses TLS",
		`{ldap: {lab: {url: "ldaps://h", bindDN: x, ` + users + `}}}`:                                                                   "set bindPassword",
		`{ldap: {lab: {url: "ldaps://h", bindDN: x, bindPassword: y}}}`:                                                                 "users",
		`{ldap: {lab: {url: "ldaps://h", bindDN: x, bindPassword: y, allowedGroups: [a], ` + users + `}}}`:                              "set groups.base",
		`{ldap: {lab: {url: "ldaps://h", bindDN: x, bindPassword: y, users: {base: a, name: "uid)(x"}}}}`:                               "rest-server.signIn.ldap.lab.users.name",
		`{oidc: {lab: {issuer: "https://h", clientId: x}}, ldap: {lab: {url: "ldaps://h", bindDN: x, bindPassword: y, ` + users + `}}}`: "both called lab",
		`{returnPages: ["http://localhost:8123/callback"]}`:                                                                             "rest-server.signIn.returnPages",
		`{returnPages: ["https://gpu.example.org/grafana/"]}`:                                                                           "is a page of this server",
		`{recheck: {everySeconds: 600}}`:                                                                                                "60 minutes are less than 10 times",
		`{recheck: {graceMinutes: 5, everySeconds: 60}}`:                                                                                "rest-server.signIn.recheck.graceMinutes",
		`{recheck: {everySeconds: 1}}`:                                                                                                  "rest-server.signIn.recheck.everySeconds",
	} {
		_, found, err := Load(t.Context(), gpuCluster(t, 1, "rest-server: {names: [gpu.example.org], signIn: "+section+"}\n"), Options{})
		require.NoError(t, err)
		require.Error(t, found.Err(), section)
		text := ""
		for _, f := range found {
			text += f.String() + " " + f.Remedy + "\n"
		}
		assert.Contains(t, text, want, section)
	}
}
