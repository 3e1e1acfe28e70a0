// Package token creates and checks the tokens that people use instead of a password: the access and refresh tokens of sessions, and browser and
// application tokens.
// In: people, and the Secrets of the namespace pai-people, which are watched. Out: tokens, which are shown once; subjects for rules, without a
// request to the API server; revocation that takes effect immediately in this replica and within a second in others.
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

// Kind is the kind of a record. A session has access and refresh tokens. Each other record has one token.
type Kind string

// The kinds of records.
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
	// Via is the provider that authenticated the person when the record was created. "" means that the person used a password.
	Via     string    `json:"via,omitempty"`
	Client  string    `json:"client,omitempty"`
	Address string    `json:"address,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero means that it never expires
	Used    time.Time `json:"used,omitzero"`    // with a precision of ten minutes
}

// New holds the properties of a new token. A zero value selects the default for the token's kind.
type New struct {
	Label    string
	Scopes   []rules.Scope // the scopes of application tokens; nil means read and submit
	Lifetime time.Duration
	Client   string // the program that requests the token, for the list of tokens
	Address  string
}

// Issued is a new token with its record. The token is shown only once.
type Issued struct {
	Token  secret.String
	Record Record
}

// Pair holds the access token and the refresh token of a session.
type Pair struct {
	Access   secret.String
	Refresh  secret.String
	Lifetime time.Duration // of Access
	Record   Record
}

// Verified is the checked content of a token.
type Verified struct {
	Person  *people.Person
	Subject rules.Subject
	Claims  Claims
	// Via is the field Via of the token's Record.
	Via string
	// Ended is closed when the token or its session is revoked or expires, or when the person is disabled or removed. Streams must then end. The
	// expiry of a session's access token doesn't close Ended.
	Ended <-chan struct{}
}

// Claims holds the claims of a token. All kinds of tokens use the same claims.
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

// Errors of the package. All other errors wrap people.ErrUnavailable. They mean that the token couldn't be checked, so the response must not be 401.
var (
	// ErrInvalid means that a token isn't from this service, has expired or was revoked, or that the token's person may not sign in.
	ErrInvalid = errors.New("the token is not valid")
	// ErrReused means that a refresh token was used a second time, and that its session was revoked. It wraps ErrInvalid.
	ErrReused = fmt.Errorf("%w: the refresh token was used before, and the session is revoked", ErrInvalid)
	ErrNone   = errors.New("there is no such token")
	// ErrTooMany means that a person has the maximum number of application tokens.
	ErrTooMany = errors.New("there are too many tokens: revoke some")
)

// Lifetimes holds the lifetimes of tokens. Zero values select the defaults.
type Lifetimes struct {
	Access  time.Duration // 15 minutes
	Browser time.Duration // 24 hours
	Refresh time.Duration // 30 days since its last use
	Session time.Duration // 90 days
	Rotate  time.Duration // 30 days; the time until a new signing key
}

// Options configure a Service.
type Options struct {
	Lifetimes Lifetimes
	Now       func() time.Time // nil means time.Now
	Log       *slog.Logger     // nil discards the log
}

// ReusedError is an ErrReused with the name of the session's person.
type ReusedError struct{ User string }

func (*ReusedError) Error() string { return ErrReused.Error() }

// Unwrap returns ErrReused.
func (*ReusedError) Unwrap() error { return ErrReused }
