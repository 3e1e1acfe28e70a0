package token

import (
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

const typeAccess = "access"

const (
	// leeway is the accepted difference between the clocks of the masters. It applies to the time of issue, not to the expiry.
	leeway = time.Minute
	// absent is how long the absence of a record in the API server is cached.
	absent = 2 * time.Second
	// maxAbsent is the maximum number of cached absent records.
	maxAbsent = 10000
)

func secretOf(id string) string { return v1.TokenName(id) }

// Verify checks a token. It sends a request to the API server only if the token has a valid signature and the watch hasn't delivered the token's
// record.
func (s *Service) Verify(ctx context.Context, text string) (*Verified, error) {
	if err := s.known(); err != nil {
		return nil, err
	}
	c, signed, err := s.parse(ctx, text)
	if err != nil {
		return nil, err
	}
	e, err := s.record(ctx, c.Session, signed)
	if err != nil {
		return nil, err
	}
	if !signed && e.Kind != KindApplication {
		return nil, ErrInvalid
	}
	p, err := s.check(c, e, text)
	if err != nil {
		return nil, err
	}
	s.note(e)
	t := rules.Token{ID: e.ID, Application: c.Application, Scopes: e.Scopes}
	return &Verified{Person: p, Subject: p.Subject(t), Claims: *c, Via: e.Via, Ended: s.watch(e)}, nil
}

// known returns nil if the data about people and tokens is up to date. It also returns nil while Run isn't running, because a command has just loaded
// the data.
func (s *Service) known() error {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if !running {
		return nil
	}
	return s.Fresh()
}

// parse checks a token without its record. signed reports whether the signature is valid. An application token may outlive its signing key. signed is
// then false, and only the token's hash can prove that the token is valid.
func (s *Service) parse(ctx context.Context, text string) (c *Claims, signed bool, err error) {
	if len(text) > maxText {
		return nil, false, ErrInvalid
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(parsed.Headers) != 1 {
		return nil, false, ErrInvalid
	}
	public, signed, err := s.public(ctx, parsed.Headers[0].KeyID)
	if err != nil {
		return nil, false, err
	}
	c = &Claims{}
	if signed {
		err = parsed.Claims(public, c)
	} else {
		err = parsed.UnsafeClaimsWithoutVerification(c)
	}
	if err != nil || !signed && c.Type != string(KindApplication) {
		return nil, false, ErrInvalid
	}
	return c, signed, s.checkClaims(c)
}

// public returns the public key with the given id. It reads unknown keys from the API server, because another replica may just have created the key.
func (s *Service) public(ctx context.Context, id string) (ed25519.PublicKey, bool, error) {
	ring, err := s.keys(ctx)
	if err != nil {
		return nil, false, err
	}
	if public, known := ring.public(id, s.now()); known {
		return public, true, nil
	}
	s.mu.Lock()
	again := time.Since(s.asked) > absent
	if again {
		s.asked = time.Now()
	}
	s.mu.Unlock()
	if !again {
		return nil, false, nil
	}
	if ring, err = s.changeKeys(ctx, func(have keyring) keyring { return have }); err != nil {
		return nil, false, err
	}
	public, known := ring.public(id, s.now())
	return public, known, nil
}

// checkClaims checks the claims that don't depend on the token's record.
func (s *Service) checkClaims(c *Claims) error {
	now := s.now()
	switch {
	case c.Audience != audience, !idForm.MatchString(c.ID), !idForm.MatchString(c.Session), c.Username == "", c.UID == "":
		return ErrInvalid
	case c.Expires != 0 && now.Unix() >= c.Expires, c.Expires == 0 && c.Type != string(KindApplication):
		return ErrInvalid
	case time.Unix(c.IssuedAt, 0).After(now.Add(leeway)):
		return ErrInvalid
	}
	return nil
}

// record returns the record with the given id. It reads a missing record of a signed token from the API server, because another replica may just have
// created the record.
func (s *Service) record(ctx context.Context, id string, signed bool) (*entry, error) {
	if have, ok := s.objects.Get(secretOf(id)); ok && have.entry != nil {
		return have.entry, nil
	}
	if !signed {
		return nil, ErrInvalid
	}
	e, err := s.live(ctx, id, s.signed)
	if isNone(err) {
		return nil, ErrInvalid
	}
	return e, err
}

// missing reports whether the API server recently had no record with this id, and the watch hasn't delivered the record since.
func (s *Service) missing(id string) bool {
	if _, there := s.objects.Get(secretOf(id)); there {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until, asked := s.unknown[id]
	return asked && time.Now().Before(until)
}

// remember caches that no record with this id exists.
func (s *Service) remember(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.unknown) >= maxAbsent {
		for other, until := range s.unknown {
			if now.After(until) {
				delete(s.unknown, other)
			}
		}
	}
	if len(s.unknown) < maxAbsent {
		s.unknown[id] = now.Add(absent)
	}
}

// check compares a token with its record, and returns the person of the record.
func (s *Service) check(c *Claims, e *entry, text string) (*people.Person, error) {
	kind := e.Kind
	switch c.Type {
	case typeAccess:
		if kind != KindSession {
			return nil, ErrInvalid
		}
	case string(KindBrowser), string(KindApplication):
		if string(kind) != c.Type || c.ID != e.ID || subtle.ConstantTimeCompare([]byte(hashOf(text)), []byte(e.hash)) != 1 {
			return nil, ErrInvalid
		}
	default:
		return nil, ErrInvalid
	}
	if c.Application != (kind == KindApplication) || c.Username != e.User || c.UID != string(e.person) {
		return nil, ErrInvalid
	}
	return s.holder(e)
}

// holder returns the person of a valid record.
func (s *Service) holder(e *entry) (*people.Person, error) {
	if e.expired(s.now()) || s.objects.Deleted(e.secret) {
		return nil, ErrInvalid
	}
	p, err := s.people.ByUID(e.person)
	if err != nil || p.Disabled || p.Name != e.User {
		return nil, ErrInvalid
	}
	if e.Kind == KindApplication && p.Unconfirmed || e.Kind != KindApplication && e.sessions < p.Sessions {
		return nil, ErrInvalid
	}
	return p, nil
}
