// Package signin signs in people, by a password or through a provider, and queries providers again whether that is still valid. In: a
// name and a password, or a provider's data about a person. Out: the person, or the same error for all failures; the groups that
// providers report.
package signin

import (
	"context"
	"errors"
	"time"

	"github.com/openpai/paictl/pkg/secret"
)

// Identity is a person as a provider knows them.
type Identity struct {
	Provider, Subject string
	Name, Email       string
	DisplayName       string
	Groups            []string // empty if the provider isn't configured to report groups
	// GroupsUnsaid reports that the response doesn't include groups, even if the person is in some.
	GroupsUnsaid bool
	// Refresh, if it is set, is the token for the next Check.
	Refresh secret.String
}

// Password is a provider that checks a name and a password.
type Password interface {
	Name() string
	SignIn(ctx context.Context, name string, password secret.String) (*Identity, error)
}

// Checker is a provider that can be queried again about a person whom it has confirmed. refresh is the token of its last
// Identity.
type Checker interface {
	Name() string
	// Refreshes reports whether Check needs the last Identity's refresh token. Otherwise a subject is enough.
	Refreshes() bool
	// Check returns the current identity. ErrGone means that the provider doesn't know the person, or no longer admits them. Other errors mean that
	// the provider can't answer; ErrUnsaid means that it can't answer about this person only. If Check returns an Identity with an error, the
	// Identity has the token for the next Check.
	Check(ctx context.Context, subject string, refresh secret.String) (*Identity, error)
}

// Policy defines the permissions that a provider can grant.
type Policy struct {
	// Create adds people to Groups at their first sign-in; without Groups, to the group default. If it isn't set, an administrator links
	// them.
	Create bool
	Groups []string
	// Source is the provider's issuer, or its directory, and MovedFrom an earlier one that has the same people; see
	// people.Directory.Bind.
	Source, MovedFrom string
	// Allowed are groups of the provider: only their members are admitted. Empty admits everyone.
	Allowed []string
}

// ErrGone means that a provider no longer confirms the person.
var ErrGone = errors.New("the provider doesn't know the person, or has disabled them")

// ErrNoPassword means that a person has no password of the cluster.
var ErrNoPassword = errors.New("has no password of the cluster")

// ErrUnsaid means that a provider responds, but can't say anything about one person.
var ErrUnsaid = errors.New("the provider answers, and can't say anything about the person")

// ErrLost means that an issuer may have used up the refresh token, and its response was lost.
var ErrLost = errors.New("the provider may have received the request, but its response was lost")

// Errors of SignIn. ErrWrong is the only error for a wrong password, for a person who doesn't exist, is disabled or was removed, and for
// one whose password isn't tried for a while because of too many failures; it takes the same time. Others wrap people.ErrUnavailable.
var (
	ErrWrong = errors.New("the user name or the password is wrong")
	ErrBusy  = errors.New("too many sign-ins")
	// ErrNotAdmitted means that a provider has confirmed a person who isn't known here. Its text explains what an administrator can
	// do.
	ErrNotAdmitted = errors.New("the person is not known here")
)

// ThrottledError is an ErrBusy with the time until the next try.
type ThrottledError struct{ After time.Duration }

func (e *ThrottledError) Error() string {
	return "too many sign-ins: try again in " + e.After.Round(time.Second).String()
}

// Is makes errors.Is(err, ErrBusy) true.
func (e *ThrottledError) Is(target error) bool { return target == ErrBusy }
