package api

import (
	"time"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// User is a person. Users who aren't administrators see only the name and the e-mail address of other people.
type User struct {
	Name          string        `json:"name"`
	Email         string        `json:"email,omitempty"`
	DisplayName   string        `json:"displayName,omitempty"`
	Groups        []string      `json:"groups"`
	Administrator bool          `json:"administrator"`
	Disabled      bool          `json:"disabled"`
	AllVCs        bool          `json:"allVirtualClusters"`
	VCs           []v1.VCGrant  `json:"virtualClusters"`
	Storages      []string      `json:"storages"`
	Pages         []string      `json:"pages"`
	Identities    []v1.Identity `json:"identities,omitempty"`
	SSHKeys       []v1.SSHKey   `json:"sshKeys,omitempty"`
	Created       time.Time     `json:"created,omitzero"`
	LastSignIn    *time.Time    `json:"lastSignIn,omitempty"`
	// Spec is the spec that a change is based on, if the caller may change the person.
	Spec *v1.UserSpec `json:"spec,omitempty"`
}

// Users are people, by name.
type Users struct {
	Items []User `json:"items"`
}

// NewUser is a person to add. Without groups, the person is in the group default; without a password, the person can't sign in with a password.
type NewUser struct {
	Name            string        `json:"name"`
	Email           string        `json:"email,omitempty"`
	DisplayName     string        `json:"displayName,omitempty"`
	Groups          []string      `json:"groups"`
	Identities      []v1.Identity `json:"identities,omitempty"`
	Password        string        `json:"password,omitempty"`
	TakeOverHistory bool          `json:"takeOverHistory,omitempty"`
	// Check only validates the request, and doesn't add the person.
	Check bool `json:"check,omitempty"`
}

// UserChange replaces the spec of a person. Was is the User.Spec that the client read. If the spec has changed since, the request fails (409).
type UserChange struct {
	Was  v1.UserSpec `json:"was"`
	Spec v1.UserSpec `json:"spec"`
}

// PasswordChange sets a password. People who set their own must send Old.
type PasswordChange struct {
	Password string `json:"password"`
	Old      string `json:"oldPassword,omitempty"`
}

// Group is a group. Only members and administrators see more than name and description.
type Group struct {
	v1.GroupSpec
	// Members are only set for administrators.
	Members []string  `json:"members"`
	Created time.Time `json:"created,omitzero"`
}

// Groups are groups, by name.
type Groups struct {
	Items []Group `json:"items"`
}

// GroupChange creates a group if Was is missing, and otherwise replaces its spec. Was is as in UserChange.
type GroupChange struct {
	Was  *v1.GroupSpec `json:"was,omitempty"`
	Spec v1.GroupSpec  `json:"spec"`
}

// TokenRecord describes a token, but doesn't contain it.
type TokenRecord struct {
	ID      string     `json:"id"`
	User    string     `json:"user"`
	Kind    string     `json:"kind"` // session, browser, application
	Label   string     `json:"label,omitempty"`
	Scopes  []string   `json:"scopes,omitempty"`
	Client  string     `json:"client,omitempty"`
	Address string     `json:"address,omitempty"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	Used    *time.Time `json:"used,omitempty"`
}

// TokenRecords are records of tokens, newest first.
type TokenRecords struct {
	Items []TokenRecord `json:"items"`
}

// NewToken describes an application token to create. If Seconds is 0, it lasts until it is revoked.
type NewToken struct {
	Label   string   `json:"label,omitempty"`
	Scopes  []string `json:"scopes,omitempty"` // none: read and submit
	Seconds int64    `json:"seconds,omitempty"`
}

// KeyRotation requests a new key for signing tokens.
type KeyRotation struct {
	// Revoke ends tokens that were signed with an earlier key.
	Revoke bool `json:"revoke,omitempty"`
}

// IssuedToken is a token, shown once.
type IssuedToken struct {
	Token  string      `json:"token"`
	Record TokenRecord `json:"record"`
}
