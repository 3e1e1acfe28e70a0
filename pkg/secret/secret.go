// Package secret holds strings that must not be printed.
// In: passwords and passphrases as read from a file or a terminal. Out: values that
// every formatter, JSON encoder and logger shows masked, and only Reveal opens.
package secret

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// Mask is shown instead of a secret.
const Mask = "********"

// String is a secret text. It is masked by fmt (all verbs), encoding/json and slog.
// YAML keeps the real value, because the configuration files on the operator's disk
// (mode 0600) are where the secret lives. Code that prints YAML masks it first.
type String string

// Reveal returns the secret itself. Call it only to use the secret.
func (s String) Reveal() string { return string(s) }

// IsSet reports whether there is a secret.
func (s String) IsSet() bool { return s != "" }

// String returns the mask, or "" if the secret is empty.
func (s String) String() string {
	if s == "" {
		return ""
	}
	return Mask
}

// Format masks every verb, %#v included.
func (s String) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalJSON writes the mask.
func (s String) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// LogValue masks the secret in structured logs.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalYAML writes the real value, see the type's comment.
func (s String) MarshalYAML() (any, error) { return string(s), nil }
