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

// grace is how long the previous refresh token is still accepted, because a response may be lost, or two programs may share a session.
const grace = 30 * time.Second

// Refresh returns the next pair of tokens of a session. If token is the previous refresh token, Refresh returns the current refresh token for half a
// minute. After that time, the previous token revokes the session, because two programs must have it. Older tokens always revoke the session.
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
				continue // another replica or program has already renewed the session, or it was revoked
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

// next creates and stores the next refresh token of a session. It encrypts the new token with the last token, so that the record alone doesn't reveal
// a token.
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

// Proves returns nil if token is the current refresh token of a person's session, or was the current token until at most half a minute ago. Otherwise
// it returns ErrInvalid. An access token isn't enough, because it may have been copied.
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

// refreshPrefix begins each refresh token, so that secret scanners can recognize leaked tokens.
const refreshPrefix = "pair_"

// The secret part of a refresh token consists of random bytes and a code. The code proves that the token belongs to its session, regardless of the
// token's age.
const (
	randomBytes = 22
	codeBytes   = 10
)

func (e *entry) newRefresh() secret.String {
	if e.mark == nil {
		e.mark = make([]byte, sha256.Size)
		_, _ = rand.Read(e.mark) // never fails
	}
	b := make([]byte, randomBytes)
	_, _ = rand.Read(b) // never fails
	return secret.String(refreshPrefix + e.ID + "_" + base64.RawURLEncoding.EncodeToString(append(b, e.code(b)...)))
}

// code returns the code for the random bytes of a refresh token.
func (e *entry) code(random []byte) []byte {
	mac := hmac.New(sha256.New, e.mark)
	_, _ = mac.Write([]byte(e.ID)) // never fails
	_, _ = mac.Write(random)
	return mac.Sum(nil)[:codeBytes]
}

// follows reports whether hash is the hash of the previous refresh token.
func (e *entry) follows(hash []byte) bool {
	return e.previous != "" && subtle.ConstantTimeCompare(hash, []byte(e.previous)) == 1
}

// issued reports whether a refresh token is or was a token of this session. Tokens from older releases contain no code. Of these, issued recognizes
// only the last two.
func (e *entry) issued(token secret.String) bool {
	hash := []byte(hashOf(token.Reveal()))
	if subtle.ConstantTimeCompare(hash, []byte(e.hash)) == 1 || e.follows(hash) {
		return true
	}
	_, text, _ := strings.Cut(strings.TrimPrefix(token.Reveal(), refreshPrefix), "_")
	b, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(b) == randomBytes+codeBytes && e.mark != nil && hmac.Equal(b[randomBytes:], e.code(b[:randomBytes]))
}

func parseRefresh(text string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(text, refreshPrefix)
	id, secretPart, found := strings.Cut(rest, "_")
	return id, ok && found && idForm.MatchString(id) && len(secretPart) == base64.RawURLEncoding.EncodedLen(randomBytes+codeBytes)
}

// purpose prevents the use of encrypted refresh tokens for another purpose.
const purpose = "paictl refresh token"

// seal encrypts the next refresh token with the last refresh token, so that only the last token can decrypt the next.
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
