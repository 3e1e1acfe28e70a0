// Package password hashes passwords and checks them. In: a password, a stored hash. Out: argon2id hashes; whether a password matches a hash,
// including OpenPAI's PBKDF2 hashes; the reason why a new password is too weak.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/openpai/paictl/pkg/secret"
)

// The cost of a new hash is OWASP's first choice for argon2id: 19 MiB and about 30 ms.
const (
	memory  = 19456 // KiB
	rounds  = 2
	lanes   = 1
	saltLen = 16
	hashLen = 32
)

// The maximum cost of a stored hash, so that a manipulated hash can't exhaust the machine's memory.
const (
	maxMemory = 64 << 10 // KiB
	maxRounds = 10
	maxLanes  = 4
)

// ErrBusy means that too many passwords are being checked. At most 4 checks run at a time, and take 76 MiB.
var ErrBusy = errors.New("too many passwords are being checked")

// errMalformed means that a stored hash can't be parsed. Its text doesn't contain the hash.
var errMalformed = errors.New("the stored hash of the password can't be read")

const (
	atOnce = 4
	wait   = 5 * time.Second
)

var gate = make(chan struct{}, atOnce)

// enter waits until another password may be checked. It returns ErrBusy after a timeout.
func enter(ctx context.Context) error {
	select {
	case gate <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case gate <- struct{}{}:
		return nil
	case <-timer.C:
		return ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

func leave() { <-gate }

// Hash returns the stored form of a password: $argon2id$v=19$m=19456,t=2,p=1$salt$hash.
func Hash(p secret.String) string {
	gate <- struct{}{}
	defer leave()
	salt := make([]byte, saltLen)
	_, _ = rand.Read(salt) // it never fails
	h := argon2id{memory: memory, rounds: rounds, lanes: lanes, salt: salt}
	h.sum = h.of(p, hashLen)
	return h.String()
}

// Verify reports whether a password matches a hash. rehash reports whether the caller should replace the hash, because its format or its cost is
// outdated. The error is ErrBusy, the error of the context, or errMalformed.
func Verify(ctx context.Context, encoded string, p secret.String) (ok, rehash bool, err error) {
	if strings.HasPrefix(encoded, pbkdf2Prefix) {
		h, err := parsePBKDF2(encoded)
		if err != nil {
			return false, false, err
		}
		if err := enter(ctx); err != nil {
			return false, false, err
		}
		defer leave()
		ok, err := h.is(p)
		return ok, ok, err
	}
	h, err := parseArgon2(encoded)
	if err != nil {
		return false, false, err
	}
	if err := enter(ctx); err != nil {
		return false, false, err
	}
	defer leave()
	ok = subtle.ConstantTimeCompare(h.of(p, len(h.sum)), h.sum) == 1
	return ok, ok && (h.memory < memory || h.rounds < rounds), nil
}

// Dummy takes as long as Verify. Callers use it for a person who doesn't exist, so that the response time doesn't reveal that fact.
func Dummy(ctx context.Context, p secret.String) error {
	if err := enter(ctx); err != nil {
		return err
	}
	defer leave()
	h := argon2id{memory: memory, rounds: rounds, lanes: lanes, salt: make([]byte, saltLen)}
	h.of(p, hashLen)
	return nil
}

// Known reports whether Verify can parse a hash.
func Known(encoded string) bool {
	if strings.HasPrefix(encoded, pbkdf2Prefix) {
		_, err := parsePBKDF2(encoded)
		return err == nil
	}
	_, err := parseArgon2(encoded)
	return err == nil
}

// argon2id is a hash in the PHC string format.
type argon2id struct {
	memory, rounds uint32
	lanes          uint8
	salt, sum      []byte
}

func (h *argon2id) of(p secret.String, n int) []byte {
	return argon2.IDKey([]byte(p.Reveal()), h.salt, h.rounds, h.memory, h.lanes, uint32(n))
}

// String returns the hash in the PHC string format.
func (h *argon2id) String() string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.rounds, h.lanes, b.EncodeToString(h.salt), b.EncodeToString(h.sum))
}

func parseArgon2(encoded string) (*argon2id, error) {
	parts := strings.Split(encoded, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return nil, errMalformed
	}
	h := &argon2id{}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.rounds, &h.lanes); err != nil || n != 3 {
		return nil, errMalformed
	}
	if h.lanes < 1 || h.lanes > maxLanes || h.rounds < 1 || h.rounds > maxRounds || h.memory < 8*uint32(h.lanes) || h.memory > maxMemory {
		return nil, errMalformed
	}
	var err error
	if h.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4]); err != nil || len(h.salt) < 8 || len(h.salt) > 64 {
		return nil, errMalformed
	}
	if h.sum, err = base64.RawStdEncoding.Strict().DecodeString(parts[5]); err != nil || len(h.sum) < 16 || len(h.sum) > 64 {
		return nil, errMalformed
	}
	return h, nil
}
