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

// Lengths of new passwords, in characters and in bytes.
const (
	MinLength = 10
	maxBytes  = 1024
)

// minGuesses is how many guesses a password must take, as zxcvbn estimates them: more than the throttle permits in months. Each of
// the ten thousand most frequent passwords takes at most ten thousand.
const minGuesses = 1e6

// judged is how many characters of a password are checked, because the time grows faster than their number.
const judged = 32

// Check returns why a password is too weak for a person. It isn't applied to existing passwords.
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

// New creates a password of 100 random bits, in four groups that are easy to read aloud.
func New() secret.String {
	b := make([]byte, 15)
	_, _ = rand.Read(b) // it never fails
	t := strings.ToLower(base32.StdEncoding.EncodeToString(b))[:20]
	return secret.String(t[:5] + "-" + t[5:10] + "-" + t[10:15] + "-" + t[15:])
}

// guesses returns how many guesses a password takes, as zxcvbn estimates them. own are words that an attacker tries first.
func guesses(text string, own []string) float64 {
	dictionaries.Load()
	return zxcvbn.PasswordStrength(text, own).Guesses
}
