package catalogue

import (
	"cmp"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/server/settings"
)

// These are keys of the section signIn, which defines how users sign in.
const (
	keySignIn = "signIn"
	keyOIDC   = "oidc"
	keyLDAP   = "ldap"

	keyReturnPages = "returnPages"
	keyRecheck     = "recheck"
)

// checkProviders rejects sign-in providers that can't work, and providers that would receive passwords without encryption.
func (b *builder) checkProviders() {
	s := b.services[ServerService]
	if s == nil || s.Upstream != nil || !s.Enabled {
		return
	}
	signIn, _ := s.Values[keySignIn].(map[string]any)
	issuers, _ := signIn[keyOIDC].(map[string]any)
	directories, _ := signIn[keyLDAP].(map[string]any)
	for _, name := range sorted(maps.Keys(issuers)) {
		p := at(ServerService, keySignIn, keyOIDC, name)
		if hosts, _ := ServerAddresses(s); len(hosts) == 0 {
			b.fail(p, "services/issuer", "the issuer "+name+" has no address to which it can redirect browsers", "set "+ServerService+".names to the name by which people reach the server")
		}
		if _, both := directories[name]; both {
			b.fail(p, "services/provider-name", "an issuer and a directory are both called "+name, "give one of them another name: people are known by it")
		}
	}
	for key, all := range map[string]map[string]any{keyOIDC: issuers, keyLDAP: directories} {
		for name := range all {
			if !settings.ValidProvider(name) {
				b.fail(at(ServerService, keySignIn, key, name), "services/provider-name", name+" is not a valid name for a provider", "use 1 to 32 lower-case letters, digits and -")
			}
		}
	}
	b.checkReturnPages(s, signIn)
	b.checkRecheck(signIn)
	own, _ := s.Values[keyCredentialsSecret].(string)
	for _, name := range sorted(maps.Keys(directories)) {
		if d, ok := directories[name].(map[string]any); ok { // otherwise the schema reports it
			b.checkDirectory(at(ServerService, keySignIn, keyLDAP, name), d, own != "")
		}
	}
}

// checkRecheck rejects a grace period that is too short. With such a period, a single failed request would sign users out.
func (b *builder) checkRecheck(signIn map[string]any) {
	said, _ := signIn[keyRecheck].(map[string]any)
	recheck := settings.Default().SignIn.Recheck
	for key, to := range map[string]*int{"everySeconds": &recheck.EverySeconds, "graceMinutes": &recheck.GraceMinutes} {
		if n, isNumber := said[key].(int64); isNumber { // otherwise the schema reports it
			*to = int(n)
		}
	}
	if err := recheck.Enough(); err != nil {
		b.fail(at(ServerService, keySignIn, keyRecheck, "graceMinutes"), "services/recheck", err.Error(), "raise graceMinutes, or lower everySeconds")
	}
}

// checkReturnPages rejects return pages that could reveal the received tokens.
func (b *builder) checkReturnPages(s *Service, signIn map[string]any) {
	pages, _ := signIn[keyReturnPages].([]any)
	hosts, port := ServerAddresses(s)
	ports := []int{port}
	if u, err := url.Parse(ProxyURL(s)); err == nil && u.Host != "" {
		proxyPort, _ := strconv.Atoi(cmp.Or(u.Port(), "443"))
		hosts, ports = append(hosts, u.Hostname()), append(ports, proxyPort)
	}
	for _, page := range pages {
		if text, ok := page.(string); ok { // otherwise the schema reports it
			if err := settings.ReturnPage(text, hosts, ports...); err != nil {
				b.fail(at(ServerService, keySignIn, keyReturnPages), "services/return-page", err.Error(), "remove it; people sign in with paictl login, and at the page /sign-in")
			}
		}
	}
}

func (b *builder) checkDirectory(p strictyaml.Path, d map[string]any, own bool) {
	url, _ := d["url"].(string)
	startTLS, _ := d["startTLS"].(bool)
	switch {
	case strings.HasPrefix(url, "ldap://") && !startTLS:
		b.fail(p.With("url"), "services/directory-tls", "passwords would be sent to "+url+" unencrypted", "write url: ldaps://..., or add startTLS: true")
	case strings.HasPrefix(url, "ldaps://") && startTLS:
		b.fail(p.With("startTLS"), "services/directory-tls", "ldaps already uses TLS", "remove startTLS, or write url: ldap://...")
	}
	if password, _ := d["bindPassword"].(string); password == "" && !own {
		b.fail(p, "services/directory-password", "the account that searches has no password", "set bindPassword; directories treat an empty password as an anonymous login")
	}
	if allowed, _ := d["allowedGroups"].([]any); len(allowed) > 0 && d["groups"] == nil {
		b.fail(p.With("allowedGroups"), "services/directory-groups", "groups is missing, so no person would be in a group", "set groups.base")
	}
}
