package v1

// Namespace has the Secrets of people. The server's account is the only one of the platform with a role there.
const Namespace = "pai-people"

// LabelPeople says what a Secret of Namespace holds: one of the kinds below. LabelUser is the name of the person it belongs to.
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
	// SecretSubmission is what a submission with a key was answered.
	SecretSubmission = "submission"
)

// Secrets that there is one of.
const (
	// SigningKeys has the keys that tokens are signed with.
	SigningKeys = "signing-keys"
	// FirstAdministrator has the hash of the one-time code that makes the first administrator.
	FirstAdministrator = "first-administrator"
)

// AdministratorsLease is held, in Namespace, by whoever changes something that could take the last administrator away.
const AdministratorsLease = "people-administrators"

// PasswordName is the Secret with the hash of a person's password.
func PasswordName(user string) string { return "password-" + ObjectName(user) }

// ExtensionName is the Secret with what OpenPAI's clients store with a person.
func ExtensionName(user string) string { return "extension-" + ObjectName(user) }

// TokenName is the Secret that keeps what is known of a token. It doesn't hold the token.
func TokenName(id string) string { return "token-" + id }
