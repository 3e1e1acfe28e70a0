package v1

import (
	"crypto/sha256"
	"encoding/hex"
)

// Namespace holds the Secrets of people. The server's account is the only one of the platform with a role there, except that the alert handler
// reads the Secret Webhooks.
const Namespace = "pai-people"

// LabelPeople names the contents of a Secret of Namespace: one of the kinds below. LabelUser names the owner of the Secret.
const (
	LabelPeople = "paictl.openpai.org/people"
	LabelUser   = "paictl.openpai.org/user"
)

// Kinds of Secrets.
const (
	SecretPassword  = "password"
	SecretExtension = "extension"
	SecretToken     = "token"
	SecretKeys      = "keys"
	SecretOnce      = "once"
	SecretRefresh   = "refresh"
	// SecretProvider is the issuer, or the directory, that a provider of sign-ins had when it was first used.
	SecretProvider = "provider"
	// SecretSubmission is the response to a submission with a key.
	SecretSubmission = "submission"
	// SecretWebhooks is the kind of Webhooks.
	SecretWebhooks = "webhooks"
)

// Secrets that exist once.
const (
	// SigningKeys holds the keys that sign tokens.
	SigningKeys = "signing-keys"
	// FirstAdministrator holds the hash of the one-time code that makes the first administrator.
	FirstAdministrator = "first-administrator"
	// Webhooks holds the addresses of people's own webhooks, by ObjectName of the person. It is one Secret, so that the alert handler may read it
	// and no other.
	Webhooks = "webhooks"
)

// AdministratorsLease is held, in Namespace, during changes that could remove the last administrator.
const AdministratorsLease = "people-administrators"

// RoundsLease records, in Namespace, the time since which providers have been queried, and the end of the last round.
const RoundsLease = "sign-in-rounds"

// PasswordName returns the name of the Secret with the hash of a person's password.
func PasswordName(user string) string { return "password-" + ObjectName(user) }

// ExtensionName returns the name of the Secret with the data that OpenPAI's clients store with a person.
func ExtensionName(user string) string { return "extension-" + ObjectName(user) }

// RefreshName returns the name of the Secret with the refresh token for an identity.
func RefreshName(id Identity) string {
	sum := sha256.Sum256([]byte(id.Provider + "\x00" + id.Subject))
	return "refresh-" + hex.EncodeToString(sum[:16])
}

// ProviderName returns the name of the Secret of a provider of sign-ins.
func ProviderName(provider string) string { return "provider-" + provider }

// OnceName returns the name of the Secret of a code for one use. It doesn't contain the code.
func OnceName(kind, id string) string { return "once-" + kind + "-" + id }

// TokenName returns the name of the Secret with the record of a token. It doesn't contain the token.
func TokenName(id string) string { return "token-" + id }
