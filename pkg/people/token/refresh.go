package token

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/secret"
)

// grace is how long the previous refresh token is accepted: an answer may be lost, and two programs may share a session.
const grace = 30 * time.Second

// Refresh returns the next pair of a session. For the previous token, it returns the same refresh token within half a minute. Later,
// that token and all earlier ones revoke the session, because two programs have it.
func (s *Service) Refresh(ctx context.Context, token secret.String, n New) (*Pair, error) {
	id, ok := parseRefresh(token.Reveal())
	if !ok {
		return nil, ErrInvalid
	}
	if err := s.known(); err != nil {
		return nil, err
	}
	for range tries {
		e, err := s.live(ctx, id, s.shown)
		if isNone(err) {
			return nil, ErrInvalid
		}
		if err != nil {
			return nil, err
		}
		p, err := s.holder(e)
		if err != nil || e.Kind != KindSession {
			return nil, ErrInvalid
		}
		hash := []byte(hashOf(token.Reveal()))
		switch {
		case subtle.ConstantTimeCompare(hash, []byte(e.hash)) == 1:
			next, err := s.next(ctx, e, token, n)
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				continue // another replica or program has renewed it already, or it was revoked
			}
			if err != nil {
				return nil, away("write a session", err)
			}
			return s.pair(ctx, p, e, next)
		case !e.issued(token):
			return nil, ErrInvalid
		case !e.follows(hash) || !s.now().Before(e.until):
			if err := s.drop(ctx, e); err != nil {
				return nil, err
			}
			return nil, &ReusedError{e.User}
		}
		next, err := open(token, e)
		if err != nil {
			return nil, ErrInvalid
		}
		return s.pair(ctx, p, e, next)
	}
	return nil, fmt.Errorf("%w: the session changes all the time", people.ErrUnavailable)
}

// next writes the next refresh token of a session. It is sealed with the last one: the record alone doesn't reveal a token.
func (s *Service) next(ctx context.Context, e *entry, token secret.String, n New) (secret.String, error) {
	next := e.newRefresh()
	sealed, err := seal(token, e.ID, next)
	if err != nil {
		return "", err
	}
	now := s.now()
	e.previous, e.until, e.next = e.hash, now.Add(grace), sealed
	e.hash, e.Expires, e.Used = hashOf(next.Reveal()), s.sessionEnd(e.Created), now.UTC().Truncate(time.Second)
	if n.Address != "" {
		e.Address = line(n.Address)
	}
	object, err := e.object()
	if err != nil {
		return "", err
	}
	written, err := s.secrets.Update(ctx, object, metav1.UpdateOptions{})
	if err != nil {
		return "", err
	}
	s.objects.Put(written)
	return next, nil
}

// Proves returns nil if a refresh token is the current one of a session of a person, or the one before within half a minute. Otherwise it returns
// ErrInvalid. An access token alone proves no session: it may have been copied from somewhere else.
func (s *Service) Proves(ctx context.Context, token secret.String, user string) error {
	id, ok := parseRefresh(token.Reveal())
	if !ok {
		return ErrInvalid
	}
	if err := s.known(); err != nil {
		return err
	}
	e, err := s.live(ctx, id, s.shown)
	if isNone(err) {
		return ErrInvalid
	}
	if err != nil {
		return err
	}
	hash := []byte(hashOf(token.Reveal()))
	current := subtle.ConstantTimeCompare(hash, []byte(e.hash)) == 1 || e.follows(hash) && s.now().Before(e.until)
	if _, err := s.holder(e); err != nil || e.Kind != KindSession || e.User != user || !current {
		return ErrInvalid
	}
	return nil
}

// RevokeRefresh ends the session of a refresh token.
func (s *Service) RevokeRefresh(ctx context.Context, token secret.String) error {
	id, ok := parseRefresh(token.Reveal())
	if !ok {
		return ErrInvalid
	}
	e, err := s.live(ctx, id, s.shown)
	if err != nil {
		return err
	}
	if !e.issued(token) {
		return ErrInvalid
	}
	return s.drop(ctx, e)
}

// refreshPrefix is the prefix of each refresh token, so that a lost one can be found and distinguished from other strings.
const refreshPrefix = "pair_"

// The secret of a refresh token: random bytes, and a code that proves the session of the token, however old the token is.
const (
	randomBytes = 22
	codeBytes   = 10
)

// newRefresh returns a refresh token of a session.
func (e *entry) newRefresh() secret.String {
	if e.mark == nil {
		e.mark = make([]byte, sha256.Size)
		_, _ = rand.Read(e.mark) // never fails
	}
	b := make([]byte, randomBytes)
	_, _ = rand.Read(b) // never fails
	return secret.String(refreshPrefix + e.ID + "_" + base64.RawURLEncoding.EncodeToString(append(b, e.code(b)...)))
}

// code returns the code of the random bytes of a token.
func (e *entry) code(random []byte) []byte {
	mac := hmac.New(sha256.New, e.mark)
	_, _ = mac.Write([]byte(e.ID)) // never fails
	_, _ = mac.Write(random)
	return mac.Sum(nil)[:codeBytes]
}

// follows reports whether a hash is that of the previous refresh token.
func (e *entry) follows(hash []byte) bool {
	return e.previous != "" && subtle.ConstantTimeCompare(hash, []byte(e.previous)) == 1
}

// issued reports whether a refresh token is or was one of this session. Of tokens that were made without a code, only the last two are known.
func (e *entry) issued(token secret.String) bool {
	hash := []byte(hashOf(token.Reveal()))
	if subtle.ConstantTimeCompare(hash, []byte(e.hash)) == 1 || e.follows(hash) {
		return true
	}
	_, text, _ := strings.Cut(strings.TrimPrefix(token.Reveal(), refreshPrefix), "_")
	b, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(b) == randomBytes+codeBytes && e.mark != nil && hmac.Equal(b[randomBytes:], e.code(b[:randomBytes]))
}

// parseRefresh returns the id that a refresh token names.
func parseRefresh(text string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(text, refreshPrefix)
	id, secretPart, found := strings.Cut(rest, "_")
	return id, ok && found && idForm.MatchString(id) && len(secretPart) == base64.RawURLEncoding.EncodedLen(randomBytes+codeBytes)
}

// purpose prevents sealed tokens from being opened as another kind of text.
const purpose = "paictl refresh token"

// seal encrypts a refresh token. Only the last refresh token opens it.
func seal(with secret.String, id string, next secret.String) ([]byte, error) {
	aead, err := box([]byte(with.Reveal()), purpose)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(nonce, nonce, []byte(next.Reveal()), []byte(id)), nil
}

func open(with secret.String, e *entry) (secret.String, error) {
	aead, err := box([]byte(with.Reveal()), purpose)
	if err != nil {
		return "", err
	}
	if len(e.next) < aead.NonceSize() {
		return "", ErrInvalid
	}
	text, err := aead.Open(nil, e.next[:aead.NonceSize()], e.next[aead.NonceSize():], []byte(e.ID))
	if err != nil || hashOf(string(text)) != e.hash {
		return "", ErrInvalid
	}
	return secret.String(text), nil
}
