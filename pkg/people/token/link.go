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

// Use is the purpose of a link, and the audience in the signed text. No token has this audience, so a link can't be used as a token or for another
// purpose.
type Use string

const (
	// UseLog is the purpose of a link to a log.
	UseLog Use = "pai-link"
	// UsePage is the purpose of the cookie of a proxied page.
	UsePage Use = "pai-page"
)

// link is the content of a link: the UID of the person, the id of the person's session or application token, and the target.
type link struct {
	UID      string          `json:"uid"`
	Session  string          `json:"sid"`
	Expires  int64           `json:"exp"`
	Audience Use             `json:"aud"`
	To       json.RawMessage `json:"to"`
}

// Link signs the target of a link, because a browser that downloads a log can't send a token in a header. Until life has passed, anyone with the link
// may read the target with the permissions of the token's person. The token must still be valid.
func (s *Service) Link(ctx context.Context, c Claims, use Use, to any, life time.Duration) (secret.String, error) {
	body, err := json.Marshal(to)
	if err != nil {
		return "", err
	}
	return s.sign(ctx, &link{UID: c.UID, Session: c.Session, Expires: s.now().Add(life).Unix(), Audience: use, To: body})
}

// Follow checks a link and decodes its target into to. The error is ErrInvalid, or it wraps people.ErrUnavailable.
func (s *Service) Follow(ctx context.Context, use Use, text string, to any) (*Verified, error) {
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
	if l.Audience != use || s.now().Unix() >= l.Expires || !idForm.MatchString(l.Session) || json.Unmarshal(l.To, to) != nil {
		return nil, ErrInvalid
	}
	return s.resume(ctx, l.Session, l.UID)
}

// Resume checks a session or an application token of an earlier request. session is the id of the session or token, and uid is the UID of its person.
// The error is ErrInvalid, or it wraps people.ErrUnavailable.
func (s *Service) Resume(ctx context.Context, session, uid string) (*Verified, error) {
	if err := s.known(); err != nil {
		return nil, err
	}
	if !idForm.MatchString(session) {
		return nil, ErrInvalid
	}
	return s.resume(ctx, session, uid)
}

func (s *Service) resume(ctx context.Context, session, uid string) (*Verified, error) {
	e, err := s.record(ctx, session, true)
	if err != nil {
		return nil, err
	}
	p, err := s.holder(e)
	if err != nil || uid != string(p.UID) {
		return nil, ErrInvalid
	}
	t := rules.Token{ID: e.ID, Application: e.Kind == KindApplication, Scopes: e.Scopes}
	return &Verified{Person: p, Subject: p.Subject(t), Claims: Claims{Username: p.Name, Application: t.Application, ID: e.ID, Session: e.ID, UID: uid}, Ended: s.watch(e)}, nil
}
