package password

import (
	"crypto/md5" //nolint:gosec // for hashes that OpenPAI has stored; new ones don't use it
	"crypto/pbkdf2"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/secret"
)

// OpenPAI stores PBKDF2-HMAC-SHA512 hashes with 10,000 rounds and 64 bytes, in hexadecimal. The salt is the hexadecimal MD5 of the person's name.
const (
	pbkdf2Rounds = 10000
	pbkdf2Len    = 64
	pbkdf2Prefix = "$pbkdf2-sha512$"
)

// OpenPAI converts a password hash from OpenPAI's database to the form that Verify accepts. Hash never returns this form.
func OpenPAI(name, stored string) (string, error) {
	salt := md5.Sum([]byte(name)) //nolint:gosec // as above
	encoded := fmt.Sprintf("%si=%d,l=%d$%s$%s", pbkdf2Prefix, pbkdf2Rounds, pbkdf2Len, hex.EncodeToString(salt[:]), strings.ToLower(stored))
	_, err := parsePBKDF2(encoded)
	return encoded, err
}

type pbkdf2Hash struct {
	salt string
	sum  []byte
}

func parsePBKDF2(encoded string) (*pbkdf2Hash, error) {
	parts := strings.Split(strings.TrimPrefix(encoded, pbkdf2Prefix), "$")
	if len(parts) != 3 || parts[0] != fmt.Sprintf("i=%d,l=%d", pbkdf2Rounds, pbkdf2Len) || len(parts[1]) != 2*md5.Size {
		return nil, errMalformed
	}
	sum, err := hex.DecodeString(parts[2])
	if err != nil || len(sum) != pbkdf2Len {
		return nil, errMalformed
	}
	return &pbkdf2Hash{salt: parts[1], sum: sum}, nil
}

func (h *pbkdf2Hash) is(p secret.String) (bool, error) {
	got, err := pbkdf2.Key(sha512.New, p.Reveal(), []byte(h.salt), pbkdf2Rounds, pbkdf2Len)
	if err != nil {
		return false, fmt.Errorf("check the password: %w", err)
	}
	return subtle.ConstantTimeCompare(got, h.sum) == 1, nil
}
