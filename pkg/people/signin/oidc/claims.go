package oidc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/secret"
)

// Claims holds the names of claims. A dot selects a field of an object. "" means that the issuer doesn't provide the claim.
type Claims struct {
	// Name is the claim with the user name. If the value is an e-mail address, only the part before the @ is used, as in OpenPAI.
	Name, Email, DisplayName string
	// Groups is the claim with the person's groups as a list of strings.
	Groups string
}

// identity returns the identity in an ID token. If the token doesn't contain all claims, identity reads the missing claims from the issuer's userinfo
// endpoint.
func (i *Issuer) identity(ctx context.Context, p *oidc.Provider, token *oauth2.Token, id *oidc.IDToken) (*signin.Identity, error) {
	return i.identityOf(ctx, p, token, id, id.Subject)
}

// identityOf returns the identity of a subject. id may be nil, because a response to a refresh token may contain no ID token.
func (i *Issuer) identityOf(ctx context.Context, p *oidc.Provider, token *oauth2.Token, id *oidc.IDToken, subject string) (*signin.Identity, error) {
	all := map[string]any{}
	if id != nil {
		if err := id.Claims(&all); err != nil {
			return nil, fmt.Errorf("%w: its claims can't be read: %w", ErrRefused, err)
		}
	}
	if !i.o.Claims.in(all) && p.UserInfoEndpoint() != "" {
		info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return nil, i.away(err)
		}
		if info.Subject != subject {
			return nil, fmt.Errorf("%w: its userinfo belongs to another person", ErrRefused)
		}
		more := map[string]any{}
		if err := info.Claims(&more); err != nil {
			return nil, fmt.Errorf("%w: its userinfo can't be read: %w", ErrRefused, err)
		}
		maps.Copy(more, all) // signed claims take precedence
		all = more
	}
	out := &signin.Identity{Provider: i.o.Name, Subject: subject, Refresh: secret.String(token.RefreshToken)}
	if _, there := claim(all, i.o.Claims.Groups); id == nil && !there && i.o.Claims.Groups != "" {
		out.GroupsUnsaid = true // the response to a refresh token may have no ID token, and so no groups
	}
	return out, i.o.Claims.fill(out, all)
}

func (c *Claims) in(all map[string]any) bool {
	for _, name := range []string{c.Name, c.Email, c.DisplayName, c.Groups} {
		if _, there := claim(all, name); name != "" && !there {
			return false
		}
	}
	return true
}

func (c *Claims) fill(id *signin.Identity, all map[string]any) error {
	text := func(name string) string {
		value, _ := claim(all, name)
		s, _ := value.(string)
		return s
	}
	id.Name, _, _ = strings.Cut(text(c.Name), "@")
	id.DisplayName = text(c.DisplayName)
	if verified, said := all["email_verified"].(bool); verified || !said {
		id.Email = text(c.Email)
	}
	if c.Groups == "" {
		return nil
	}
	value, there := claim(all, c.Groups)
	if names, _ := all["_claim_names"].(map[string]any); !there && names[c.Groups] != nil {
		return fmt.Errorf("%w: the person is in more groups than it writes into a token: let it send fewer", ErrRefused)
	}
	groups, err := list(value)
	if err != nil {
		return fmt.Errorf("%w: the claim %s is not a list of groups", ErrRefused, c.Groups)
	}
	id.Groups = groups // without the claim the person isn't in a group
	return nil
}

// claim returns the value of a claim, and reports whether the claim is present. It first tries the whole name, and then a path with dots into
// objects.
func claim(all map[string]any, name string) (any, bool) {
	if v, there := all[name]; there {
		return v, true
	}
	first, rest, deeper := strings.Cut(name, ".")
	inner, isObject := all[first].(map[string]any)
	if !deeper || !isObject {
		return nil, false
	}
	return claim(inner, rest)
}

// list converts a list of strings, or a single string, to a sorted list without duplicates.
func list(value any) ([]string, error) {
	var out []string
	switch v := value.(type) {
	case nil:
	case string:
		out = []string{v}
	case []any:
		for _, one := range v {
			s, isText := one.(string)
			if !isText {
				return nil, fmt.Errorf("%T is not a string", one)
			}
			out = append(out, s)
		}
	default:
		return nil, fmt.Errorf("%T is not a list", value)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
