package password

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/trustelem/zxcvbn"

	"github.com/openpai/paictl/pkg/people/password/dictionaries"
	"github.com/openpai/paictl/pkg/secret"
)

// MinLength is in characters, maxBytes in bytes.
const (
	MinLength = 10
	maxBytes  = 1024
)

// minGuesses is the minimum number of guesses for a password, according to zxcvbn's estimate. The throttle permits fewer guesses in several months.
// Each of the ten thousand most frequent passwords takes at most ten thousand guesses.
const minGuesses = 1e6

// judged limits the number of characters that zxcvbn checks, because the time of a check grows faster than the number of characters.
const judged = 32

// Check returns the reason why a new password is too weak for a person, or nil.
func Check(p secret.String, name string) error {
	text := p.Reveal()
	switch {
	case utf8.RuneCountInString(text) < MinLength:
		return fmt.Errorf("the password is too short: use %d characters or more", MinLength)
	case len(text) > maxBytes:
		return fmt.Errorf("the password is too long: %d bytes at most", maxBytes)
	case !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\r\n"):
		return errors.New("the password has an end of line or other bytes in it that can't be typed")
	case guesses(string([]rune(text)[:min(judged, utf8.RuneCountInString(text))]), []string{name, "paictl", "openpai"}) < minGuesses:
		return errors.New("the password is easy to guess: use several words that don't belong together, and not the name")
	}
	return nil
}

// New returns a random password with 100 bits, in four groups that are easy to read aloud.
func New() secret.String {
	b := make([]byte, 15)
	_, _ = rand.Read(b) // it never fails
	t := strings.ToLower(base32.StdEncoding.EncodeToString(b))[:20]
	return secret.String(t[:5] + "-" + t[5:10] + "-" + t[10:15] + "-" + t[15:])
}

// guesses returns zxcvbn's estimate of the number of guesses for a password. own holds words that an attacker tries first.
func guesses(text string, own []string) float64 {
	dictionaries.Load()
	return zxcvbn.PasswordStrength(text, own).Guesses
}
