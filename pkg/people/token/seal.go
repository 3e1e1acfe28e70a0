package token

import (
	"context"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/openpai/paictl/pkg/people"
)

// box returns a cipher whose key is derived from a secret for one purpose.
func box(secret []byte, purpose string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, chacha20poly1305.KeySize)
	if err != nil {
		return nil, fmt.Errorf("make a key for a %s: %w", purpose, err)
	}
	return chacha20poly1305.NewX(key)
}

// Seal encrypts and authenticates a text that a client stores for the service. Any replica can decrypt the text for the same purpose until the
// signing key is removed.
func (s *Service) Seal(ctx context.Context, purpose string, text []byte) (string, error) {
	ring, err := s.keys(ctx)
	if err != nil {
		return "", err
	}
	id, private := ring.signing(s.now())
	if private == nil {
		return "", fmt.Errorf("%w: there is no key to seal with", people.ErrUnavailable)
	}
	aead, err := box(private.Seed(), purpose)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return id + "." + base64.RawURLEncoding.EncodeToString(aead.Seal(nonce, nonce, text, []byte(id))), nil
}

// Unseal decrypts a text that Seal returned for the same purpose. It returns ErrInvalid for any other text.
func (s *Service) Unseal(ctx context.Context, purpose, sealed string) ([]byte, error) {
	id, text, ok := strings.Cut(sealed, ".")
	data, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(sealed) > maxText {
		return nil, ErrInvalid
	}
	ring, err := s.keys(ctx)
	if err != nil {
		return nil, err
	}
	if _, known := ring.public(id, s.now()); !known {
		return nil, ErrInvalid
	}
	aead, err := box(ring[id].Seed, purpose)
	if err != nil {
		return nil, err
	}
	if len(data) < aead.NonceSize() {
		return nil, ErrInvalid
	}
	out, err := aead.Open(nil, data[:aead.NonceSize()], data[aead.NonceSize():], []byte(id))
	if err != nil {
		return nil, ErrInvalid
	}
	return out, nil
}
