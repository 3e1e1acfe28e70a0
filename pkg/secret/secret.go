// Package secret holds strings that must not be printed.
// In: passwords and passphrases as read from a file or a terminal. Out: values that every formatter, JSON encoder and logger shows masked, and of
// which only Reveal returns the text.
package secret

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// Mask is shown instead of a secret.
const Mask = "********"

// String is a secret text. It is masked by fmt (all verbs), encoding/json and slog. YAML contains the real value, because the configuration files on
// the operator's disk (mode 0600) store the secret. Code that prints YAML masks the secrets first.
type String string

// Reveal returns the secret itself. Call it only if the secret is needed.
func (s String) Reveal() string { return string(s) }

// IsSet reports whether the secret isn't empty.
func (s String) IsSet() bool { return s != "" }

// String returns the mask, or "" if the secret is empty.
func (s String) String() string {
	if s == "" {
		return ""
	}
	return Mask
}

// Format writes the mask for every verb, including %#v.
func (s String) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalJSON returns the mask, or "" if the secret is empty.
func (s String) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// LogValue returns the mask for structured logs.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalYAML returns the real value; see String.
func (s String) MarshalYAML() (any, error) { return string(s), nil }
