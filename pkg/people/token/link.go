package token

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/secret"
)

// linkAudience is the audience of links. No token has it, so a link can't be used as a token.
const linkAudience = "pai-link"

// link is the content of a link: who made it, with which token, and its target.
type link struct {
	UID      string          `json:"uid"`
	Session  string          `json:"sid"`
	Expires  int64           `json:"exp"`
	Audience string          `json:"aud"`
	To       json.RawMessage `json:"to"`
}

// Link signs the target of a link. Anyone who has the link may read the target as the person of a token's claims, for some time and as
// long as the token is valid: a browser that downloads a log can't send a token in a header.
func (s *Service) Link(ctx context.Context, c Claims, to any, life time.Duration) (secret.String, error) {
	body, err := json.Marshal(to)
	if err != nil {
		return "", err
	}
	return s.sign(ctx, &link{UID: c.UID, Session: c.Session, Expires: s.now().Add(life).Unix(), Audience: linkAudience, To: body})
}

// Follow checks a link and reads its target. The error is ErrInvalid, or wraps people.ErrUnavailable.
func (s *Service) Follow(ctx context.Context, text string, to any) (*Verified, error) {
	if err := s.known(); err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, ErrInvalid
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(parsed.Headers) != 1 {
		return nil, ErrInvalid
	}
	public, signed, err := s.public(ctx, parsed.Headers[0].KeyID)
	if err != nil {
		return nil, err
	}
	l := &link{}
	if !signed || parsed.Claims(public, l) != nil {
		return nil, ErrInvalid
	}
	if l.Audience != linkAudience || s.now().Unix() >= l.Expires || !idForm.MatchString(l.Session) || json.Unmarshal(l.To, to) != nil {
		return nil, ErrInvalid
	}
	e, err := s.record(ctx, l.Session, true)
	if err != nil {
		return nil, err
	}
	p, err := s.holder(e)
	if err != nil || l.UID != string(p.UID) {
		return nil, ErrInvalid
	}
	t := rules.Token{ID: e.ID, Application: e.Kind == KindApplication, Scopes: e.Scopes}
	return &Verified{Person: p, Subject: p.Subject(t), Claims: Claims{Username: p.Name, Application: t.Application, ID: e.ID, Session: e.ID, UID: l.UID}, Ended: s.watch(e)}, nil
}
