package api

import (
	"time"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// User is a person. Others than administrators see of others the name and the e-mail address alone.
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
	// Spec is what a change begins with, for those who may make one.
	Spec *v1.UserSpec `json:"spec,omitempty"`
}

// Users are people, by name.
type Users struct {
	Items []User `json:"items"`
}

// NewUser is a person to be added. Without groups it is in the group default; without a password it can't sign in with one.
type NewUser struct {
	Name            string        `json:"name"`
	Email           string        `json:"email,omitempty"`
	DisplayName     string        `json:"displayName,omitempty"`
	Groups          []string      `json:"groups"`
	Identities      []v1.Identity `json:"identities,omitempty"`
	Password        string        `json:"password,omitempty"`
	TakeOverHistory bool          `json:"takeOverHistory,omitempty"`
	// Check finds out what is wrong, and adds no one.
	Check bool `json:"check,omitempty"`
}

// UserChange makes a person another one. Was is User.Spec as it was read: where it is another by now, nothing is changed (409).
type UserChange struct {
	Was  v1.UserSpec `json:"was"`
	Spec v1.UserSpec `json:"spec"`
}

// PasswordChange sets a password. Old is needed for one's own.
type PasswordChange struct {
	Password string `json:"password"`
	Old      string `json:"oldPassword,omitempty"`
}

// Group is a group. Who isn't in it, and is no administrator, sees name and description alone.
type Group struct {
	v1.GroupSpec
	// Members are told to administrators.
	Members []string  `json:"members"`
	Created time.Time `json:"created,omitzero"`
}

// Groups are groups, by name.
type Groups struct {
	Items []Group `json:"items"`
}

// GroupChange makes a group, where Was is missing, or makes it another one. Was is as in UserChange.
type GroupChange struct {
	Was  *v1.GroupSpec `json:"was,omitempty"`
	Spec v1.GroupSpec  `json:"spec"`
}

// TokenRecord is what is known of a token. It holds none.
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

// TokenRecords are those of a person, newest first.
type TokenRecords struct {
	Items []TokenRecord `json:"items"`
}

// NewToken is what an application token is made with. It lasts until it is revoked where Seconds is 0.
type NewToken struct {
	Label   string   `json:"label,omitempty"`
	Scopes  []string `json:"scopes,omitempty"` // none: read and submit
	Seconds int64    `json:"seconds,omitempty"`
}

// IssuedToken is a token, shown once.
type IssuedToken struct {
	Token  string      `json:"token"`
	Record TokenRecord `json:"record"`
}
