package ldap_test

import (
	"strings"
	"testing"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/signin/ldap"
	"github.com/openpai/paictl/pkg/people/signin/providertest"
	"github.com/openpai/paictl/pkg/secret"
)

func options(d *providertest.Directory) ldap.Options {
	return ldap.Options{Name: "lab", URL: d.TLS, CA: d.CA, BindDN: providertest.AdminDN, BindPassword: providertest.AdminPassword,
		Users:  ldap.Users{Base: "ou=people," + providertest.Base, Filter: "(objectClass=inetOrgPerson)", Name: "uid", Subject: "entryUUID", Email: "mail", DisplayName: "cn"},
		Groups: ldap.Groups{Base: "ou=groups," + providertest.Base, Filter: "(objectClass=groupOfNames)", Member: "member", Name: "cn"}}
}

func open(t *testing.T, o ldap.Options) *ldap.Directory {
	t.Helper()
	d, err := ldap.New(o)
	require.NoError(t, err)
	return d
}

func TestPeopleOfADirectorySignIn(t *testing.T) {
	server := providertest.Slapd(t)
	tls := options(server)
	startTLS := options(server)
	startTLS.URL, startTLS.StartTLS = server.URL, true
	for what, o := range map[string]ldap.Options{"ldaps": tls, "StartTLS": startTLS} {
		t.Run(what, func(t *testing.T) {
			d := open(t, o)
			id, err := d.SignIn(t.Context(), "kim", providertest.Password)
			require.NoError(t, err)
			assert.Equal(t, "kim", id.Name)
			assert.Equal(t, "kim@example.org", id.Email)
			assert.Equal(t, "Kim Kimsen", id.DisplayName)
			assert.Len(t, id.Subject, 36, "a UUID")
			assert.Equal(t, []string{"ai-team", "operators"}, id.Groups)
			again, err := d.Check(t.Context(), id.Subject, "")
			require.NoError(t, err)
			assert.Equal(t, id, again)
		})
	}
}

func TestWhoIsWrongHasOneAnswer(t *testing.T) {
	d := open(t, options(providertest.Slapd(t)))
	for what, c := range map[string][2]string{
		"a wrong password":            {"kim", "not this one"},
		"no such person":              {"mallory", providertest.Password},
		"an empty password":           {"kim", ""},
		"a pattern":                   {"k*", providertest.Password},
		"everyone":                    {"*", providertest.Password},
		"another filter":              {"kim)(objectClass=*", providertest.Password},
		"an or":                       {"x)(|(uid=kim)", providertest.Password},
		"a NUL":                       {"kim\x00", providertest.Password},
		"a DN":                        {providertest.PersonDN("kim"), providertest.Password},
		"the account that searches":   {"admin", providertest.AdminPassword},
		"no name":                     {"", providertest.Password},
		"a space":                     {"kim ", providertest.Password},
		"spaces":                      {"  kim", providertest.Password},
		"wide letters":                {"\uff4b\uff49\uff4d", providertest.Password},
		"a hyphen that isn't seen":    {"ki\u00adm", providertest.Password},
		"a long name":                 {strings.Repeat("k", 5000), providertest.Password},
		"a password that begins well": {"kim", providertest.Password + "\x00"},
	} {
		_, err := d.SignIn(t.Context(), c[0], secret.String(c[1]))
		assert.Equal(t, signin.ErrWrong, err, what)
	}
	id, err := d.SignIn(t.Context(), "*)(uid=*", providertest.Password)
	require.NoError(t, err, "a name is a name, whatever is in it")
	assert.Equal(t, "*)(uid=*", id.Name)
	assert.Empty(t, id.Groups)
	_, err = d.SignIn(t.Context(), "KIM", providertest.Password)
	require.NoError(t, err, "capitals are one name to the throttle, too")
}

func TestADirectoryIsAskedAgain(t *testing.T) {
	server := providertest.Slapd(t)
	d := open(t, options(server))
	id, err := d.SignIn(t.Context(), "kim", providertest.Password)
	require.NoError(t, err)
	server.Leave("ai-team", "kim")
	now, err := d.Check(t.Context(), id.Subject, "")
	require.NoError(t, err)
	assert.Equal(t, []string{"operators"}, now.Groups)

	server.Do(func(c *goldap.Conn) error {
		return c.ModifyDN(goldap.NewModifyDNRequest(providertest.PersonDN("kim"), "uid=kimberly", true, ""))
	})
	now, err = d.Check(t.Context(), id.Subject, "")
	require.NoError(t, err, "another name is the same person")
	assert.Equal(t, "kimberly", now.Name)

	server.Remove("kimberly")
	_, err = d.Check(t.Context(), id.Subject, "")
	assert.Equal(t, signin.ErrGone, err)
	_, err = d.Check(t.Context(), "*", "")
	assert.Equal(t, signin.ErrGone, err, "a subject is no pattern")

	none := options(server)
	none.Users.Filter = "(employeeNumber=none)"
	_, err = open(t, none).Check(t.Context(), id.Subject, "")
	require.ErrorIs(t, err, people.ErrUnavailable, "where no one is found, no one is gone")

	server.Stop()
	_, err = d.Check(t.Context(), id.Subject, "")
	assert.ErrorIs(t, err, people.ErrUnavailable)
	_, err = d.SignIn(t.Context(), "lee", providertest.Password)
	require.ErrorIs(t, err, people.ErrUnavailable)
	assert.NotErrorIs(t, err, signin.ErrWrong)
	assert.NotContains(t, err.Error(), providertest.Password)
	server.Start()
	_, err = d.SignIn(t.Context(), "lee", providertest.Password)
	assert.NoError(t, err, "it is asked again each time")
}

func TestMistakesInTheSettingsOfADirectoryLetNoOneIn(t *testing.T) {
	server := providertest.Slapd(t)
	for what, change := range map[string]func(*ldap.Options){
		"another authority":     func(o *ldap.Options) { o.CA = "" },
		"no TLS":                func(o *ldap.Options) { o.URL = server.URL },
		"a wrong bind password": func(o *ldap.Options) { o.BindPassword = "wrong" },
		"a base that isn't there": func(o *ldap.Options) {
			o.Users.Base = "ou=nowhere," + providertest.Base
		},
		"an attribute that several have":        func(o *ldap.Options) { o.Users.Name = "objectClass" },
		"a subject that isn't there":            func(o *ldap.Options) { o.Users.Subject = "employeeNumber" },
		"groups below a base that isn't there":  func(o *ldap.Options) { o.Groups.Base = "ou=nowhere," + providertest.Base },
		"a certificate that names another host": func(o *ldap.Options) { o.URL = strings.Replace(server.TLS, "127.0.0.1", "localhost", 1) },
	} {
		o := options(server)
		change(&o)
		name := "kim"
		if o.Users.Name == "objectClass" {
			name = "inetOrgPerson"
		}
		_, err := open(t, o).SignIn(t.Context(), name, providertest.Password)
		assert.ErrorIs(t, err, people.ErrUnavailable, what)
	}
	_, err := ldap.New(ldap.Options{Users: ldap.Users{Filter: "(objectClass=person"}})
	assert.ErrorContains(t, err, "users.filter")
	_, err = ldap.New(ldap.Options{CA: "no PEM"})
	assert.ErrorContains(t, err, "ca: there is no certificate in it")
}
