// Package token makes and checks the tokens that people use instead of a password: access and refresh tokens of sessions, browser and
// application tokens.
// In: people, the Secrets of the namespace pai-people by watch. Out: tokens, shown once; subjects for rules, found without a request to
// the API server; revocation that acts at once here and within a second at other replicas.
package token

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/secret"
)

// Kind is a kind of record: a session has access and refresh tokens, the others are one token each.
type Kind string

// Kinds.
const (
	KindSession     Kind = "session"
	KindBrowser     Kind = "browser"
	KindApplication Kind = "application"
)

// Record is the stored data about a token. It doesn't contain the token.
type Record struct {
	ID     string        `json:"id"`
	User   string        `json:"user"`
	Kind   Kind          `json:"kind"`
	Label  string        `json:"label,omitempty"`
	Scopes []rules.Scope `json:"scopes,omitempty"`
	// Via is the provider that vouched for the person when it began; "" means a password.
	Via     string    `json:"via,omitempty"`
	Client  string    `json:"client,omitempty"`
	Address string    `json:"address,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Used    time.Time `json:"used,omitzero"`    // to ten minutes
}

// New holds the settings of a new token. Zero values mean the default of its kind.
type New struct {
	Label   string
	Scopes  []rules.Scope // the scopes of application tokens; nil means read and submit
	Life    time.Duration
	Client  string // program that requests the token, for the list of tokens
	Address string
}

// Issued is a token, to be shown once.
type Issued struct {
	Token  secret.String
	Record Record
}

// Pair is the access token of a session and its refresh token.
type Pair struct {
	Access  secret.String
	Refresh secret.String
	Life    time.Duration // of Access
	Record  Record
}

// Verified is the content of a token, checked.
type Verified struct {
	Person  *people.Person
	Subject rules.Subject
	Claims  Claims
	// Via is the Record's.
	Via string
	// Ended is closed when the token or its session was revoked or has expired, or the person was disabled or removed: streams end then.
	// The expiry of a session's access token doesn't close it.
	Ended <-chan struct{}
}

// Claims are the claims of all our tokens.
type Claims struct {
	Username    string `json:"username"`
	Application bool   `json:"application"`
	IssuedAt    int64  `json:"iat"`
	Expires     int64  `json:"exp,omitempty"`
	ID          string `json:"jti"`
	Session     string `json:"sid,omitempty"`
	UID         string `json:"uid"`
	Audience    string `json:"aud"`
	Type        string `json:"typ"` // access, browser, application
}

// Errors. Others wrap people.ErrUnavailable: then the token couldn't be checked, and the response must not be 401.
var (
	// ErrInvalid means that a token isn't ours, has expired, was revoked, or that its person may not sign in.
	ErrInvalid = errors.New("the token is not valid")
	// ErrReused means that a refresh token was used before. Its session is revoked. It is an ErrInvalid.
	ErrReused = fmt.Errorf("%w: the refresh token was used before, and the session is revoked", ErrInvalid)
	ErrNone   = errors.New("there is no such token")
	// ErrTooMany means that a person has the maximum number of application tokens.
	ErrTooMany = errors.New("there are too many tokens: revoke some")
)

// Lifetimes holds the lifetimes of tokens. Zero is the default.
type Lifetimes struct {
	Access  time.Duration // 15 minutes
	Browser time.Duration // 24 hours
	Refresh time.Duration // 30 days since its last use
	Session time.Duration // 90 days
	Rotate  time.Duration // 30 days: a new signing key
}

// Options of a Service.
type Options struct {
	Lifetimes Lifetimes
	Now       func() time.Time // nil is time.Now
	Log       *slog.Logger     // nil discards the log
}

// ReusedError is an ErrReused that names the person of the session.
type ReusedError struct{ User string }

func (*ReusedError) Error() string { return ErrReused.Error() }

// Unwrap returns ErrReused.
func (*ReusedError) Unwrap() error { return ErrReused }
