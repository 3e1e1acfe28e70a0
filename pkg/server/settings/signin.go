package settings

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"time"
)

// SignIn configures the methods to sign in.
type SignIn struct {
	Password struct {
		Enabled bool `json:"enabled"`
	} `json:"password"`
	// OIDC holds the OpenID Connect issuers, and LDAP holds the directories. The keys are their names.
	OIDC    map[string]OIDC `json:"oidc"`
	LDAP    map[string]LDAP `json:"ldap"`
	Recheck Recheck         `json:"recheck"`
	// ReturnPages lists the pages that receive a token in their address, as OpenPAI's portal does. Each address must exactly equal the address that
	// the page sends.
	ReturnPages []string `json:"returnPages"`
}

// Policy configures which people of a provider are admitted, and their groups.
type Policy struct {
	// NewPeople configures the first sign-in of a person. NewRefuse denies the sign-in. NewAdd adds the person to NewGroups, which are groups of
	// paictl.
	NewPeople string   `json:"newPeople"`
	NewGroups []string `json:"newGroups"`
	// AllowedGroups lists the groups of the provider whose members are admitted. If it is empty, all people are admitted.
	AllowedGroups []string `json:"allowedGroups"`
	// MovedFrom is the former issuer or directory of the provider. It confirms that the people and their subjects haven't changed.
	MovedFrom string `json:"movedFrom"`
}

// These are the values of NewPeople.
const (
	NewRefuse = "refuse"
	NewAdd    = "add"
)

// OIDC configures an OpenID Connect issuer.
type OIDC struct {
	Policy
	// Title is the label of the issuer's sign-in button.
	Title    string   `json:"title"`
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"clientId"`
	CA       string   `json:"ca"`
	Scopes   []string `json:"scopes"`
	Claims   struct {
		Name        *string `json:"name"`
		Email       *string `json:"email"`
		DisplayName *string `json:"displayName"`
		Groups      *string `json:"groups"`
	} `json:"claims"`
}

// LDAP configures an LDAP directory.
type LDAP struct {
	Policy
	URL      string `json:"url"`
	StartTLS bool   `json:"startTLS"`
	CA       string `json:"ca"`
	BindDN   string `json:"bindDN"`
	Users    struct {
		Base        string  `json:"base"`
		Filter      string  `json:"filter"`
		Name        string  `json:"name"`
		Subject     string  `json:"subject"`
		Email       *string `json:"email"`
		DisplayName *string `json:"displayName"`
	} `json:"users"`
	Groups struct {
		Base        string `json:"base"`
		Filter      string `json:"filter"`
		Member      string `json:"member"`
		MemberValue string `json:"memberValue"`
		Name        string `json:"name"`
	} `json:"groups"`
}

// Recheck configures how often the server checks people with sessions again with the providers.
type Recheck struct {
	EverySeconds int `json:"everySeconds"`
	GraceMinutes int `json:"graceMinutes"`
}

// enough is the minimum number of rechecks within the grace period.
const enough = 10

// Every returns the time between two rechecks.
func (r Recheck) Every() time.Duration { return time.Duration(r.EverySeconds) * time.Second }

// Grace returns the grace period. A provider's last response stays valid for this time while the provider can't be reached.
func (r Recheck) Grace() time.Duration { return time.Duration(r.GraceMinutes) * time.Minute }

// Enough returns an error if the grace period is too short for enough rechecks.
func (r Recheck) Enough() error {
	if r.Grace() < enough*r.Every() {
		return fmt.Errorf("%d minutes are less than %d times everySeconds: a question or two that fail would sign people out", r.GraceMinutes, enough)
	}
	return nil
}

// ClientSecretKey returns the key of the client secret of an issuer.
func ClientSecretKey(name string) string { return "signIn.oidc." + name + ".clientSecret" }

// BindPasswordKey returns the key of the password of a directory's search account.
func BindPasswordKey(name string) string { return "signIn.ldap." + name + ".bindPassword" }

// ReturnPath returns the path to which an issuer redirects browsers.
func ReturnPath(name string) string { return "/api/v3/signin/oidc/" + name + "/return" }

// providerName matches the name of a provider. The name is part of addresses and of User objects.
var providerName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// ValidProvider reports whether a name is valid for a provider.
func ValidProvider(name string) bool { return providerName.MatchString(name) }

// attribute matches the name of an LDAP attribute, or the name with a matching rule.
var attribute = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.;:-]*$`)

