package assembly

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/signin/ldap"
	"github.com/openpai/paictl/pkg/people/signin/oidc"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/settings"
)

// providers holds the directories and issuers that identify people, in addition to the passwords that the cluster stores.
type providers struct {
	passwords []signin.Password
	checkers  []signin.Checker
	issuers   map[string]app.Issuer
	policies  map[string]signin.Policy
}

// openProviders returns the configured providers. It sends no requests.
func openProviders(o Options) (*providers, error) {
	p := &providers{issuers: map[string]app.Issuer{}, policies: map[string]signin.Policy{}}
	s := o.Settings.SignIn
	for _, name := range slices.Sorted(maps.Keys(s.LDAP)) {
		if err := p.directory(o, name, s.LDAP[name]); err != nil {
			return nil, fmt.Errorf("signIn.ldap.%s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.OIDC)) {
		if err := p.issuer(o, name, s.OIDC[name]); err != nil {
			return nil, fmt.Errorf("signIn.oidc.%s: %w", name, err)
		}
	}
	return p, nil
}

func policy(p settings.Policy, source string) signin.Policy {
	return signin.Policy{Create: p.NewPeople == settings.NewAdd, Groups: p.NewGroups, Allowed: p.AllowedGroups, Source: source, MovedFrom: p.MovedFrom}
}

func (p *providers) directory(o Options, name string, l settings.LDAP) error {
	password, err := credential(o.Credentials, settings.BindPasswordKey(name))
	if err != nil {
		return err
	}
	if !password.IsSet() {
		return errors.New("bindPassword: it is needed")
	}
	u, g := l.Users, l.Groups
	d, err := ldap.New(ldap.Options{
		Name: name, URL: l.URL, StartTLS: l.StartTLS, CA: l.CA, BindDN: l.BindDN, BindPassword: password, Log: o.Log,
		Users:  ldap.Users{Base: u.Base, Filter: u.Filter, Name: cmp.Or(u.Name, "uid"), Subject: cmp.Or(u.Subject, "entryUUID"), Email: or(u.Email, "mail"), DisplayName: or(u.DisplayName, "cn")},
		Groups: ldap.Groups{Base: g.Base, Filter: g.Filter, Member: cmp.Or(g.Member, "member"), MemberValue: g.MemberValue, Name: cmp.Or(g.Name, "cn")},
	})
	if err != nil {
		return err
	}
	p.passwords, p.checkers, p.policies[name] = append(p.passwords, d), append(p.checkers, d), policy(l.Policy, cmp.Or(u.Subject, "entryUUID")+" below "+u.Base)
	return nil
}

func (p *providers) issuer(o Options, name string, c settings.OIDC) error {
	password, err := credential(o.Credentials, settings.ClientSecretKey(name))
	if err != nil {
		return err
	}
	scopes := c.Scopes
	if scopes == nil {
		scopes = []string{"profile", "email", "offline_access"}
	}
	i, err := oidc.New(oidc.Options{
		Name: name, Title: c.Title, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: password, CA: c.CA, Scopes: scopes, Now: o.Now, Log: o.Log,
		Claims: oidc.Claims{Name: or(c.Claims.Name, "preferred_username"), Email: or(c.Claims.Email, "email"), DisplayName: or(c.Claims.DisplayName, "name"), Groups: or(c.Claims.Groups, "groups")},
		Return: o.Settings.URL() + settings.ReturnPath(name),
	})
	if err != nil {
		return err
	}
	p.issuers[name], p.checkers, p.policies[name] = i, append(p.checkers, i), policy(c.Policy, c.Issuer)
	return nil
}

// or returns the value of a setting, even if the value is empty. If the setting is missing, it returns the default.
func or(said *string, usual string) string {
	if said == nil {
		return usual
	}
	return *said
}

// credential reads a secret from its file. It returns an unset secret if the file doesn't exist.
func credential(folder, key string) (secret.String, error) {
	if folder == "" {
		return "", nil
	}
	text, err := os.ReadFile(filepath.Join(folder, key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the secret %s: %w", key, err)
	}
	return secret.String(strings.TrimRight(string(text), "\r\n")), nil
}
