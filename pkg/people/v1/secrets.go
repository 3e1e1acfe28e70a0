package v1

import (
	"crypto/sha256"
	"encoding/hex"
)

// Namespace is the namespace of the Secrets of people. On the platform, only the server's account has a role in this namespace. As an exception, the
// alert handler may read the Secret Webhooks.
const Namespace = "pai-people"

// LabelPeople is the label with the kind of a Secret in Namespace. LabelUser is the label with the name of the Secret's owner.
const (
	LabelPeople = "paictl.openpai.org/people"
	LabelUser   = "paictl.openpai.org/user"
)

// The kinds of Secrets.
const (
	SecretPassword  = "password"
	SecretExtension = "extension"
	SecretToken     = "token"
	SecretKeys      = "keys"
	SecretOnce      = "once"
	SecretRefresh   = "refresh"
	// SecretProvider is the kind of a Secret with the issuer or directory of a sign-in provider at its first use.
	SecretProvider = "provider"
	// SecretSubmission is the kind of a Secret with the response to a submission with an idempotency key.
	SecretSubmission = "submission"
	// SecretWebhooks is the kind of the Secret Webhooks.
	SecretWebhooks = "webhooks"
)

// Names of Secrets that exist only once.
const (
	// SigningKeys holds the keys that sign tokens.
	SigningKeys = "signing-keys"
	// FirstAdministrator holds the hash of the one-time code that creates the first administrator.
	FirstAdministrator = "first-administrator"
	// Webhooks holds the addresses of people's own webhooks, by the ObjectName of the person. All addresses are in one Secret, so that the alert
	// handler needs permission to read only this Secret.
	Webhooks = "webhooks"
)

// AdministratorsLease is the Lease in Namespace for changes that could remove the last administrator.
const AdministratorsLease = "people-administrators"

// RoundsLease is the Lease in Namespace that records the first and last times of the current rounds of requests to providers.
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

// ProviderName returns the name of the Secret of a sign-in provider.
func ProviderName(provider string) string { return "provider-" + provider }

// OnceName returns the name of the Secret of a one-time code. The name doesn't contain the code.
func OnceName(kind, id string) string { return "once-" + kind + "-" + id }

// TokenName returns the name of the Secret with the record of a token. The name doesn't contain the token.
func TokenName(id string) string { return "token-" + id }