// check returns the errors in the sign-in settings. reachable reports whether the server has an address for people, because issuers redirect browsers
// to that address.
func (s *SignIn) check(reachable bool) (wrong []error) {
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(s.OIDC)) {
		o, at := s.OIDC[name], "signIn.oidc."+name
		if _, both := s.LDAP[name]; both {
			fail("%s: a directory has this name, too: people would be known by one of the two", at)
		}
		if u, err := url.Parse(o.Issuer); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			fail("%s.issuer: %q is not an https://HOST/… address, as the issuer calls itself", at, o.Issuer)
		}
		if o.ClientID == "" {
			fail("%s.clientId: it is needed", at)
		}
		if !reachable {
			fail("%s: the issuer must send browsers back: set names to where people reach the server", at)
		}
		wrong = append(wrong, o.check(at, name)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.LDAP)) {
		wrong = append(wrong, s.LDAP[name].check("signIn.ldap."+name, name)...)
	}
	if s.Recheck.EverySeconds < 5 || s.Recheck.EverySeconds > 3600 {
		fail("signIn.recheck.everySeconds: %d is not between 5 and 3600", s.Recheck.EverySeconds)
	}
	if s.Recheck.GraceMinutes < 5 || s.Recheck.GraceMinutes > 7*24*60 {
		fail("signIn.recheck.graceMinutes: %d is not between 5 and 10080", s.Recheck.GraceMinutes)
	}
	if err := s.Recheck.Enough(); err != nil {
		fail("signIn.recheck.graceMinutes: %w", err)
	}
	return wrong
}

func (p Policy) check(at, name string) (wrong []error) {
	if !ValidProvider(name) {
		wrong = append(wrong, fmt.Errorf("%s: %q can't be a name: use 1 to 32 lower-case letters, digits and -", at, name))
	}
	if p.NewPeople != "" && p.NewPeople != NewRefuse && p.NewPeople != NewAdd {
		wrong = append(wrong, fmt.Errorf("%s.newPeople: %q is neither %s nor %s", at, p.NewPeople, NewRefuse, NewAdd))
	}
	return wrong
}

func (l LDAP) check(at, name string) []error {
	wrong := l.Policy.check(at, name)
	fail := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf(at+format, args...))
	}
	switch u, err := url.Parse(l.URL); {
	case err != nil || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.Scheme != "ldap" && u.Scheme != "ldaps":
		fail(".url: %q is neither ldaps://HOST nor ldap://HOST", l.URL)
	case u.Scheme == "ldap" && !l.StartTLS:
		fail(".startTLS: passwords would go over the network as they are: set it, or write url: ldaps://HOST")
	case u.Scheme == "ldaps" && l.StartTLS:
		fail(".startTLS: with ldaps TLS has already begun: leave it out, or write url: ldap://HOST")
	}
	for _, field := range []struct{ name, value string }{{"bindDN", l.BindDN}, {"users.base", l.Users.Base}} {
		if field.value == "" {
			fail(".%s: it is needed", field.name)
		}
	}
	for _, field := range []struct{ name, value string }{
		{"users.name", l.Users.Name}, {"users.subject", l.Users.Subject}, {"groups.member", l.Groups.Member}, {"groups.memberValue", l.Groups.MemberValue}, {"groups.name", l.Groups.Name},
	} {
		if field.value != "" && !attribute.MatchString(field.value) {
			fail(".%s: %q is not the name of an attribute", field.name, field.value)
		}
	}
	if l.Groups.Base == "" && len(l.AllowedGroups) > 0 {
		fail(".allowedGroups: without groups.base people are not in any group")
	}
	return wrong
}
