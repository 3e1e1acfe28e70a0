// Package token is what people show instead of a password: access and refresh tokens of sessions, browser and application tokens.
// In: people, the Secrets of the namespace pai-people by watch. Out: tokens, shown once; subjects for rules, found without asking the API
// server; revocation that acts at once here and within a second at other replicas.
package token

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"

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

// Record is what is known of a token. It holds none.
type Record struct {
	ID      string        `json:"id"`
	User    string        `json:"user"`
	Kind    Kind          `json:"kind"`
	Label   string        `json:"label,omitempty"`
	Scopes  []rules.Scope `json:"scopes,omitempty"`
	Client  string        `json:"client,omitempty"`
	Address string        `json:"address,omitempty"`
	Created time.Time     `json:"created"`
	Expires time.Time     `json:"expires,omitzero"` // zero: never
	Used    time.Time     `json:"used,omitzero"`    // to ten minutes
}

// New is what a token is made with. Zero is the default of its kind.
type New struct {
	Label   string
	Scopes  []rules.Scope // of application tokens; nil is read and submit
	Life    time.Duration
	Client  string // program that asks, for the list of tokens
	Address string
}

// Issued is a token, to be shown once.
type Issued struct {
	Token  secret.String
	Record Record
}

// Pair is the access token of a session and what gets the next one.
type Pair struct {
	Access  secret.String
	Refresh secret.String
	Life    time.Duration // of Access
	Record  Record
}

// Verified is what a token says, checked.
type Verified struct {
	Person  *people.Person
	Subject rules.Subject
	Claims  Claims
	// Ended is closed when the token was revoked, has expired, or the person was disabled or removed: streams end then.
	Ended <-chan struct{}
}

// Claims are those of all our tokens.
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

// Errors. Others wrap people.ErrUnavailable: then nothing is known of the token, and the answer must not be 401.
var (
	// ErrInvalid is of a token that isn't ours, has expired, was revoked, or whose person may not sign in.
	ErrInvalid = errors.New("the token is not valid")
	// ErrReused is of a refresh token that was used before. Its session is revoked. It is an ErrInvalid.
	ErrReused = errors.New("the refresh token was used before: the session is revoked")
	ErrNone   = errors.New("there is no such token")
)

var errNotYet = errors.New("agreed, written within the hour")

// Lives are how long tokens last. Zero is the default.
type Lives struct {
	Access  time.Duration // 15 minutes
	Browser time.Duration // 24 hours
	Refresh time.Duration // 30 days since its last use
	Session time.Duration // 90 days
	Rotate  time.Duration // 30 days: a new signing key
}

// Options of a Service.
type Options struct {
	Lives Lives
	Now   func() time.Time // nil is time.Now
}

// Service makes and checks tokens.
type Service struct{}

// Open connects. It asks nothing yet.
func Open(_ *rest.Config, _ *people.Directory, _ Options) (*Service, error) { return nil, errNotYet }

// Load reads keys and records once, and makes the first key where there is none; for commands.
func (s *Service) Load(context.Context) error { return errNotYet }

// Run watches until ctx ends.
func (s *Service) Run(context.Context) error { return errNotYet }

// Fresh is nil, or an error that wraps people.ErrUnavailable.
func (s *Service) Fresh() error { return errNotYet }

// Tend makes keys, rotates them, and removes what has expired, until ctx ends. One replica does so, that which leads.
func (s *Service) Tend(context.Context) error { return errNotYet }

// Session begins a session, after a sign-in.
func (s *Service) Session(context.Context, *people.Person, New) (*Pair, error) { return nil, errNotYet }

// Refresh gives the next pair of a session.
func (s *Service) Refresh(context.Context, secret.String, New) (*Pair, error) { return nil, errNotYet }

// Browser makes a token that lasts as long as asked, between a minute and seven days.
func (s *Service) Browser(context.Context, *people.Person, New) (*Issued, error) {
	return nil, errNotYet
}

// Application makes a token for programs. It lasts until it is revoked where New has no Life.
func (s *Service) Application(context.Context, *people.Person, New) (*Issued, error) {
	return nil, errNotYet
}

// Verify checks a token. It asks the API server only for a record that it hasn't heard of, of a token that is signed by us.
func (s *Service) Verify(context.Context, string) (*Verified, error) { return nil, errNotYet }

// Of returns the records of a person, newest first; all where name is empty.
func (s *Service) Of(string) []Record { return nil }

// Handle is a text in the shape of a token that names a record and is good for nothing but its revocation.
func Handle(Record) string { return "" }

// IDOf is the id of the record that a token, a handle or an id names. It checks no signature.
func IDOf(string) (string, error) { return "", errNotYet }

// Revoke ends a token or session of a person, by id, token or handle; of anyone where user is empty. ErrNone where there is none.
func (s *Service) Revoke(_ context.Context, _, _ string) error { return errNotYet }

// RevokeRefresh ends the session of a refresh token.
func (s *Service) RevokeRefresh(context.Context, secret.String) error { return errNotYet }

// RevokeAll ends all tokens of a person, or all but application tokens.
func (s *Service) RevokeAll(_ context.Context, _ string, _ bool) (int, error) { return 0, errNotYet }
