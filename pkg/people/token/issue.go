package token

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/secret"
)

const audience = "pai"

// Limits of the lifetime of a browser token.
const (
	minBrowser = time.Minute
	maxBrowser = 7 * 24 * time.Hour
)

// The maximum number of a person's records. At maxSessions, Service ends the oldest session. At maxApplications, it rejects new application tokens.
const (
	maxSessions     = 100
	maxApplications = 500
)

// Session begins a session of a person after a sign-in, and returns its tokens.
func (s *Service) Session(ctx context.Context, p *people.Person, n New) (*Pair, error) {
	e := s.entry(p, KindSession, n)
	refresh := e.newRefresh()
	e.hash, e.Expires = hashOf(refresh.Reveal()), s.sessionEnd(e.Created)
	if err := s.room(ctx, p); err != nil {
		return nil, err
	}
	if err := s.create(ctx, e); err != nil {
		return nil, err
	}
	return s.pair(ctx, p, e, refresh)
}

// sessionEnd returns the expiry of a session that was created at created and is used now.
func (s *Service) sessionEnd(created time.Time) time.Time {
	end, last := s.now().Add(s.o.Lifetimes.Refresh), created.Add(s.o.Lifetimes.Session)
	if last.Before(end) {
		return last
	}
	return end
}

// pair signs an access token for a session, and returns it with the refresh token.
func (s *Service) pair(ctx context.Context, p *people.Person, e *entry, refresh secret.String) (*Pair, error) {
	now := s.now()
	access, err := s.sign(ctx, &Claims{
		Username: p.Name, IssuedAt: now.Unix(), Expires: now.Add(s.o.Lifetimes.Access).Unix(), ID: newID(), Session: e.ID, UID: string(p.UID), Audience: audience, Type: typeAccess,
	})
	if err != nil {
		return nil, err
	}
	return &Pair{Access: access, Refresh: refresh, Lifetime: s.o.Lifetimes.Access, Record: e.Record}, nil
}

// Browser returns a new browser token with the requested lifetime, limited to the range from a minute to seven days. The default applies if no
// lifetime is requested.
func (s *Service) Browser(ctx context.Context, p *people.Person, n New) (*Issued, error) {
	if n.Lifetime == 0 {
		n.Lifetime = s.o.Lifetimes.Browser
	}
	n.Lifetime = min(max(n.Lifetime, minBrowser), maxBrowser)
	if err := s.room(ctx, p); err != nil {
		return nil, err
	}
	return s.issue(ctx, p, s.entry(p, KindBrowser, n), n.Lifetime)
}

// Application returns a new application token for a program. If n.Life is zero, the token is valid until it is revoked.
func (s *Service) Application(ctx context.Context, p *people.Person, n New) (*Issued, error) {
	if n.Lifetime < 0 {
		return nil, fmt.Errorf("%w: the token would have expired", people.ErrInvalid)
	}
	if n.Scopes == nil {
		n.Scopes = rules.DefaultScopes()
	}
	names := make([]string, len(n.Scopes))
	for i, scope := range n.Scopes {
		names[i] = string(scope)
	}
	if _, err := rules.ParseScopes(names); err != nil {
		return nil, fmt.Errorf("%w: %w", people.ErrInvalid, err)
	}
	mine := 0
	for _, r := range s.Of(p.Name) {
		if r.Kind == KindApplication {
			mine++
		}
	}
	if mine >= maxApplications {
		return nil, ErrTooMany
	}
	e := s.entry(p, KindApplication, n)
	e.Scopes = slices.Clone(n.Scopes)
	return s.issue(ctx, p, e, n.Lifetime)
}

// entry returns a new record for a person, without writing it.
func (s *Service) entry(p *people.Person, kind Kind, n New) *entry {
	return &entry{
		Record: Record{ID: newID(), User: p.Name, Kind: kind, Via: p.Via, Label: line(n.Label), Client: line(n.Client), Address: line(n.Address), Created: s.now().UTC().Truncate(time.Second)},
		person: p.UID, sessions: p.Sessions,
	}
}

// issue signs a token and stores its record. If life is zero, the token doesn't expire.
func (s *Service) issue(ctx context.Context, p *people.Person, e *entry, life time.Duration) (*Issued, error) {
	c := &Claims{
		Username: p.Name, Application: e.Kind == KindApplication, IssuedAt: e.Created.Unix(), ID: e.ID, Session: e.ID, UID: string(p.UID), Audience: audience, Type: string(e.Kind),
	}
	if life > 0 {
		e.Expires = e.Created.Add(life).Truncate(time.Second)
		c.Expires = e.Expires.Unix()
	}
	text, err := s.sign(ctx, c)
	if err != nil {
		return nil, err
	}
	e.hash = hashOf(text.Reveal())
	if err := s.create(ctx, e); err != nil {
		return nil, err
	}
	return &Issued{Token: text, Record: e.Record}, nil
}

// sign returns the signed text of a token or a link with the given claims.
func (s *Service) sign(ctx context.Context, c any) (secret.String, error) {
	ring, err := s.keys(ctx)
	if err != nil {
		return "", err
	}
	id, private := ring.signing(s.now())
	if private == nil {
		return "", fmt.Errorf("%w: there is no key to sign with", people.ErrUnavailable)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: id}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	text, err := jwt.Signed(signer).Claims(c).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return secret.String(text), nil
}

// room ends a person's oldest sessions and browser tokens if too many exist.
func (s *Service) room(ctx context.Context, p *people.Person) error {
	n := 0
	for _, r := range s.Of(p.Name) { // newest first
		if r.Kind == KindApplication {
			continue
		}
		if n++; n < maxSessions {
			continue
		}
		if have, ok := s.objects.Get(secretOf(r.ID)); ok {
			if err := s.drop(ctx, have.entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// Handle returns a text that looks like a token and identifies a record. It can only be used to revoke the token of the record.
func Handle(r Record) string {
	c := map[string]any{"username": r.User, "application": r.Kind == KindApplication, "iat": r.Created.Unix(), "jti": r.ID}
	if !r.Expires.IsZero() {
		c["exp"] = r.Expires.Unix()
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	b := base64.RawURLEncoding
	return b.EncodeToString([]byte(`{"alg":"none"}`)) + "." + b.EncodeToString(payload) + ".x"
}

// maxText is the maximum length of a token, in bytes.
const maxText = 4096

// IDOf returns the record id in a token, a handle or an id. It doesn't check a signature.
func IDOf(text string) (string, error) {
	if idForm.MatchString(text) {
		return text, nil
	}
	if id, ok := parseRefresh(text); ok {
		return id, nil
	}
	parts := strings.Split(text, ".")
	if len(text) > maxText || len(parts) != 3 {
		return "", fmt.Errorf("%w: it is neither a token nor the id of one", people.ErrInvalid)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("%w: it is neither a token nor the id of one", people.ErrInvalid)
	}
	var c Claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return "", fmt.Errorf("%w: it is neither a token nor the id of one", people.ErrInvalid)
	}
	for _, id := range []string{c.Session, c.ID} {
		if idForm.MatchString(id) {
			return id, nil
		}
	}
	return "", fmt.Errorf("%w: the token names no record", people.ErrInvalid)
}
